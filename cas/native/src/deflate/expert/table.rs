//! Encoders with one table that write the match it gives at each position, if it gives one: level 1 of
//! libdeflate, zlib-ng and miniz, ISA-L.

use super::bytes::{common, load32};
use super::links::crc_word;
use super::plan::{Plan, Planned, Scanner};
use super::slots::Slots;
use crate::deflate::{Token, WINDOW};

/// Which encoder.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rule {
    /// Level 1 of libdeflate: the longer of two, all positions put in.
    Libdeflate,
    /// Level 1 of zlib-ng: one position, only starts of tokens put in.
    Quick,
    /// Level 1 of miniz: one position by three bytes, only starts of tokens put in, and no match out of the 4 KiB that it
    /// looks at at a time.
    Miniz,
    /// ISA-L: one position by CRC-32C, in a table of so many bits.
    Isal(Isal),
}

/// Levels of ISA-L.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Isal {
    pub bits: u32,
}

/// Shortest match.
const MIN: usize = 4;
/// What ISA-L sees of a match at once.
const LONG: usize = 8;
/// Positions in one find.
const STEPS: usize = 256;
/// A match of libdeflate's that is long enough not to look for another.
const NICE: usize = 32;

pub struct Table {
    rule: Rule,
    slots: Slots<{ 1 << 16 }, 2>,
    at: usize,
    end: usize,
    /// The match found last.
    last: Plan,
    /// How far miniz sees.
    edge: usize,
}

/// What miniz sees at once: it begins with so much whenever a block begins, and takes in as much again when all
/// is written. It looks for no matches in the last three bytes.
const SIGHT: usize = 4096;
const ENOUGH: usize = 4;
/// A match of three bytes of miniz' is nearer than this.
const NEAR: usize = 8192;

impl Table {
    /// The expert at `start`, having parsed the history.
    pub fn expert(rule: Rule, data: &[u8], start: usize) -> Planned<Self> {
        let mut table = Self {
            rule,
            slots: Slots::new(),
            at: 0,
            end: start,
            last: Plan::default(),
            edge: SIGHT,
        };
        while table.at < start {
            let plan = table.find(data, usize::MAX);
            table.matched(data, plan.at, plan.at + plan.len, true);
        }
        Planned::new(table, start)
    }

    #[inline]
    fn hash(&self, word: u32) -> usize {
        match self.rule {
            Rule::Libdeflate => (word.wrapping_mul(0x1E35_A7BD) >> 17) as usize,
            Rule::Quick => (word.wrapping_mul(2_654_435_761) >> 16) as usize,
            Rule::Miniz => {
                let three = word & 0x00FF_FFFF;
                (three ^ three >> 17) as usize & 0xFFF
            }
            Rule::Isal(isal) => crc_word(word) as usize & ((1 << isal.bits) - 1),
        }
    }

    /// Furthest distance.
    fn reach(&self) -> usize {
        match self.rule {
            Rule::Libdeflate => WINDOW - 1,
            Rule::Quick => WINDOW - 262,
            Rule::Isal(_) | Rule::Miniz => WINDOW,
        }
    }

    /// The match of miniz' at `at`, as `probe` gives it.
    #[inline]
    fn probe_miniz(&mut self, data: &[u8], at: usize) -> (usize, usize) {
        while at >= self.edge {
            self.edge += SIGHT;
        }
        let edge = self.edge.min(data.len());
        if at + ENOUGH > edge {
            return (0, 0);
        }
        let word = load32(data, at);
        let hash = self.hash(word);
        let [back, _] = self.slots.back(hash, at);
        self.slots.put(hash, at);
        let reach = WINDOW - (self.edge - at);
        if back.wrapping_sub(1) >= reach || back > at || (load32(data, at - back) ^ word) << 8 != 0 {
            return (0, 0);
        }
        let len = common(data, at - back, at, Token::MAX_LEN.min(data.len() - at));
        if len == Token::MIN_LEN && back >= NEAR {
            return (0, 0);
        }
        (len.min(edge - at), back)
    }

