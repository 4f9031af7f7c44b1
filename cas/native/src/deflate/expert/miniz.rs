//! miniz and `miniz_oxide`, which Rust programs have from flate2: levels 2 to 10.
//!
//! As zlib does it, with hash chains of three bytes, greedy up to level 3 and lazy from there on. But the depth
//! of a search is counted in turns: one ends with a candidate that agrees where the match would get longer, or
//! with the third that does not.
//!
//! Method: that of miniz by Rich Geldreich (MIT licence); written anew.

use super::Expert;
use super::bytes::common;
use super::links::{Found, Hash, Links};
use crate::deflate::budget::steps;
use crate::deflate::{Token, WINDOW};

/// The numbers by which levels differ.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rule {
    /// Candidates that a search is meant to look at.
    pub probes: usize,
    pub greedy: bool,
}

/// Furthest distance.
const REACH: usize = WINDOW - 258;
/// A match of three bytes is nearer than this.
const NEAR: usize = 8192;
/// A match of so many bytes is taken without a look further on.
const LONG: usize = 128;
/// With a match of so many bytes in hand a search is shorter.
const GOOD: usize = 32;
const NOWHERE: usize = usize::MAX;

pub struct Miniz {
    rule: Rule,
    links: Links,
    end: usize,
    /// The match at a position, known because the one before was asked for.
    known: (usize, Found),
}

impl Miniz {
    /// At `start` of `data`; the history goes in when it is needed.
    pub fn new(rule: &Rule, start: usize) -> Self {
        let links = Links::new(Hash::Three, 15, 0);
        Self {
            rule: *rule,
            links,
            end: start,
            known: (NOWHERE, Found::default()),
        }
    }

    /// The longest match at `at` of more than `held` bytes.
    fn search(&mut self, data: &[u8], at: usize, held: usize) -> Found {
        self.links.insert_to(data, at);
        let max = Token::MAX_LEN.min(data.len() - at);
        let mut best = Found {
            len: held.max(2),
            dist: 0,
        };
        if max <= best.len {
            return Found::default();
        }
        let probes = if best.len >= GOOD {
            self.rule.probes / 4
        } else {
            self.rule.probes
        };
        let mut turns = self.links.budget().depth(at, probes.div_ceil(3));
        let mut tries = 3;
        let mut cost = 0;
        for dist in self.links.walk(data, at, REACH) {
            if turns == 0 {
                break;
            }
            let from = at - dist;
            (tries, cost) = (tries - 1, cost + 1);
            let agrees =
                data[from + best.len - 1..=from + best.len] == data[at + best.len - 1..=at + best.len];
            if agrees || tries == 0 {
                (turns, tries) = (turns - 1, 3);
            }
            if agrees && data[from..from + 2] == data[at..at + 2] {
                let len = common(data, from, at, max);
                cost += steps(len);
                if len > best.len {
                    best = Found { len, dist };
                    if len == max {
                        break;
                    }
                }
            }
        }
        self.links.spend(cost);
        let too_far = best.len == Token::MIN_LEN && best.dist >= NEAR;
        if best.dist == 0 || too_far {
            Found::default()
        } else {
            best
        }
    }

    fn choose(&mut self, data: &[u8], pos: usize) -> Found {
        let here = if self.known.0 == pos {
            self.known.1
        } else {
            self.search(data, pos, 0)
        };
        if here.len == 0 || here.len >= LONG || self.rule.greedy || pos + 1 >= data.len() {
            return here;
        }
        let next = self.search(data, pos + 1, here.len);
        if next.len == 0 {
            return here;
        }
        self.known = (pos + 1, next);
        Found::default()
    }
}

impl Expert for Miniz {
    fn spent(&self) -> usize {
        self.links.budget().spent()
    }

    fn block(&mut self, _data: &[u8], _pos: usize, end: usize, _sync: bool) {
        self.end = end;
    }

    fn predict(&mut self, data: &[u8], pos: usize) -> Token {
        let found = self.choose(data, pos);
        let len = found.len.min(self.end - pos);
        if len < Token::MIN_LEN {
            Token::LITERAL
        } else {
            Token::matched(len, found.dist)
        }
    }

    fn accept(&mut self, _data: &[u8], _pos: usize, token: Token) {
        if !token.is_literal() {
            self.known.0 = NOWHERE;
        }
    }
}
