//! The next match of an encoder that looks into its tables from time to time.
//!
//! Such an encoder walks over the bytes, not always over each, looks each one up that it comes to, and takes
//! the first match it hits upon, from as far back as it goes. So a match can begin before the position that
//! was looked up. Some also look up where such a match ends, for a longer one that overlaps it.

use super::super::WINDOW;
use super::LONGEST;
use super::chain::{Match, match_len};
use super::table::Table;
use super::trail::{LITERAL, MATCH, literal_class};

/// A match with a start of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Planned {
    pub start: usize,
    pub end: usize,
    pub dist: usize,
}

/// What would come next if everything up to it were literals.
#[derive(Clone, Copy, Debug)]
pub struct Forecast {
    /// The position that was looked up.
    pub hit: usize,
    pub first: Planned,
    /// One that overlaps it and is longer.
    pub instead: Option<Planned>,
}

/// Positions that are looked up ahead.
const AHEAD: usize = 8;
/// Matches shorter than this are looked up at their end, where a table hashes at least so many bytes.
const SHORT_OF: usize = 30;
const WIDE: u32 = 6;
/// How far after its start an overlapping match has to hold.
const LATER: usize = 2;

/// Keeps a forecast until it is past.
#[derive(Debug, Default)]
pub struct Outlook {
    forecast: Option<Forecast>,
    /// Before this nothing was found that is still to come.
    clear: usize,
}

impl Outlook {
    /// For `pos`, which `run` literals are before, in a block up to `end`.
    #[inline]
    pub fn update(&mut self, tables: &[Table], data: &[u8], (pos, end): (usize, usize), run: u32) {
        if run == 0 {
            self.clear = pos;
            self.forecast = None;
        }
        if self.forecast.is_none_or(|forecast| forecast.hit < pos) && !tables.is_empty() {
            self.forecast = self.find(tables, data, (pos, end), run);
        }
    }

    #[inline]
    #[must_use]
    pub fn forecast(&self) -> Option<&Forecast> {
        self.forecast.as_ref()
    }

    /// How far after `pos` the encoder came upon the match of this distance.
    #[inline]
    #[must_use]
    pub fn lateness(&self, pos: usize, dist: usize) -> usize {
        self.forecast
            .filter(|forecast| forecast.first.dist == dist)
            .map_or(0, |forecast| forecast.hit - pos)
    }

    fn find(
        &mut self,
        tables: &[Table],
        data: &[u8],
        (pos, end): (usize, usize),
        run: u32,
    ) -> Option<Forecast> {
        let to = end.min(pos + AHEAD + 1);
        for at in self.clear.max(pos)..to {
            let class = literal_class(run + (at - pos) as u32);
            self.clear = at + 1;
            let Some(found) = best(tables, data, at, end, class) else {
                continue;
            };
            let earliest = pos - (run as usize).min(pos);
            let (len, dist) = (usize::from(found.len), usize::from(found.dist));
            let first = extend_back(
                data,
                earliest,
                Planned {
                    start: at,
                    end: at + len,
                    dist,
                },
            );
            let instead = overlapping(tables, data, (at, len, end), earliest);
            return Some(Forecast {
                hit: at,
                first,
                instead,
            });
        }
        None
    }
}

/// The longest match at `pos` in the tables that positions of its class, or of matches, are inserted in.
fn best(tables: &[Table], data: &[u8], pos: usize, end: usize, class: u8) -> Option<Match> {
    let max = (end - pos).min(LONGEST);
    if max < 4 {
        return None;
    }
    let mut best = Match::default();
    for table in tables {
        let inserted = table.params().inserted;
        if (inserted >> class | inserted >> MATCH & u64::from(class == LITERAL)) & 1 == 0 {
            continue;
        }
        for old in table.find(data, pos).into_iter().flatten() {
            let len = match_len(data, old, pos, max);
            if len > usize::from(best.len) {
                best = Match::new(len, pos - old);
            }
        }
    }
    (best.len > 0).then_some(best)
}

fn extend_back(data: &[u8], earliest: usize, mut planned: Planned) -> Planned {
    let lowest = earliest.max(planned.dist);
    while planned.start > lowest && data[planned.start - 1] == data[planned.start - 1 - planned.dist] {
        planned.start -= 1;
    }
    planned
}

fn overlapping(
    tables: &[Table],
    data: &[u8],
    (hit, len, end): (usize, usize, usize),
    earliest: usize,
) -> Option<Planned> {
    let widest = tables
        .iter()
        .filter(|table| table.bytes() >= WIDE)
        .max_by_key(|table| table.bytes())?;
    let (after, start) = (hit + len, hit + LATER);
    if len >= SHORT_OF || after + 4 > data.len() {
        return None;
    }
    let dist = after - widest.find(data, after)[0]?;
    if dist > start || dist > WINDOW {
        return None;
    }
    let other = match_len(data, start - dist, start, (end - start).min(LONGEST));
    (other > len).then(|| {
        extend_back(
            data,
            earliest,
            Planned {
                start,
                end: start + other,
                dist,
            },
        )
    })
}
