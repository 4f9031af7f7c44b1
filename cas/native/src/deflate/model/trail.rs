//! What was coded last: the class of each position in the window, and the latest decisions.
//!
//! An encoder with a table inserts some positions and leaves others out, by what it did there: the byte after
//! a match, every third within one, the last but one. A class stands for all positions of one kind; what an
//! encoder inserts is a set of classes.

use super::super::{Token, WINDOW};
use super::params::Classes;

/// No token of it was seen.
const UNKNOWN: u8 = 0;
/// A literal directly after a match; the following ones by (run - 1) mod 6, from the 32nd on all alike.
const LITERAL: u8 = 1;
const LITERAL_LATE: u8 = 8;
/// First byte of a match, then its second to fourth, then the others by (offset - 4) mod 3.
const MATCH: u8 = 10;
const MATCH_LATE: u8 = 14;
/// Last byte of a match, if it is its second, third, fourth, or later.
const LAST: u8 = 17;
/// Last but one from the fifth on, by (offset - 4) mod 3.
const LAST_BUT_ONE: u8 = 21;
/// Added to a class in a short match.
const SHORT: u8 = 32;

/// Classes in 4 bits, for contexts.
const FOLDED: [u8; 32] = [
    0, 1, 2, 3, 4, 2, 3, 4, 5, 0, 7, 8, 9, 10, 11, 11, 11, 12, 12, 12, 13, 14, 14, 14, 0, 0, 0, 0, 0, 0, 0, 0,
];

const MASK: usize = WINDOW - 1;

/// Follows the tokens, whoever foretold them.
#[derive(Debug)]
pub struct Trail {
    classes: Vec<u8>,
    short: usize,
    /// Literals since the last match.
    pub run: u32,
    /// The latest decisions, newest lowest, 1 a literal.
    pub literals: u32,
    /// Distance of the last match, or 0.
    pub dist: usize,
    /// For the latest matches whether they were the longest, newest lowest.
    pub longest: u32,
}

impl Trail {
    /// Matches of at most `short` bytes have classes of their own.
    #[must_use]
    pub fn new(short: u16) -> Self {
        let classes = vec![UNKNOWN; WINDOW];
        Self {
            classes,
            short: usize::from(short),
            run: 0,
            literals: 0,
            dist: 0,
            longest: 0,
        }
    }

    pub fn accept(&mut self, pos: usize, token: Token) {
        self.literals = self.literals << 1 | u32::from(token.is_literal());
        if token.is_literal() {
            self.classes[pos & MASK] = literal_class(self.run);
            self.run += 1;
            return;
        }
        let kind = if token.len() <= self.short { SHORT } else { 0 };
        for at in 0..token.len() {
            self.classes[(pos + at) & MASK] = match_class(at, token.len()) | kind;
        }
        self.run = 0;
        self.dist = token.dist();
    }

    /// Positions that no token is known of.
    pub fn forget(&mut self, from: usize, to: usize) {
        for pos in from.max(to.saturating_sub(WINDOW))..to {
            self.classes[pos & MASK] = UNKNOWN;
        }
    }

    /// Whether a position of the last 32768 is of one of the classes.
    #[inline]
    #[must_use]
    pub fn is_in(&self, classes: Classes, pos: usize) -> bool {
        classes >> (self.classes[pos & MASK] & 63) & 1 != 0
    }

    /// The class of what lies `dist` before `pos`, in 4 bits; 0 also for no distance.
    #[inline]
    #[must_use]
    pub fn folded(&self, pos: usize, dist: u16) -> u32 {
        if dist == 0 {
            return 0;
        }
        u32::from(FOLDED[usize::from(self.classes[pos.wrapping_sub(usize::from(dist)) & MASK] & 31)])
    }
}

fn literal_class(run: u32) -> u8 {
    match run {
        0 => LITERAL,
        1..32 => LITERAL + 1 + ((run - 1) % 6) as u8,
        _ => LITERAL_LATE,
    }
}

#[inline]
fn match_class(at: usize, len: usize) -> u8 {
    let third = at.saturating_sub(4) % 3;
    match (at, len - 1 - at) {
        (0, _) => MATCH,
        (_, 0) => LAST + at.min(4) as u8 - 1,
        (1..=3, _) => MATCH + at as u8,
        (_, 1) => LAST_BUT_ONE + third as u8,
        _ => MATCH_LATE + third as u8,
    }
}
