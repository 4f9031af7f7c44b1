//! Level 4, and what it shares with those above: a table by four bytes and one by seven.
//!
//! A match found by seven bytes is taken; one found by four is compared with what seven bytes say where the
//! scan would go on.

use super::super::bytes::load64;
use super::super::slots::Slots;
use super::{Chunk, Level, Plan, STEPS, agrees, reaches};

const BITS: u32 = 15;
const SIZE: usize = 1 << BITS;

pub(super) fn hash4(word: u64) -> usize {
    ((word as u32).wrapping_mul(2_654_435_761) >> (32 - BITS)) as usize
}

pub(super) fn hash7(word: u64) -> usize {
    ((word << 8).wrapping_mul(58_295_818_150_454_627) >> (64 - BITS)) as usize
}

/// A match that was found: its length is 0 as long as nobody asked for it.
#[derive(Clone, Copy)]
pub(super) struct Found {
    pub at: usize,
    pub len: usize,
    pub dist: usize,
}

pub(super) struct Tables<const WAYS: usize> {
    pub short: Slots<SIZE, 1>,
    pub long: Slots<SIZE, WAYS>,
}

impl<const WAYS: usize> Tables<WAYS> {
    pub fn new() -> Self {
        Self {
            short: Slots::new(),
            long: Slots::new(),
        }
    }

    pub fn clear(&mut self) {
        self.short.clear();
        self.long.clear();
    }

    #[inline]
    pub fn put_short(&mut self, word: u64, at: usize) {
        self.short.put(hash4(word), at);
    }

    #[inline]
    pub fn put_long(&mut self, word: u64, at: usize) {
        self.long.put(hash7(word), at);
    }

    #[inline]
    pub fn put(&mut self, word: u64, at: usize) {
        self.put_short(word, at);
        self.put_long(word, at);
    }

    /// Goes on to the next position of the scan: gives the one to look at, or none at the end of the chunk.
    #[inline]
    pub fn step(chunk: &mut Chunk, slowness: u32) -> Option<usize> {
        let at = chunk.at;
        chunk.ahead = at + 1 + ((at - chunk.emitted) >> slowness);
        if chunk.ahead > chunk.limit() {
            chunk.at = chunk.end;
            return None;
        }
        Some(at)
    }
}

/// The match at `at` that is `back` from there, if it is longer than `held`.
#[inline(always)]
pub(super) fn instead(data: &[u8], chunk: &Chunk, at: usize, back: usize, held: Found) -> Found {
    if !reaches(back) || at < chunk.base + back || at > chunk.end {
        return held;
    }
    let len = chunk.extend(data, at, back, 0);
    if len > held.len {
        Found { at, len, dist: back }
    } else {
        held
    }
}

pub struct Level4 {
    tables: Tables<1>,
}

impl Level for Level4 {
    fn new(_old: bool) -> Self {
        Self {
            tables: Tables::new(),
        }
    }

    fn clear(&mut self) {
        self.tables.clear();
    }

    fn scan(&mut self, data: &[u8], chunk: &mut Chunk) -> Option<Plan> {
        for _ in 0..STEPS {
            let at = Tables::<1>::step(chunk, 6)?;
            let word = load64(data, at);
            let ([short], [long]) = (
                self.tables.short.back(hash4(word), at),
                self.tables.long.back(hash7(word), at),
            );
            self.tables.put(word, at);
            let mut found = None;
            if agrees(data, at, long, word) {
                found = Some(Found {
                    at,
                    len: chunk.extend(data, at, long, 4),
                    dist: long,
                });
            } else if agrees(data, at, short, word) {
                let one = Found {
                    at,
                    len: chunk.extend(data, at, short, 4),
                    dist: short,
                };
                let next = load64(data, chunk.ahead);
                let [back] = self.tables.long.back(hash7(next), chunk.ahead);
                let is_next = agrees(data, chunk.ahead, back, next);
                found = Some(if is_next {
                    instead(data, chunk, chunk.ahead, back, one)
                } else {
                    one
                });
            }
            if let Some(found) = found {
                return Some(chunk.widen(data, found.at, found.dist, found.len));
            }
            chunk.at = chunk.ahead;
        }
        None
    }

    fn index(&mut self, data: &[u8], chunk: &mut Chunk, _len: usize) {
        let at = chunk.at;
        if at >= chunk.limit() {
            if at + 8 < chunk.end {
                self.tables.put(load64(data, at), at);
            }
            return;
        }
        let mut inside = chunk.ahead;
        while inside + 1 < at {
            let word = load64(data, inside);
            self.tables.put_long(word, inside);
            self.tables.put(word >> 8, inside + 1);
            inside += 3;
        }
        self.tables.put(load64(data, at - 1), at - 1);
    }
}
