//! How often each symbol occurs in a block.

use super::Token;
use super::codes::{
    DISTANCE_BASE, DISTANCES, END, LITERALS, Lengths, PLACES, distance_slot, length_slot, place,
    place_of_length,
};
use super::dynamic::MAX_LITERALS;
use super::huffman::{Rule, lengths};

/// Counts of distances that are kept beside each other: with one, each literal would wait for the count of the one
/// before.
const LANES: usize = 8;

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
        let mut places = [0; PLACES];
        let mut slots = [[0; DISTANCES]; LANES];
        for &token in tokens {
            places[place(token, data[at])] += 1;
            slots[at % LANES][distance_slot(token.dist())] += 1;
            at += token.len();
        }
        let mut literals = [0; MAX_LITERALS];
        literals[..END].copy_from_slice(&places[..END]);
        literals[END] = 1;
        for (len, is_odd) in (Token::MIN_LEN..=Token::MAX_LEN)
            .map(|len| (len, false))
            .chain([(Token::MAX_LEN, true)])
        {
            literals[END + 1 + length_slot(len, is_odd)] += places[place_of_length(len, is_odd)];
        }
        let distances = std::array::from_fn(|slot| slots.iter().map(|lane| lane[slot]).sum());
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
