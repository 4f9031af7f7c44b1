//! Matches that are no candidate, spelt out.

use super::super::coder::Coder;
use super::super::codes;
use super::super::counter::{Counter, Tree, code_raw};
use super::chain::Match;
use super::groups::Candidate;

/// Candidates among which a shortened match is looked for.
const MOST_RANKS: usize = 16;

/// Codes a length, then which candidate was cut to it, or else the distance.
#[derive(Debug)]
pub struct Escape {
    len: Tree,
    ranks: [Counter; MOST_RANKS],
    slot: Tree,
}

impl Escape {
    #[must_use]
    pub fn new() -> Self {
        Self {
            len: Tree::new(8),
            ranks: [Counter::new(); MOST_RANKS],
            slot: Tree::new(5),
        }
    }

    /// A decoder may give any match: whether it can be is the caller's to check. A distance of 0 never can.
    pub fn code<C: Coder>(&mut self, coder: &mut C, candidates: &[Candidate], actual: Match) -> Match {
        let len = self
            .len
            .code(coder, usize::from(actual.len.wrapping_sub(3)) & 255) as u16
            + 3;
        let longer = candidates
            .iter()
            .map(|candidate| candidate.found)
            .filter(|found| found.len >= len);
        for (found, counter) in longer.zip(&mut self.ranks) {
            if counter.code(coder, found.dist == actual.dist) {
                return Match {
                    len,
                    dist: found.dist,
                };
            }
        }
        Match {
            len,
            dist: self.dist(coder, actual.dist),
        }
    }

    fn dist<C: Coder>(&mut self, coder: &mut C, dist: u16) -> u16 {
        let slot = codes::distance_slot(usize::from(dist).max(1));
        let slot = self.slot.code(coder, slot);
        let (Some(&base), Some(&extra)) = (codes::DISTANCE_BASE.get(slot), codes::DISTANCE_EXTRA.get(slot))
        else {
            return 0;
        };
        base + code_raw(coder, u32::from(dist.wrapping_sub(base)), u32::from(extra)) as u16
    }
}
