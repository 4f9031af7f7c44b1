//! The candidates of a position in groups of one length, the longest first.

use super::chain::Match;

/// A candidate and its place in the order they were found in.
#[derive(Clone, Copy, Debug, Default)]
pub struct Candidate {
    pub found: Match,
    pub rank: u32,
    /// Index of the next one of the same length, or `NONE`.
    pub following: u16,
}

/// Candidates of one length, in the order they were found in.
#[derive(Clone, Copy, Debug, Default)]
pub struct Group {
    pub len: u16,
    pub size: u16,
    /// Index of its first candidate.
    pub first: u16,
    last: u16,
}

pub const NONE: u16 = u16::MAX;
/// Groups that are told apart; a match in a later one is spelt out.
pub const MOST_GROUPS: usize = 24;

const LENGTHS: usize = 259;
const WORDS: usize = LENGTHS.div_ceil(64);

/// Filled anew for each match.
#[derive(Debug)]
pub struct Groups {
    candidates: Vec<Candidate>,
    by_len: Vec<Group>,
    used: [u64; WORDS],
    order: Vec<Group>,
}

impl Groups {
    #[must_use]
    pub fn new() -> Self {
        let by_len = vec![Group::default(); LENGTHS];
        Self {
            candidates: Vec::new(),
            by_len,
            used: [0; WORDS],
            order: Vec::with_capacity(MOST_GROUPS),
        }
    }

    /// Takes the matches found: first those of tables, of which some may be none, then those of a chain.
    pub fn fill(&mut self, looked: &[Match], found: &[Match]) {
        self.candidates.clear();
        self.used = [0; WORDS];
        for &found in looked {
            if found.len > 0 && !self.has(found.dist) {
                self.add(found);
            }
        }
        let from_tables = self.candidates.len();
        for &found in found {
            if !self.candidates[..from_tables]
                .iter()
                .any(|candidate| candidate.found.dist == found.dist)
            {
                self.add(found);
            }
        }
        self.sort();
    }

    fn has(&self, dist: u16) -> bool {
        self.candidates
            .iter()
            .any(|candidate| candidate.found.dist == dist)
    }

    #[inline]
    fn add(&mut self, found: Match) {
        let index = self.candidates.len() as u16;
        self.candidates.push(Candidate {
            found,
            rank: u32::from(index),
            following: NONE,
        });
        let len = usize::from(found.len);
        let group = &mut self.by_len[len];
        let bit = 1 << (len % 64);
        if self.used[len / 64] & bit == 0 {
            self.used[len / 64] |= bit;
            *group = Group {
                len: found.len,
                size: 1,
                first: index,
                last: index,
            };
        } else {
            self.candidates[usize::from(group.last)].following = index;
            group.last = index;
            group.size += 1;
        }
    }

    fn sort(&mut self) {
        self.order.clear();
        for word in (0..WORDS).rev() {
            let mut bits = self.used[word];
            while bits != 0 && self.order.len() < MOST_GROUPS {
                let highest = bits.ilog2() as usize;
                bits &= !(1 << highest);
                self.order.push(self.by_len[word * 64 + highest]);
            }
        }
    }

    /// Longest first.
    #[inline]
    #[must_use]
    pub fn order(&self) -> &[Group] {
        &self.order
    }

    #[inline]
    #[must_use]
    pub fn candidate(&self, index: u16) -> &Candidate {
        &self.candidates[usize::from(index)]
    }

    /// All candidates, in the order they were found in.
    #[must_use]
    pub fn all(&self) -> &[Candidate] {
        &self.candidates
    }
}
