//! Level 1 of Go's compress/flate, and levels 1 to 6 of klauspost/compress. Its level 5 is the default of pgzip, and so of Podman, Buildah, Skopeo and
//! umoci.
//!
//! Input is taken in chunks. A scan goes on in steps that get longer the longer there is no match; matches are
//! followed to the right without a limit, and to the left as far as literals reach, and are then written in
//! pieces. What is looked up and put into tables on the way is each level's own.
//!
//! Method: that of the encoder by Klaus Post (BSD licence), which started from Snappy's; written anew.

// From where the scan goes on to the match that it takes is one function for the processor: what its parts hand to each
// other stays in registers, which half of the time depends on.
#![allow(clippy::inline_always)]

mod double;
mod go;
mod single;
mod tail;

use super::bytes::{common_by_16, load32};
use super::plan::{Plan, Planned, Scanner};
use crate::deflate::{Token, WINDOW};
pub use double::Level4;
pub use go::GoFastest;
pub use single::{Level1, Level2, Level3};
pub use tail::{Level5, Level6};

/// What levels, users and versions differ in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rule {
    /// 1 to 6.
    pub level: usize,
    /// Before version 1.15.
    pub old: bool,
    /// An empty stored block starts an independent piece with a dictionary (pgzip); else it is a flush.
    pub pieces: bool,
}

/// Bytes in a chunk, if it is not the last before a flush. A block may go on over several.
const CHUNK: usize = 65535;
/// In a shorter chunk no matches are looked for, and everything is forgotten.
const SHORTEST: usize = 128;
/// Matches are nearer than this, but for some that are looked up at the end of another.
const REACH: usize = 32768;
/// Steps of one find.
const STEPS: usize = 512;
/// Bytes that pgzip hands to each of its blocks as a dictionary.
const DICTIONARY: usize = 16384;
/// A block of pgzip is longer; bounds the work of dictionaries.
const SHORTEST_PIECE: usize = 4096;

/// Where the scan stands in its chunk of input.
#[derive(Default, Debug)]
pub struct Chunk {
    at: usize,
    /// Where the last match ended.
    emitted: usize,
    /// Where the scan would have gone on, had there been no match.
    ahead: usize,
    end: usize,
    /// Nothing before this is known to the encoder.
    base: usize,
    /// Distance of a match that begins at `at`, known before the scan goes on.
    pending: Option<usize>,
    /// Distance of the last match.
    repeat: usize,
    longest: usize,
    margin: usize,
}

impl Chunk {
    /// The last position of the scan.
    fn limit(&self) -> usize {
        self.end.saturating_sub(self.margin)
    }

    /// Bytes that match at `at`, `dist` back, when the first `known` are known to.
    #[inline]
    fn extend(&self, data: &[u8], at: usize, dist: usize, known: usize) -> usize {
        let from = at + known;
        known + common_by_16(data, from - dist, from, self.longest.min(self.end - from))
    }

    /// The same, of the length of a token at most.
    #[inline]
    fn extend_token(&self, data: &[u8], at: usize, dist: usize) -> usize {
        common_by_16(data, at - dist, at, Token::MAX_LEN.min(self.end - at))
    }

    /// The match, when it is extended to the left as well.
    #[inline(always)]
    fn widen(&self, data: &[u8], mut at: usize, dist: usize, mut len: usize) -> Plan {
        while at > self.emitted && at - dist > self.base && data[at - 1] == data[at - 1 - dist] {
            at -= 1;
            len += 1;
        }
        Plan { at, len, dist }
    }
}

/// Whether a match may be so far back.
#[inline]
fn reaches(back: usize) -> bool {
    back.wrapping_sub(1) < REACH - 1
}

/// Whether the four bytes `back` before `at` are those of `word`, and are within reach.
#[inline]
fn agrees(data: &[u8], at: usize, back: usize, word: u64) -> bool {
    reaches(back) && back <= at && load32(data, at - back) == word as u32
}

/// What each level does on its own.
pub trait Level {
    /// The scan ends so many bytes before the chunk does.
    const MARGIN: usize = 11;

    fn new(old: bool) -> Self;

    /// Forgets everything.
    fn clear(&mut self);

    /// Scans on from `chunk.at`, which is not past the limit, for at most `STEPS` steps or to where the next
    /// would go past the limit; then `chunk.at` is the end. `data` ends where the chunk does.
    fn scan(&mut self, data: &[u8], chunk: &mut Chunk) -> Option<Plan>;

