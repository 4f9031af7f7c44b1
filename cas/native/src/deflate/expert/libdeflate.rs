//! Levels 2 to 9 of libdeflate: hash chains of four bytes, and the last position with the same three.
//!
//! The greedy ones write the longest match. The lazy ones compare it with those at the next position, or the
//! next two, and weigh distances too: four times the gain in length and the gain in bits of the distance. The
//! shortest match worth writing depends on how many different literals there are: at first those in the first
//! 4 KiB of a block, then, for the lazy, those often used in it.
//!
//! Method: that of the compressor by Eric Biggers (MIT licence); written anew.

use super::Expert;
use super::bytes::load32;
use super::links::{Found, Hash, Links, Want};
use super::slots::Slots;
use crate::deflate::{Token, WINDOW};

/// The numbers by which levels differ.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rule {
    pub depth: usize,
    pub nice: usize,
    /// How many positions further on are looked at: 0 to 2.
    pub lazy: usize,
}

/// A match of three bytes may be no further back: for the greedy, and for the lazy.
const NEAR: [usize; 2] = [4096, 8192];
/// Plain bytes in which literals are counted at a block's start, and when it is long enough to count at all.
const SAMPLE: usize = 4096;
const TINY: usize = 512;
/// From here on in a block literals are counted anew.
const RECOUNT: usize = 10_000;
const NOWHERE: usize = usize::MAX;

pub struct Libdeflate {
    rule: Rule,
    links: Links,
    threes: Slots<{ 1 << 15 }, 1>,
    /// First position that is not in `threes`.
    next: usize,
    end: usize,
    begin: usize,
    literals: Box<[u32; 256]>,
    recount: usize,
    min: usize,
    /// The match taken up at a position, known from the ones before.
    known: (usize, Found),
}

/// The shortest match worth writing with so many different literals.
fn shortest(literals: usize, depth: usize) -> usize {
    let min = match literals {
        0..6 => 9,
        6..8 => 8,
        8..10 => 7,
        10..16 => 6,
        16..45 => 5,
        45..80 => 4,
        _ => 3,
    };
    // Where little is searched long matches are hard to find.
    match depth {
        0..5 => min.min(4),
        5..10 => min.min(5),
        10..16 => min.min(7),
        _ => min,
    }
}

/// Whether `next` is better than `held` by more than `margin`.
fn is_better(next: Found, held: Found, margin: usize) -> bool {
    let bits = |found: Found| found.dist.ilog2() as usize;
    next.len >= held.len && 4 * (next.len - held.len) + bits(held) > margin + bits(next)
}

impl Libdeflate {
    /// At `start` of `data`; the history goes in when it is needed.
    pub fn new(rule: &Rule, start: usize) -> Self {
        Self {
            rule: *rule,
            links: Links::new(Hash::Multiplied, 16, 1),
            threes: Slots::new(),
            next: 0,
            end: start,
            begin: start,
            literals: Box::new([0; 256]),
            recount: NOWHERE,
            min: Token::MIN_LEN,
            known: (NOWHERE, Found::default()),
        }
    }

    fn hash3(data: &[u8], at: usize) -> usize {
        ((load32(data, at) << 8 >> 8).wrapping_mul(0x1E35_A7BD) >> 17) as usize
    }

    /// The longest match at `at` of more than `over` bytes.
    #[inline]
    fn search(&mut self, data: &[u8], at: usize, over: usize, depth: usize) -> Found {
        self.links.insert_to(data, at);
        while self.next < at {
            self.threes.put(Self::hash3(data, self.next), self.next);
            self.next += 1;
        }
        let max = Token::MAX_LEN.min(data.len() - at);
        let mut best = Found::default();
        if over < 3 && max > 4 {
            let [back] = self.threes.back(Self::hash3(data, at), at);
            let reaches = back.wrapping_sub(1) < WINDOW - 1 && back <= at;
            if reaches && (load32(data, at - back) ^ load32(data, at)) << 8 == 0 {
                best = Found { len: 3, dist: back };
            }
        }
        let reach = WINDOW - 1;
        let want = Want {
            over: over.max(3),
            depth,
            nice: self.rule.nice,
            max,
            min: 0,
            near: 0,
            reach,
            hasty: false,
        };
        let found = self.links.longest(data, at, &want);
        if found.len > 0 { found } else { best }
    }

    /// The match that is found at `pos` if nothing is known.
    fn take_up(&mut self, data: &[u8], pos: usize) -> Found {
        if self.rule.lazy > 0 && pos >= self.recount {
            let cutoff = self.literals.iter().sum::<u32>() >> 10;
            let used = self.literals.iter().filter(|&&count| count > cutoff).count();
            self.min = shortest(used, self.rule.depth);
            self.recount += pos - self.begin;
        }
        let found = self.search(data, pos, self.min - 1, self.rule.depth);
        let too_far = found.len == Token::MIN_LEN && found.dist > NEAR[self.rule.lazy.min(1)];
        if found.len < self.min || too_far {
            Found::default()
        } else {
            found
        }
    }

    #[inline]
    fn choose(&mut self, data: &[u8], pos: usize) -> Found {
        if self.known.0 != NOWHERE && self.known.0 > pos {
            return Found::default();
        }
        let held = if self.known.0 == pos {
            self.known.1
        } else {
            self.take_up(data, pos)
        };
        if held.len == 0 || held.len >= self.rule.nice {
            return held;
        }
        for (ahead, margin) in [(1, 2), (2, 6)] {
            let at = pos + ahead;
            if ahead > self.rule.lazy || at >= data.len() {
                break;
            }
            let next = self.search(data, at, held.len - 1, self.rule.depth >> ahead);
            if next.len > 0 && is_better(next, held, margin) {
                self.known = (at, next);
                return Found::default();
            }
        }
        held
    }
}

impl Expert for Libdeflate {
    fn spent(&self) -> usize {
        self.links.budget().spent()
    }

    fn block(&mut self, data: &[u8], pos: usize, end: usize, _sync: bool) {
        (self.begin, self.end, self.recount) = (pos, end, pos + RECOUNT);
        self.literals.fill(0);
        self.known.0 = NOWHERE;
        let sample = &data[pos..data.len().min(pos + SAMPLE)];
        let mut is_used = [false; 256];
        for &byte in sample {
            is_used[usize::from(byte)] = true;
        }
        let used = is_used.iter().filter(|&&used| used).count();
        self.min = if sample.len() < TINY {
            3
        } else {
            shortest(used, self.rule.depth)
        };
    }

    #[inline]
    fn predict(&mut self, data: &[u8], pos: usize) -> Token {
        let found = self.choose(data, pos);
        let len = found.len.min(self.end - pos);
        if len < Token::MIN_LEN {
            Token::LITERAL
        } else {
            Token::matched(len, found.dist)
        }
    }

    #[inline]
    fn accept(&mut self, data: &[u8], pos: usize, token: Token) {
        if token.is_literal() {
            self.literals[usize::from(data[pos])] += 1;
        } else {
            self.known.0 = NOWHERE;
        }
    }
}
