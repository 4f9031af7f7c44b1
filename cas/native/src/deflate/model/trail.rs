//! What was coded last: the class of each position in the window, and the latest decisions.
//!
//! An encoder with a table inserts some positions and leaves others out, by what it did there: the byte after
//! a match, every third within one, the last but one. A class stands for all positions of one kind; what an
//! encoder inserts is a set of classes.

use super::super::{Token, WINDOW};
use super::params::Classes;

/// No token of it was seen.
const UNKNOWN: u8 = 0;
/// A literal directly after a match; the following ones by (run - 1) mod 6, from the 32nd on by run mod 4.
pub const LITERAL: u8 = 1;
const LITERAL_LATE: [u8; 4] = [8, 29, 30, 31];
/// First byte of a match, then its second and third, each by its phase, and its fourth.
pub const MATCH: u8 = 9;
const SECOND: u8 = 10;
const THIRD: u8 = 13;
const FOURTH: u8 = 16;
/// Bytes from the fifth on by (offset - 4) mod 3.
const MATCH_LATE: u8 = 17;
/// Last byte of a match, if it is its second, third, fourth, or later.
const LAST: u8 = 20;
/// Last but one from the fifth on, by (offset - 4) mod 3; if it is the third or fourth.
const LAST_BUT_ONE: u8 = 24;
const LAST_BUT_ONE_EARLY: u8 = 27;
/// Added to a class in a short match.
pub const SHORT: u8 = 32;
/// Classes there are, less those that are `SHORT` more.
pub const CLASSES: u8 = 32;

/// Literals and first bytes of matches; last bytes; those from the fifth on.
pub const BEGINS: Classes = 0xE000_03FF;
pub const ENDS: Classes = 0x00F0_0000;
pub const WITHIN: Classes = 0x000E_0000;

/// Classes in 4 bits, for contexts.
const FOLDED: [u8; 32] = [
    0, 1, 2, 3, 4, 2, 3, 4, 5, 6, 7, 7, 7, 8, 8, 8, 9, 10, 10, 10, 11, 11, 11, 12, 13, 13, 13, 14, 14, 5, 5,
    5,
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

    /// Notes a token. Where its encoder hit upon a match `late` bytes after its start, those bytes are of the
    /// classes of literals, as it came to them like to those.
    pub fn accept(&mut self, pos: usize, token: Token, late: usize) {
        self.literals = self.literals << 1 | u32::from(token.is_literal());
        if token.is_literal() {
            self.classes[pos & MASK] = literal_class(self.run);
            self.run += 1;
            return;
        }
        let kind = if token.len() <= self.short { SHORT } else { 0 };
        let phase = self.phase(0);
        for at in 0..token.len() {
            self.classes[(pos + at) & MASK] = match_class(at, token.len(), phase) | kind;
        }
        if late > 0 {
            self.note_late(pos, token.len(), late.min(token.len() - 1), kind);
        }
        self.run = 0;
        self.dist = token.dist();
    }

    fn note_late(&mut self, pos: usize, len: usize, late: usize, kind: u8) {
        let phase = self.phase(late);
        for at in 0..late {
            self.classes[(pos + at) & MASK] = literal_class(self.run + at as u32);
        }
        for (after, class) in [MATCH, SECOND + phase, THIRD + phase].into_iter().enumerate() {
            if late + after + 2 < len {
                self.classes[(pos + late + after) & MASK] = class | kind;
            }
        }
    }

    /// Where an encoder that looks up two of three positions is when it comes upon a match.
    fn phase(&self, late: usize) -> u8 {
        ((self.run as usize + late) % 3) as u8
    }

    /// Positions that no token is known of.
    pub fn forget(&mut self, from: usize, to: usize) {
        for pos in from.max(to.saturating_sub(WINDOW))..to {
            self.classes[pos & MASK] = UNKNOWN;
        }
    }

    /// The class of a position of the last 32768, below 64.
    #[inline]
    #[must_use]
    pub fn class(&self, pos: usize) -> u8 {
        self.classes[pos & MASK] & 63
    }

    /// Whether a position of the last 32768 is of one of the classes.
    #[inline]
    #[must_use]
    pub fn is_in(&self, classes: Classes, pos: usize) -> bool {
        classes >> self.class(pos) & 1 != 0
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

/// Class of a literal after `run` others.
#[must_use]
pub fn literal_class(run: u32) -> u8 {
    match run {
        0 => LITERAL,
        1..32 => LITERAL + 1 + ((run - 1) % 6) as u8,
        _ => LITERAL_LATE[run as usize % 4],
    }
}

#[inline]
fn match_class(at: usize, len: usize, phase: u8) -> u8 {
    let third = (at.max(4) - 4) as u8 % 3;
    match (at, len - 1 - at) {
        (0, _) => MATCH,
        (_, 0) => LAST + at.min(4) as u8 - 1,
        (2 | 3, 1) => LAST_BUT_ONE_EARLY + at as u8 - 2,
        (1, _) => SECOND + phase,
        (2, _) => THIRD + phase,
        (3, _) => FOURTH,
        (_, 1) => LAST_BUT_ONE + third,
        _ => MATCH_LATE + third,
    }
}
