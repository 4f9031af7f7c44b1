//! What a decision about a position is made from, the same for encoder and decoder.

use super::chain::{Found, Match};
use super::forecast::{Forecast, Planned};
use super::table::{Looked, WAYS};
use super::trail::Trail;

/// The matches at a position and at the next one, and what came before, in the small numbers that contexts
/// are made of.
#[derive(Clone, Copy, Debug)]
pub struct Scene {
    /// What tables give here and at the next position.
    pub here: Looked,
    pub ahead: Looked,
    /// Longest match here and at the next position.
    pub best: Match,
    pub next: Match,
    /// Nearest matches of at least 4 and 7 bytes here.
    pub near4: Match,
    pub near7: Match,
    /// The same at the next position.
    pub next4: Match,
    pub next7: Match,
    /// Folded classes of what those are copies of.
    pub class_best: u32,
    pub class4: u32,
    pub class7: u32,
    pub class_next4: u32,
    pub class_next7: u32,
    /// How far off the next hit is, at most 14, or 15 for none, and what is made of it.
    pub hit: u32,
    pub first: Plan,
    pub instead: Plan,
    /// The last match going on.
    pub repeat: Match,
    /// Matches found here, at most 7.
    pub count: u32,
    pub run: u32,
    pub literals: u32,
    pub longest: u32,
    pub last_dist: usize,
}

/// A planned match as seen from a position.
#[derive(Clone, Copy, Debug, Default)]
pub struct Plan {
    /// 0 for none, 1 if it begins later, 2 here, 3 before.
    pub when: u32,
    /// What is left of it, if it does not begin later.
    pub rest: Match,
}

impl Plan {
    fn new(pos: usize, planned: Option<Planned>) -> Self {
        let Some(planned) = planned else {
            return Self::default();
        };
        if planned.start > pos {
            return Self {
                when: 1,
                rest: Match::default(),
            };
        }
        let len = planned.end.saturating_sub(pos).min(super::LONGEST);
        let rest = if len < 3 {
            Match::default()
        } else {
            Match::new(len, planned.dist)
        };
        Self {
            when: 2 + u32::from(planned.start < pos),
            rest,
        }
    }

    /// Whether it is this match.
    #[inline]
    #[must_use]
    pub fn is(self, found: Match) -> u32 {
        u32::from(self.rest == found)
    }
}

impl Scene {
    #[must_use]
    pub fn new(
        pos: usize,
        [here, ahead]: [&Found; 2],
        looked: [Looked; 2],
        forecast: Option<&Forecast>,
        repeat: Match,
        trail: &Trail,
    ) -> Self {
        let first = Plan::new(pos, forecast.map(|forecast| forecast.first));
        let instead = Plan::new(pos, forecast.and_then(|forecast| forecast.instead));
        let best = [here.best, repeat, first.rest, instead.rest]
            .into_iter()
            .fold(looked[0].best, longer);
        Self {
            here: looked[0],
            ahead: looked[1],
            best,
            next: longer(looked[1].best, ahead.best),
            near4: here.near4,
            near7: here.near7,
            next4: ahead.near4,
            next7: ahead.near7,
            class_best: trail.folded(pos, best.dist),
            class4: trail.folded(pos, here.near4.dist),
            class7: trail.folded(pos, here.near7.dist),
            class_next4: trail.folded(pos + 1, ahead.near4.dist),
            class_next7: trail.folded(pos + 1, ahead.near7.dist),
            hit: forecast.map_or(15, |forecast| (forecast.hit - pos).min(14) as u32),
            first,
            instead,
            repeat,
            count: here.list().len().min(7) as u32,
            run: trail.run,
            literals: trail.literals,
            longest: trail.longest,
            last_dist: trail.dist,
        }
    }

    /// All matches that tables give here, those of plans behind the others; of length 0 where there is none.
    #[must_use]
    pub fn looked(&self) -> [Match; WAYS + 3] {
        let [a, b, c, d] = self.here.ways;
        [a, b, c, d, self.first.rest, self.instead.rest, self.repeat]
    }

    /// Whether the last token was a literal.
    #[inline]
    #[must_use]
    pub fn after_literal(&self) -> u32 {
        self.literals & 1
    }

    /// How much longer the best match at the next position is, -3 to 4, as 0 to 7.
    #[inline]
    #[must_use]
    pub fn gain(&self) -> u32 {
        clip(i32::from(self.next.len) - i32::from(self.best.len), -3, 4)
    }

    /// The same of what tables give, 0 also for nothing from them.
    #[inline]
    #[must_use]
    pub fn table_gain(&self) -> u32 {
        clip(
            i32::from(self.ahead.best.len) - i32::from(self.here.best.len),
            -3,
            4,
        )
    }

    #[inline]
    #[must_use]
    pub fn is_next_longer(&self) -> u32 {
        u32::from(self.next.len > self.best.len)
    }
}

/// The longer one, the first if they are equal.
fn longer(a: Match, b: Match) -> Match {
    if b.len > a.len { b } else { a }
}

/// `value` held between the two, counted from the lower.
#[inline]
#[must_use]
pub fn clip(value: i32, least: i32, most: i32) -> u32 {
    (value.clamp(least, most) - least) as u32
}

/// Lengths in 4 bits: 0 for none, 3 to 8 each, then ever wider, 258 alone.
#[inline]
#[must_use]
pub fn length_bucket(len: u16) -> u32 {
    u32::from(LENGTH_BUCKETS[usize::from(len.min(258))])
}

static LENGTH_BUCKETS: [u8; 259] = {
    let mut buckets = [0; 259];
    let mut len = 3;
    while len < 259 {
        buckets[len] = match len {
            3..=8 => len as u8 - 2,
            9..=10 => 7,
            11..=12 => 8,
            13..=15 => 9,
            16..=19 => 10,
            20..=31 => 11,
            32..=63 => 12,
            64..=127 => 13,
            128..=257 => 14,
            _ => 15,
        };
        len += 1;
    }
    buckets
};

/// Whole part of the logarithm of a distance, 0 to 15; 0 also for none.
#[inline]
#[must_use]
pub fn log2(dist: u16) -> u32 {
    u32::from(dist | 1).ilog2()
}

/// The logarithm of a distance in half steps, 0 to 30.
#[inline]
#[must_use]
pub fn log2_halves(dist: u16) -> u32 {
    let whole = log2(dist);
    2 * whole
        + if whole > 0 {
            u32::from(dist) >> (whole - 1) & 1
        } else {
            0
        }
}

/// A count in 3 bits: 0 to 3 each, then 4-7, 8-15, 16-31, and more.
#[inline]
#[must_use]
pub fn count_bucket(count: u32) -> u32 {
    if count < 4 {
        count
    } else {
        (count.ilog2() + 2).min(7)
    }
}
