//! Levels 1 to 3: one table, and another match is looked for right at the end of each.

use super::super::bytes::{common, load64};
use super::super::slots::Slots;
use super::{Chunk, Level, Plan, REACH, STEPS, agrees, reaches};

const PRIME_5: u64 = 889_523_592_379;

fn hash5(word: u64, bits: u32) -> usize {
    ((word << 24).wrapping_mul(PRIME_5) >> (64 - bits)) as usize
}

fn hash4(word: u64, bits: u32, prime: u32) -> usize {
    ((word as u32).wrapping_mul(prime) >> (32 - bits)) as usize
}

/// A match at the end of another may be just as far as a token reaches.
fn agrees_next(data: &[u8], at: usize, back: usize, word: u64) -> bool {
    back == REACH && back <= at && load64(data, at - back) as u32 == word as u32
        || agrees(data, at, back, word)
}

/// A table of single positions, scanned in pairs of positions side by side.
struct Pairs<const SIZE: usize> {
    table: Slots<SIZE, 1>,
    hash: fn(u64) -> usize,
}

impl<const SIZE: usize> Pairs<SIZE> {
    /// The match that is found at `at`, where `word` is, which is put in.
    #[inline]
    fn probe(&mut self, data: &[u8], at: usize, word: u64) -> Option<usize> {
        let hash = (self.hash)(word);
        let [back] = self.table.back(hash, at);
        self.table.put(hash, at);
        agrees(data, at, back, word).then_some(back)
    }

    #[inline]
    fn put(&mut self, word: u64, at: usize) {
        self.table.put((self.hash)(word), at);
    }

    /// The scan; `marks` is whether a match found second marks what follows it.
    #[inline]
    fn scan(&mut self, data: &[u8], chunk: &mut Chunk, marks: bool) -> Option<Plan> {
        for _ in 0..STEPS {
            let at = chunk.at;
            chunk.ahead = at + 2 + ((at - chunk.emitted) >> 5);
            if chunk.ahead > chunk.limit() {
                chunk.at = chunk.end;
                return None;
            }
            let next = load64(data, chunk.ahead);
            if let Some(back) = self.probe(data, at, load64(data, at)) {
                self.put(next, chunk.ahead);
                return Some(found(data, chunk, at, back));
            }
            let at = chunk.ahead;
            chunk.ahead += 1;
            if let Some(back) = self.probe(data, at, next) {
                if marks {
                    // Where the second position of a pair was hashed, the third is noted.
                    self.put(next, chunk.ahead);
                }
                return Some(found(data, chunk, at, back));
            }
            chunk.at = chunk.ahead;
        }
        None
    }

    /// Puts in `chunk.at`, and looks for a match there.
    #[inline]
    fn look(&mut self, data: &[u8], chunk: &mut Chunk) {
        let word = load64(data, chunk.at);
        let hash = (self.hash)(word);
        let [back] = self.table.back(hash, chunk.at);
        self.table.put(hash, chunk.at);
        if agrees_next(data, chunk.at, back, word) {
            chunk.pending = Some(back);
        } else {
            chunk.at += 1;
        }
    }

    /// At the end of a chunk, what is left to be put in after a match of `len` bytes.
    fn index_end(&mut self, data: &[u8], chunk: &Chunk, len: usize, width: usize) {
        if chunk.at + len + width < chunk.end {
            self.put(load64(data, chunk.at), chunk.at);
        }
    }
}

fn found(data: &[u8], chunk: &Chunk, at: usize, back: usize) -> Plan {
    let len = chunk.extend(data, at, back, 4);
    chunk.widen(data, at, back, len)
}

pub struct Level1 {
    pairs: Pairs<{ 1 << 15 }>,
    width: usize,
}

impl Level for Level1 {
    fn new(old: bool) -> Self {
        let hash: fn(u64) -> usize = if old {
            |word| hash4(word, 15, 0x1E35_A7BD)
        } else {
            |word| hash5(word, 15)
        };
        Self {
            pairs: Pairs {
                table: Slots::new(),
                hash,
            },
            width: if old { 4 } else { 8 },
        }
    }

    fn clear(&mut self) {
        self.pairs.table.clear();
    }

    fn scan(&mut self, data: &[u8], chunk: &mut Chunk) -> Option<Plan> {
        self.pairs.scan(data, chunk, true)
    }