    #[inline]
    fn put(&mut self, data: &[u8], at: usize) {
        let hash = self.hash(load32(data, at));
        self.slots.put(hash, at);
    }

    /// The match at `at`, which is put in: length (0 for none) and distance.
    #[inline]
    fn probe(&mut self, data: &[u8], at: usize) -> (usize, usize) {
        let word = load32(data, at);
        let hash = self.hash(word);
        let [first, second] = self.slots.back(hash, at);
        self.slots.put(hash, at);
        let reach = self.reach();
        let max = Token::MAX_LEN.min(data.len() - at);
        let len = |back: usize| {
            let is_match = back.wrapping_sub(1) < reach && back <= at && load32(data, at - back) == word;
            if is_match {
                common(data, at - back, at, max)
            } else {
                0
            }
        };
        let one = len(first);
        if self.rule != Rule::Libdeflate || one >= NICE || first > reach {
            return (one, first);
        }
        let two = len(second);
        if two > one { (two, second) } else { (one, first) }
    }
}

impl Table {
    /// ISA-L looks at two positions at a time, and takes a match of 8 bytes at the second rather than a
    /// shorter one at the first.
    fn find_pair(&mut self, data: &[u8]) -> Plan {
        let stop = self.end.min(self.at + STEPS);
        while self.at < stop {
            let (at, next) = (self.at, self.at + 1);
            let one = self.probe(data, at);
            let two = if next < data.len() {
                self.probe(data, next)
            } else {
                (0, 0)
            };
            if one.0 >= MIN && (one.0 >= LONG || two.0 < LONG) {
                return Plan {
                    at,
                    len: one.0,
                    dist: one.1,
                };
            }
            if two.0 >= MIN {
                return Plan {
                    at: next,
                    len: two.0,
                    dist: two.1,
                };
            }
            self.at += 2;
        }
        Plan {
            at: self.at,
            len: 0,
            dist: 0,
        }
    }
}

impl Table {
    fn find_miniz(&mut self, data: &[u8]) -> Plan {
        let stop = self.end.min(self.at + STEPS);
        while self.at < stop {
            let (len, dist) = self.probe_miniz(data, self.at);
            if len > 0 {
                self.last = Plan {
                    at: self.at,
                    len,
                    dist,
                };
                return self.last;
            }
            self.at += 1;
        }
        Plan {
            at: self.at,
            len: 0,
            dist: 0,
        }
    }
}

impl Scanner for Table {
    fn begin(&mut self, _data: &[u8], pos: usize, end: usize, _sync: bool) {
        (self.at, self.end, self.edge) = (pos, end, pos + SIGHT);
    }

    fn find(&mut self, data: &[u8], _longest: usize) -> Plan {
        match self.rule {
            Rule::Isal(_) => return self.find_pair(data),
            Rule::Miniz => return self.find_miniz(data),
            Rule::Libdeflate | Rule::Quick => (),
        }
        let stop = self.end.min(self.at + STEPS);
        while self.at < stop {
            let (len, dist) = self.probe(data, self.at);
            if len >= MIN {
                return Plan {
                    at: self.at,
                    len,
                    dist,
                };
            }
            self.at += 1;
        }
        Plan {
            at: self.at,
            len: 0,
            dist: 0,
        }
    }

    fn matched(&mut self, data: &[u8], at: usize, end: usize, planned: bool) {
        if !planned && at == self.last.at && end < at + self.last.len {
            // It stopped where miniz saw no more.
            self.edge = end + SIGHT;
        }
        // Of the inside of a match these have all, nothing, and a little.
        let inside = match self.rule {
            Rule::Libdeflate => end,
            Rule::Quick | Rule::Miniz => at,
            Rule::Isal(_) => end.min(at + 4),
        };
        for between in at + 1..inside {
            self.put(data, between);
        }
        self.at = end;
    }

    fn chunk_end(&self) -> usize {
        self.end
    }
}
