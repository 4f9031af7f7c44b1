//! The runs that code lengths are written in.
//!
//! Encoders take the longest run from where they are, so that runs follow from the lengths but for two
//! questions: whether a run may go on from the literals into the distances, and how seven or eight repeats,
//! which no two full runs make up, are dealt out. Where an encoder does otherwise, its runs are coded one by
//! one.

use super::Error;
use super::coder::{Coder, Counter, Tree, code_raw};
use super::codes::{CODE_LENGTHS, Lengths};
use super::dynamic::{Header, Run};

/// How an encoder writes runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Way {
    /// A run may begin among the literals and end among the distances.
    pub crosses: bool,
    /// Of a repeat that leaves one or two after runs of six, the last two runs share.
    pub shares: bool,
}

impl Way {
    fn of_number(number: usize) -> Self {
        Self {
            crosses: number & 1 != 0,
            shares: number & 2 != 0,
        }
    }

    fn number(self) -> usize {
        usize::from(self.crosses) | usize::from(self.shares) << 1
    }
}

/// The lengths that a header writes, one after the other.
#[must_use]
pub fn join(lengths: &Lengths, literals: usize, distances: usize) -> Vec<u8> {
    [&lengths.literals[..literals], &lengths.distances[..distances]].concat()
}

/// How often each symbol of code lengths occurs.
#[must_use]
pub fn frequencies(runs: &[Run]) -> [u32; CODE_LENGTHS] {
    let mut frequencies = [0; CODE_LENGTHS];
    for run in runs {
        frequencies[usize::from(run.symbol)] += 1;
    }
    frequencies
}

/// The way in which a header has its runs, if it is one of those known; rather `last` than another.
#[must_use]
pub fn way(all: &[u8], header: &Header, last: Option<Way>) -> Option<Way> {
    let ways = last.into_iter().chain((0..4).map(Way::of_number));
    ways.into_iter()
        .find(|&way| header.runs == runs(all, header.literals, way))
}

/// The runs of the lengths `all`, of which the first are those of `literals` symbols.
fn runs(all: &[u8], literals: usize, way: Way) -> Vec<Run> {
    let mut runs = Vec::new();
    if way.crosses {
        add_runs(&mut runs, all, way.shares);
    } else {
        add_runs(&mut runs, &all[..literals], way.shares);
        add_runs(&mut runs, &all[literals..], way.shares);
    }
    runs
}

fn add_runs(runs: &mut Vec<Run>, lengths: &[u8], shares: bool) {
    for run in lengths.chunk_by(|a, b| a == b) {
        let (length, mut left) = (run[0], run.len());
        if length != 0 {
            runs.push(Run {
                symbol: length,
                repeat: 1,
            });
            left -= 1;
        }
        while left >= 3 {
            let (symbol, repeat) = match (length, left) {
                (0, 0..=10) => (17, left),
                (0, _) => (18, left.min(138)),
                (_, 7 | 8) if shares => (16, left.div_ceil(2)),
                _ => (16, left.min(6)),
            };
            runs.push(Run {
                symbol,
                repeat: repeat as u8,
            });
            left -= repeat;
        }
        runs.extend((0..left).map(|_| Run {
            symbol: length,
            repeat: 1,
        }));
    }
}

/// Codes runs.
#[derive(Debug)]
pub struct RunCoder {
    is_known_way: Counter,
    way: Tree,
    /// By how many equal lengths follow, whether they are zero, and whether the one before is the same.
    kinds: Vec<Tree>,
    is_longest: [Counter; 3],
}

impl Default for RunCoder {
    fn default() -> Self {
        Self::new()
    }
}

impl RunCoder {
    #[must_use]
    pub fn new() -> Self {
        Self {
            is_known_way: Counter::biased(60_000, 1),
            way: Tree::new(2),
            kinds: vec![Tree::new(2); 4 * 16],
            is_longest: [Counter::new(); 3],
        }
    }

    /// Codes the runs that the lengths `all` are written in; `way` as `way()` found it.
    ///
    /// # Errors
    ///
    /// `Error::Side` if a run is read that the lengths do not have.
    pub fn code<C: Coder>(
        &mut self,
        coder: &mut C,
        all: &[u8],
        literals: usize,
        actual: &[Run],
        maybe_way: Option<Way>,
    ) -> Result<(Vec<Run>, Option<Way>), Error> {
        if self.is_known_way.code(coder, maybe_way.is_some()) {
            let way = Way::of_number(self.way.code(coder, maybe_way.map_or(0, Way::number)));
            return Ok((runs(all, literals, way), Some(way)));
        }
        let (mut runs, mut at) = (Vec::new(), 0);
        while at < all.len() {
            let run = actual
                .get(runs.len())
                .copied()
                .unwrap_or(Run { symbol: 0, repeat: 1 });
            let run = self.code_run(coder, all, at, run)?;
            at += usize::from(run.repeat);
            runs.push(run);
        }
        Ok((runs, None))
    }

    fn code_run<C: Coder>(&mut self, coder: &mut C, all: &[u8], at: usize, run: Run) -> Result<Run, Error> {
        let length = all[at];
        let equal = all[at..]
            .iter()
            .take(138)
            .take_while(|&&other| other == length)
            .count();
        let repeats = at > 0 && all[at - 1] == length;
        let context = equal.min(15) << 2 | usize::from(length == 0) << 1 | usize::from(repeats);
        let kind = self.kinds[context].code(coder, usize::from(run.symbol.saturating_sub(15)));
        if kind == 0 {
            return Ok(Run {
                symbol: length,
                repeat: 1,
            });
        }
        let symbol = 15 + kind as u8;
        let (least, bits) = Run::range(symbol);
        let longest = equal.min(usize::from(least) + (1 << bits) - 1) as u8;
        let mut repeat = longest;
        if !self.is_longest[kind - 1].code(coder, run.repeat == longest) {
            repeat = least + code_raw(coder, u32::from(run.repeat.wrapping_sub(least)), bits) as u8;
        }
        let is_of_length = if symbol == 16 { repeats } else { length == 0 };
        if is_of_length && (least..=longest).contains(&repeat) {
            return Ok(Run { symbol, repeat });
        }
        Err(Error::Side("a run is not one of code lengths"))
    }
}