    fn index(&mut self, data: &[u8], chunk: &mut Chunk, len: usize) {
        if chunk.at >= chunk.limit() {
            return self.pairs.index_end(data, chunk, len, self.width);
        }
        self.pairs.put(load64(data, chunk.at - 2), chunk.at - 2);
        self.pairs.look(data, chunk);
    }
}

pub struct Level2 {
    pairs: Pairs<{ 1 << 17 }>,
    width: usize,
}

impl Level for Level2 {
    fn new(old: bool) -> Self {
        let hash: fn(u64) -> usize = if old {
            |word| hash4(word, 17, 2_654_435_761)
        } else {
            |word| hash5(word, 17)
        };
        Self {
            pairs: Pairs {
                table: Slots::new(),
                hash,
            },
            width: if old { 4 } else { 8 },
        }
    }

    fn clear(&mut self) {
        self.pairs.table.clear();
    }

    fn scan(&mut self, data: &[u8], chunk: &mut Chunk) -> Option<Plan> {
        self.pairs.scan(data, chunk, false)
    }

    fn index(&mut self, data: &[u8], chunk: &mut Chunk, len: usize) {
        if chunk.at >= chunk.limit() {
            return self.pairs.index_end(data, chunk, len, self.width);
        }
        let mut inside = chunk.at - len + 2;
        while inside + 5 < chunk.at {
            let word = load64(data, inside);
            for skip in [0, 2, 4] {
                self.pairs.put(word >> (8 * skip), inside + skip);
            }
            inside += 7;
        }
        let word = load64(data, chunk.at - 2);
        self.pairs.put(word, chunk.at - 2);
        self.pairs.put(word >> 8, chunk.at - 1);
        self.pairs.look(data, chunk);
    }
}

/// Two positions for each hash, of which the one with the longer match is taken.
pub struct Level3 {
    table: Slots<{ 1 << 16 }, 2>,
}

/// Matches of this level are nearer than that.
const NEAR: usize = REACH - 4;

impl Level for Level3 {
    fn new(_old: bool) -> Self {
        Self { table: Slots::new() }
    }

    fn clear(&mut self) {
        self.table.clear();
    }

    fn scan(&mut self, data: &[u8], chunk: &mut Chunk) -> Option<Plan> {
        for _ in 0..STEPS {
            let at = chunk.at;
            chunk.ahead = at + 1 + ((at - chunk.emitted) >> 7);
            if chunk.ahead > chunk.limit() {
                chunk.at = chunk.end;
                return None;
            }
            let word = load64(data, at);
            let hash = hash5(word, 16);
            let [first, second] = self.table.back(hash, at);
            self.table.put(hash, at);
            if reaches(first) && first <= NEAR {
                let is_second = second <= NEAR && agrees(data, at, second, word);
                let back = match (agrees(data, at, first, word), is_second) {
                    (true, true) => longer(data, chunk, first, second),
                    (true, false) => first,
                    (false, true) if second < NEAR => second,
                    _ => 0,
                };
                if back != 0 {
                    return Some(found(data, chunk, at, back));
                }
            }
            chunk.at = chunk.ahead;
        }
        None
    }

    fn index(&mut self, data: &[u8], chunk: &mut Chunk, len: usize) {
        let at = chunk.at;
        if at >= chunk.limit() {
            return;
        }
        let mut inside = at - len + 2;
        while inside + 5 < at {
            self.table.put(hash5(load64(data, inside), 16), inside);
            inside += 6;
        }
        for before in [2, 1] {
            self.table.put(hash5(load64(data, at - before), 16), at - before);
        }
        let word = load64(data, at);
        let hash = hash5(word, 16);
        let backs = self.table.back(hash, at);
        self.table.put(hash, at);
        if reaches(backs[0]) && backs[0] < NEAR {
            chunk.pending = backs
                .into_iter()
                .find(|&back| back < NEAR && agrees(data, at, back, word));
        }
        if chunk.pending.is_none() {
            chunk.at += 1;
        }
    }
}

/// Which of two distances has the longer match at `chunk.at`, the first if both are as long.
fn longer(data: &[u8], chunk: &Chunk, first: usize, second: usize) -> usize {
    let [one, two] = [first, second].map(|back| {
        common(
            data,
            chunk.at - back,
            chunk.at,
            chunk.longest.min(chunk.end - chunk.at),
        )
    });
    if two > one { second } else { first }
}
