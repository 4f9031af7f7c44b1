//! Level 5 of klauspost/compress, the default of pgzip, and so of Podman, Buildah, Skopeo and umoci.
//!
//! Two tables: the last position with the same four bytes, and the last two with the same seven. The scan goes
//! on in steps that get longer the longer there is no match. A match found by seven bytes is taken; one found
//! by four is compared with what seven bytes say one position further on. A short match is then looked at from
//! its end: what seven bytes say there may, extended to the left, be the longer one. At last it is extended to
//! the left as far as literals reach. Input is taken in chunks.
//!
//! Method: that of the encoder by Klaus Post (BSD licence), which started from Snappy's; written anew.

use super::bytes::{common, load32, load64};
use super::plan::{Plan, Scanner};
use super::table::Slots;
use crate::deflate::Token;

/// Number of bits of the hashes.
const BITS: u32 = 15;
const SIZE: usize = 1 << BITS;
/// Matches are nearer than this.
const REACH: usize = 32768;
/// The scan ends so many bytes before the chunk does.
const MARGIN: usize = 11;
/// Bytes in a chunk, if it is not the last before a flush. A block may go on over several.
const CHUNK: usize = 65535;
/// In a shorter chunk no matches are looked for, and everything is forgotten.
const SHORTEST: usize = 128;
/// A match as long is not looked at from its end.
const LONG: usize = 30;
/// Steps of one find.
const STEPS: usize = 512;
/// Bytes that pgzip hands to each of its blocks as a dictionary.
const DICTIONARY: usize = 16384;
/// A block of pgzip is longer; bounds the work of dictionaries.
const SHORTEST_PIECE: usize = 4096;

/// What users and versions differ in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rule {
    /// How far from its start a match may go wrong when it is looked at from its end: 2, before 1.15 it is 0.
    pub shift: usize,
    /// An empty stored block starts an independent piece with a dictionary (pgzip); else it is a flush.
    pub pieces: bool,
}

pub struct Level5 {
    rule: Rule,
    short: Slots<SIZE, 1>,
    long: Slots<SIZE, 2>,
    /// Where the scan stands, and where the last match ended.
    at: usize,
    emitted: usize,
    /// Where the scan would have gone on, had there been no match.
    ahead: usize,
    /// End of the chunk, and of the block it is in.
    end: usize,
    block_end: usize,
    /// Nothing before this is known to the encoder.
    base: usize,
    /// Where the last piece began.
    piece: Option<usize>,
}

fn hash4(word: u64) -> usize {
    ((word as u32).wrapping_mul(2_654_435_761) >> (32 - BITS)) as usize
}

fn hash7(word: u64) -> usize {
    ((word << 8).wrapping_mul(58_295_818_150_454_627) >> (64 - BITS)) as usize
}

/// Whether a match may be so far back.
#[inline]
fn reaches(back: usize) -> bool {
    back.wrapping_sub(1) < REACH - 1
}

impl Level5 {
    pub fn new(rule: &Rule) -> Self {
        let (short, long) = (Slots::new(), Slots::new());
        Self {
            rule: *rule,
            short,
            long,
            at: 0,
            emitted: 0,
            ahead: 0,
            end: 0,
            block_end: 0,
            base: 0,
            piece: None,
        }
    }

    /// Starts with the first chunk of what lies between `from` and `to`.
    fn start(&mut self, from: usize, to: usize) {
        self.end = to.min(from + CHUNK);
        (self.at, self.emitted, self.block_end) = (from, from, to);
        if self.end - from < SHORTEST {
            self.short.clear();
            self.long.clear();
            self.at = self.end;
        }
    }

    /// Takes in what lies between `from` and `to`, at most a chunk, by its own choices.
    fn learn(&mut self, data: &[u8], from: usize, to: usize) {
        self.start(from, to);
        while self.at < to {
            let plan = self.find(data, usize::MAX);
            if plan.len > 0 {
                self.matched(data, plan.at, plan.at + plan.len, true);
            }
        }
    }

    #[inline]
    fn put(&mut self, word: u64, at: usize) {
        self.short.put(hash4(word), at);
        self.long.put(hash7(word), at);
    }

    /// Whether the four bytes `back` before `at` are those of `word`.
    #[inline]
    fn agrees(data: &[u8], at: usize, back: usize, word: u64) -> bool {
        reaches(back) && back <= at && load32(data, at - back) == word as u32
    }

    /// Length of the match at `at`, which is at least 4 and here at most that of a token.
    #[inline]
    fn short_len(&self, data: &[u8], at: usize, back: usize) -> usize {
        common(data, at - back, at, Token::MAX_LEN.min(self.end - at))
    }

    /// The longer of the matches at `at` that seven bytes give, as length and distance, if one is longer
    /// than `over`.
    #[inline]
    fn longer(&self, data: &[u8], at: usize, word: u64, over: usize) -> Option<(usize, usize)> {
        for back in self.long.back(hash7(word), at) {
            if Self::agrees(data, at, back, word) {
                let len = self.short_len(data, at, back);
                if len > over {
                    return Some((len, back));
                }
            }
        }
        None
    }

