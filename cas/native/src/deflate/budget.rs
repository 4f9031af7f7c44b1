//! A limit to what searches for matches cost, which encoder and decoder count alike.
//!
//! Encoders look at thousands of candidates for each byte if data are such that there are so many. Nobody is to be kept busy
//! by that: each plain byte earns some steps, and where all of them are spent searches stay shallow until there
//! are more. What is foretold there is wrong more often, and nothing else is.

/// Steps that each plain byte earns; text needs 5 to 60, programs 100.
pub const EARNED: usize = 256;
/// Steps that may be spent before they are earned.
pub const ADVANCE: usize = 1 << 20;
/// Candidates looked at by who has spent all.
const SHALLOW: usize = 4;
/// Bytes that are compared in about the time of a step, and steps that comparing any takes.
const STRIDE: usize = 16;
const COMPARING: usize = 2;

/// What was spent.
#[derive(Clone, Copy, Default, Debug)]
pub struct Budget {
    spent: usize,
}

impl Budget {
    /// How many candidates may be looked at at `at`, counted from the beginning of the history, of those wanted.
    #[inline]
    #[must_use]
    pub fn depth(&self, at: usize, wanted: usize) -> usize {
        if self.spent <= ADVANCE + EARNED * at {
            wanted
        } else {
            wanted.min(SHALLOW)
        }
    }

    /// Steps spent so far.
    #[must_use]
    pub fn spent(&self) -> usize {
        self.spent
    }

    #[inline]
    pub fn spend(&mut self, steps: usize) {
        self.spent += steps;
    }
}

/// Steps that it takes to see that so many bytes are the same.
#[inline]
#[must_use]
pub fn steps(len: usize) -> usize {
    COMPARING + len / STRIDE
}

#[cfg(test)]
mod tests {
    use super::{ADVANCE, Budget, EARNED};

    #[test]
    fn who_has_spent_all_looks_at_little_until_more_is_earned() {
        let mut budget = Budget::default();
        budget.spend(ADVANCE + 10 * EARNED);
        assert_eq!(
            [4096, 4, 2],
            [(10, 4096), (9, 4096), (9, 2)].map(|(at, n)| budget.depth(at, n))
        );
    }
}