    /// The match that begins at `chunk.at`.
    fn plan(&self, data: &[u8], chunk: &Chunk, dist: usize) -> Plan {
        let len = chunk.extend(data, chunk.at, dist, 4);
        chunk.widen(data, chunk.at, dist, len)
    }

    /// Puts in what belongs to a match of `len` bytes, after which the scan goes on at `chunk.at`; this may
    /// find where a match begins there.
    fn index(&mut self, data: &[u8], chunk: &mut Chunk, len: usize);
}

/// The scan of a level.
pub struct Scan<L> {
    level: L,
    rule: Rule,
    chunk: Chunk,
    block_end: usize,
    /// Where the last piece began.
    piece: Option<usize>,
}

impl<L: Level> Scan<L> {
    /// The expert of the level at `start`.
    pub fn expert(rule: &Rule, start: usize) -> Planned<Self> {
        let (level, chunk) = (L::new(rule.old), Chunk::default());
        Planned::new(
            Self {
                level,
                rule: *rule,
                chunk,
                block_end: start,
                piece: None,
            },
            start,
        )
    }

    /// Starts with the first chunk of what lies between `from` and `to`.
    fn start(&mut self, from: usize, to: usize) {
        self.block_end = to;
        let end = to.min(from + CHUNK);
        let base = self.chunk.base;
        self.chunk = Chunk {
            at: from,
            emitted: from,
            end,
            base,
            repeat: 1,
            margin: L::MARGIN,
            ..Chunk::default()
        };
        if (1..SHORTEST).contains(&(end - from)) {
            self.level.clear();
            self.chunk.at = end;
        }
    }

    /// Takes in what lies between `from` and `to`, at most a chunk, by its own choices.
    fn learn(&mut self, data: &[u8], from: usize, to: usize) {
        self.start(from, to);
        while self.chunk.at < to {
            let plan = self.find(data, usize::MAX);
            if plan.len > 0 {
                self.matched(data, plan.at, plan.at + plan.len, true);
            }
        }
    }
}

impl<L: Level> Scanner for Scan<L> {
    fn begin(&mut self, data: &[u8], pos: usize, end: usize, sync: bool) {
        let long_ago = self.piece.is_none_or(|at| pos >= at + SHORTEST_PIECE);
        if sync && self.rule.pieces && long_ago {
            self.level.clear();
            self.chunk.base = pos.saturating_sub(DICTIONARY);
            self.learn(data, self.chunk.base, pos);
            self.piece = Some(pos);
        } else if self.piece.is_none() {
            self.learn(data, pos.saturating_sub(WINDOW), pos);
            self.piece = Some(pos);
        }
        self.start(pos, end);
    }

    #[inline(always)]
    fn find(&mut self, data: &[u8], longest: usize) -> Plan {
        if self.chunk.at >= self.chunk.end && self.chunk.end < self.block_end {
            self.start(self.chunk.end, self.block_end);
        }
        let chunk = &mut self.chunk;
        chunk.longest = longest;
        if chunk.at < chunk.limit() {
            let data = &data[..chunk.end];
            if let Some(dist) = chunk.pending.take() {
                return self.level.plan(data, chunk, dist);
            }
            if let Some(plan) = self.level.scan(data, chunk) {
                return plan;
            }
        } else {
            chunk.at = chunk.end;
        }
        Plan {
            at: chunk.at,
            len: 0,
            dist: 0,
        }
    }

    fn matched(&mut self, data: &[u8], at: usize, end: usize, planned: bool) {
        if end > self.chunk.end {
            return self.start(end, self.block_end);
        }
        let chunk = &mut self.chunk;
        if !planned {
            chunk.ahead = at;
        }
        (chunk.at, chunk.emitted, chunk.pending) = (end.max(chunk.ahead + 1), end, None);
        self.level.index(&data[..chunk.end], chunk, end - at);
        if chunk.at >= chunk.limit() {
            chunk.at = chunk.end;
        }
    }

    fn chunk_end(&self) -> usize {
        self.chunk.end
    }

    fn piece(&self, left: usize) -> usize {
        // The rest after a token of full length must be long enough for another.
        if left <= Token::MAX_LEN {
            left
        } else if self.rule.old || left <= Token::MAX_LEN + Token::MIN_LEN {
            Token::MAX_LEN - Token::MIN_LEN
        } else {
            Token::MAX_LEN
        }
    }
}