    /// The match that the scan finds at `at`, or one further on: position, length if known, distance.
    #[inline]
    fn probe(&mut self, data: &[u8], at: usize, word: u64) -> Option<(usize, usize, usize)> {
        let (hash, hash_long) = (hash4(word), hash7(word));
        let [short] = self.short.back(hash, at);
        let [first, second] = self.long.back(hash_long, at);
        self.short.put(hash, at);
        self.long.put(hash_long, at);
        if Self::agrees(data, at, first, word) {
            self.put(load64(data, self.ahead), self.ahead);
            if Self::agrees(data, at, second, word) {
                let (one, two) = (self.short_len(data, at, first), self.short_len(data, at, second));
                return Some(if two > one {
                    (at, two, second)
                } else {
                    (at, one, first)
                });
            }
            return Some((at, 0, first));
        }
        if Self::agrees(data, at, second, word) {
            self.put(load64(data, self.ahead), self.ahead);
            return Some((at, 0, second));
        }
        if Self::agrees(data, at, short, word) {
            let len = self.short_len(data, at, short);
            let next = load64(data, self.ahead);
            let better = self.longer(data, self.ahead, next, len);
            self.put(next, self.ahead);
            return Some(match better {
                Some((len, back)) => (self.ahead, len, back),
                None => (at, len, short),
            });
        }
        None
    }

    /// The whole match for one that was found: further to the right, another one by its end, to the left.
    fn widen(&self, data: &[u8], found: (usize, usize, usize), longest: usize) -> Plan {
        let (mut at, mut len, mut dist) = found;
        let most = |at: usize| longest.min(self.end - at);
        if len == 0 || len == Token::MAX_LEN {
            len += common(data, at + len - dist, at + len, most(at + len));
        }
        let tail = at + len;
        if len < LONG && tail < self.end - MARGIN {
            let [back, _] = self.long.back(hash7(load64(data, tail)), tail);
            let from = at + self.rule.shift;
            if reaches(back) && from >= self.base + back {
                let other = common(data, from - back, from, most(from));
                if other > len {
                    (at, len, dist) = (from, other, back);
                }
            }
        }
        while at > self.emitted && at - dist > self.base && data[at - 1] == data[at - 1 - dist] {
            at -= 1;
            len += 1;
        }
        Plan { at, len, dist }
    }

    /// Puts in part of the inside of a match: the scan goes on at `at`, and the match has `len` bytes.
    fn fill(&mut self, data: &[u8], at: usize, len: usize) {
        let mut inside = at - len + 1;
        if inside + 1 >= at {
            return;
        }
        let word = load64(data, inside);
        self.put(word, inside);
        self.long.put(hash7(word >> 8), inside + 1);
        self.short.put(hash4(word >> 16), inside + 2);
        inside += 4;
        while inside + 1 < at {
            let word = load64(data, inside);
            self.long.put(hash7(word), inside);
            self.short.put(hash4(word >> 8), inside + 1);
            inside += 3;
        }
    }
}

impl Scanner for Level5 {
    fn begin(&mut self, data: &[u8], pos: usize, end: usize, sync: bool) {
        let long_ago = self.piece.is_none_or(|at| pos >= at + SHORTEST_PIECE);
        if sync && self.rule.pieces && long_ago {
            self.short.clear();
            self.long.clear();
            self.base = pos.saturating_sub(DICTIONARY);
            self.learn(data, self.base, pos);
            self.piece = Some(pos);
        } else if self.piece.is_none() {
            self.learn(data, pos.saturating_sub(crate::deflate::WINDOW), pos);
            self.piece = Some(pos);
        }
        self.start(pos, end);
    }

    fn find(&mut self, data: &[u8], longest: usize) -> Plan {
        if self.at >= self.end && self.end < self.block_end {
            self.start(self.end, self.block_end);
        }
        let data = &data[..self.end];
        for _ in 0..STEPS {
            self.ahead = self.at + 1 + ((self.at - self.emitted) >> 6);
            if self.ahead + MARGIN > self.end {
                self.at = self.end;
                break;
            }
            let word = load64(data, self.at);
            if let Some(found) = self.probe(data, self.at, word) {
                return self.widen(data, found, longest);
            }
            self.at = self.ahead;
        }
        Plan {
            at: self.at,
            len: 0,
            dist: 0,
        }
    }

    fn matched(&mut self, data: &[u8], at: usize, end: usize, planned: bool) {
        (self.at, self.emitted) = (end, end);
        if planned && self.ahead >= end {
            self.at = self.ahead + 1;
        }
        if self.at + MARGIN >= self.end {
            self.at = self.end;
            return;
        }
        let data = &data[..self.end];
        self.fill(data, self.at, end - at);
        self.put(load64(data, self.at - 1), self.at - 1);
    }

    fn chunk_end(&self) -> usize {
        self.end
    }

    /// The rest after a token of full length must be long enough for another.
    fn piece(left: usize) -> usize {
        if left > Token::MAX_LEN + Token::MIN_LEN {
            Token::MAX_LEN
        } else if left > Token::MAX_LEN {
            Token::MAX_LEN - Token::MIN_LEN
        } else {
            left
        }
    }
}
