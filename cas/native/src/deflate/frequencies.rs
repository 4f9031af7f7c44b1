//! How often each symbol occurs in a block.

use super::Token;
use super::codes::{DISTANCE_BASE, DISTANCES, END, LITERALS, Lengths, distance_slot, length_slot};
use super::dynamic::MAX_LITERALS;
use super::huffman::{Rule, lengths};

/// Counts of the symbols that can occur.
#[derive(Clone, Debug)]
pub struct Frequencies {
    literals: [u32; MAX_LITERALS],
    distances: [u32; DISTANCE_BASE.len()],
}

impl Frequencies {
    /// Of the tokens of a block whose plain bytes begin at `at`, and of its end, wherever that is.
    #[must_use]
    pub fn count(data: &[u8], mut at: usize, tokens: &[Token]) -> Self {
        let mut literals = [0; MAX_LITERALS];
        let mut distances = [0; DISTANCE_BASE.len()];
        literals[END] = 1;
        for &token in tokens {
            if token.is_literal() {
                literals[usize::from(data[at])] += 1;
            } else {
                literals[END + 1 + length_slot(token)] += 1;
                distances[distance_slot(token.dist())] += 1;
            }
            at += token.len();
        }
        Self { literals, distances }
    }

    /// Code lengths by a rule.
    #[must_use]
    pub fn lengths(&self, rule: Rule) -> Lengths {
        let mut all = Lengths {
            literals: [0; LITERALS],
            distances: [0; DISTANCES],
        };
        all.literals[..MAX_LITERALS].copy_from_slice(&lengths(rule, &self.literals, 15));
        let distances = lengths(rule, &self.distances, 15);
        all.distances[..distances.len()].copy_from_slice(&distances);
        if rule != Rule::Heap && distances.iter().all(|&length| length == 0) {
            all.distances[0] = 1;
        }
        all
    }
}
