//! Chains of earlier positions with the same hash, as zlib and its kin keep them.
//!
//! Positions are kept in 16 bits, relative to a base that moves up by 32 KiB whenever they would not fit; 0
//! means none. zlib counts from 0, and so never finds the very first byte of its window; Go counts from 1.

use super::bytes::{common, load32};
use crate::deflate::budget::{Budget, steps};

/// Window of the chains: positions further back are forgotten.
const SIZE: usize = 32768;
const MASK: usize = SIZE - 1;
const HEADS: usize = 1 << 17;
/// Positions that may have been put in at and after the one of a search.
const AHEAD: usize = 300;

/// Candidates that are passed over in a search as if they were not there.
const PASSED: usize = 1024;

/// What is hashed, and how.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Hash {
    /// Three bytes, shifted and added without carry: zlib, GNU gzip.
    Three,
    /// CRC-32C of four bytes: Chromium's zlib on processors that have it.
    Crc,
    /// Four bytes, highest first, times a constant: Go.
    Go,
    /// Four bytes times a constant, low part: Chromium's zlib elsewhere.
    Portable,
    /// Four bytes times Knuth's constant: zlib-ng.
    Knuth,
    /// Four bytes times Go's constant: libdeflate.
    Multiplied,
}

/// A table of CRC-32C for each place of a byte in a word, so that four look-ups give that of the word.
const CRC: [[u32; 256]; 4] = crc_tables();

const fn crc_tables() -> [[u32; 256]; 4] {
    let mut tables = [[0; 256]; 4];
    let mut byte = 0;
    while byte < 256 {
        let mut place = 0;
        while place < 4 {
            let mut crc = (byte as u32) << (8 * place);
            let mut bit = 0;
            while bit < 32 {
                crc = (crc >> 1) ^ (0x82F6_3B78 * (crc & 1));
                bit += 1;
            }
            tables[place][byte] = crc;
            place += 1;
        }
        byte += 1;
    }
    tables
}

/// CRC-32C of a word, from 0 and not inverted, as the processors' instruction gives it.
#[inline]
pub fn crc_word(word: u32) -> u32 {
    let [a, b, c, d] = word.to_le_bytes();
    CRC[0][usize::from(a)] ^ CRC[1][usize::from(b)] ^ CRC[2][usize::from(c)] ^ CRC[3][usize::from(d)]
}

impl Hash {
    /// Bytes that it looks at.
    const fn width(self) -> usize {
        if matches!(self, Self::Three) { 3 } else { 4 }
    }

    #[inline]
    fn of(self, data: &[u8], at: usize, bits: u32) -> usize {
        let mask = (1_usize << bits) - 1;
        match self {
            Self::Three => {
                let Some(&[a, b, c]) = data.get(at..at + 3) else {
                    return 0;
                };
                let shift = bits.div_ceil(3);
                let (a, b, c) = (u32::from(a), u32::from(b), u32::from(c));
                ((a << (2 * shift)) ^ (b << shift) ^ c) as usize & mask
            }
            Self::Crc => crc_word(load32(data, at)) as usize & mask,
            Self::Go => (load32(data, at).swap_bytes().wrapping_mul(0x1E35_A7BD) >> (32 - bits)) as usize,
            Self::Portable => {
                (load32(data, at).wrapping_mul(66521).wrapping_add(66521) >> 16) as usize & mask
            }
            Self::Multiplied => (load32(data, at).wrapping_mul(0x1E35_A7BD) >> (32 - bits)) as usize,
            Self::Knuth => (load32(data, at).wrapping_mul(2_654_435_761) >> (32 - bits)) as usize,
        }
    }
}

/// What a search takes.
#[derive(Clone, Copy, Debug)]
pub struct Want {
    /// Only longer matches than this.
    pub over: usize,
    /// Positions looked at.
    pub depth: usize,
    /// Enough: the search ends.
    pub nice: usize,
    /// No longer match exists than this many bytes.
    pub max: usize,
    /// The shortest match there is may be no further back than `near`.
    pub min: usize,
    pub near: usize,
    /// Furthest distance of any.
    pub reach: usize,
    /// The search ends at a candidate that agrees at both ends and is no better.
    pub hasty: bool,
}

/// A match: `len` is 0 if there is none.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Found {
    pub len: usize,
    pub dist: usize,
}

pub struct Links {
    heads: Box<[u16; HEADS]>,
    previous: Box<[u16; SIZE]>,
    hash: Hash,
    bits: u32,
    /// Added to a position to get the relative one of `base` 0.
    first: usize,
    base: usize,
    /// First position that is not in yet.
    next: usize,
    /// Nothing before this is found.
    floor: usize,
    budget: Budget,
}

impl Links {
    /// Empty chains of `bits` (at most 17) of hash. `first`: 1 if position 0 can be found, else 0.
    pub fn new(hash: Hash, bits: u32, first: usize) -> Self {
        Self {
            heads: vec![0; HEADS]
                .into_boxed_slice()
                .try_into()
                .expect("as long as made"),
            previous: vec![0; SIZE]
                .into_boxed_slice()
                .try_into()
                .expect("as long as made"),
            hash,
            bits,
            first,
            base: 0,
            next: 0,
            floor: 0,
            budget: Budget::default(),
        }
    }

    /// Starts anew at `at`: from now on nothing before it is found.
    pub fn forget(&mut self, at: usize) {
        self.floor = at + 1 - self.first;
    }

    /// Starts anew with every position from `from` to `to` in.
    pub fn refill(&mut self, data: &[u8], from: usize, to: usize) {
        self.heads.fill(0);
        (self.base, self.next) = (from, from);
        self.forget(from);
        self.insert_to(data, to);
    }

    /// Leaves out the positions up to `to` that are not in yet.
    pub fn skip_to(&mut self, to: usize) {
        self.next = self.next.max(to);
    }

    /// Puts in every position before `to` that is not in yet.
    #[inline]
    pub fn insert_to(&mut self, data: &[u8], to: usize) {
        let to = to.min((data.len() + 1).saturating_sub(self.hash.width()));
        while self.next < to {
            while self.next + self.first - self.base > usize::from(u16::MAX) {
                self.slide();
            }
            let stop = to.min(self.base + (1 << 16) - self.first);
            match self.hash {
                Hash::Three => self.insert(data, stop, |d, i, b| Hash::Three.of(d, i, b)),
                Hash::Crc => self.insert(data, stop, |d, i, b| Hash::Crc.of(d, i, b)),
                Hash::Go => self.insert(data, stop, |d, i, b| Hash::Go.of(d, i, b)),
                Hash::Portable => self.insert(data, stop, |d, i, b| Hash::Portable.of(d, i, b)),
                Hash::Multiplied => self.insert(data, stop, |d, i, b| Hash::Multiplied.of(d, i, b)),
                Hash::Knuth => self.insert(data, stop, |d, i, b| Hash::Knuth.of(d, i, b)),
            }
        }
    }

    #[inline]
    fn insert(&mut self, data: &[u8], stop: usize, hash: impl Fn(&[u8], usize, u32) -> usize) {
        for at in self.next..stop {
            let here = at + self.first - self.base;
            let head = &mut self.heads[hash(data, at, self.bits) & (HEADS - 1)];
            self.previous[here & MASK] = *head;
            *head = here as u16;
        }
        self.next = stop;
    }

    #[cold]
    fn slide(&mut self) {
        self.base += SIZE;
        let used = 1 << self.bits;
        for entry in self.heads[..used].iter_mut().chain(self.previous.iter_mut()) {
            *entry = entry.saturating_sub(SIZE as u16);
        }
    }

    /// What its searches may cost and have cost.
    pub fn budget(&self) -> &Budget {
        &self.budget
    }

    /// Counts what was done by `walk`.
    pub fn spend(&mut self, steps: usize) {
        self.budget.spend(steps);
    }

    /// How far before `at` the positions with its hash are, nearest first, none further than `reach`.
    #[inline]
    pub fn walk(&self, data: &[u8], at: usize, reach: usize) -> impl Iterator<Item = usize> {
        let here = (at + self.first).wrapping_sub(self.base);
        let limit = here.saturating_sub(reach).max(1);
        let mut candidate = usize::from(self.heads[self.hash.of(data, at, self.bits) & (HEADS - 1)]);
        let mut last = usize::MAX;
        std::iter::from_fn(move || {
            while candidate >= here && candidate < last {
                last = candidate;
                candidate = usize::from(self.previous[candidate & MASK]);
            }
            if candidate < limit || candidate >= last.min(here) {
                return None;
            }
            last = candidate;
            candidate = usize::from(self.previous[candidate & MASK]);
            Some(here - last)
        })
    }

    /// The first longest match at `at`, nearest first, among those put in. Few have been put in after it.
    #[inline]
    pub fn longest(&mut self, data: &[u8], at: usize, want: &Want) -> Found {
        self.longest_but(data, at, want, |_| false)
    }

    /// The same, as if those were not there that `is_out`.
    #[inline]
    pub fn longest_but(
        &mut self,
        data: &[u8],
        at: usize,
        want: &Want,
        is_out: impl Fn(usize) -> bool,
    ) -> Found {
        let mut best = Found {
            len: want.over,
            dist: 0,
        };
        if want.max <= best.len || want.max < self.hash.width() || want.depth == 0 || best.len == 0 {
            return Found::default();
        }
        let back = self.first.wrapping_sub(self.base);
        let here = at.wrapping_add(back);
        let mut candidate = usize::from(self.heads[self.hash.of(data, at, self.bits) & (HEADS - 1)]);
        let mut ahead = 0;
        while candidate >= here && ahead < AHEAD {
            candidate = usize::from(self.previous[candidate & MASK]);
            ahead += 1;
        }
        let floor = (self.floor + self.first).saturating_sub(self.base);
        let mut limit = here.saturating_sub(want.reach).max(floor).max(1);
        let mut depth = self.budget.depth(at, want.depth);
        let (mut passed, mut cost) = (0, depth);
        let window = &data[..at + want.max];
        let mut end = tail(window, at + best.len);
        while candidate >= limit && candidate < here {
            let early = candidate.wrapping_sub(back);
            if is_out(early) && passed < PASSED {
                (depth, passed) = (depth + 1, passed + 1);
            } else if tail(window, early + best.len) == end {
                let len = common(window, early, at, want.max);
                cost += steps(len);
                if len > best.len && (len > want.min || at - early <= want.near) {
                    best = Found {
                        len,
                        dist: at - early,
                    };
                    if len >= want.nice || len == want.max {
                        break;
                    }
                    end = tail(window, at + len);
                } else if want.hasty && is_good(window, early, at, best.len, len) {
                    break;
                }
            }
            depth -= 1;
            if depth == 0 {
                break;
            }
            candidate = usize::from(self.previous[candidate & MASK]);
            limit = limit.max(here.saturating_sub(want.reach) + 1 - self.first);
        }
        self.budget.spend(cost + passed + ahead - depth);
        if best.dist == 0 { Found::default() } else { best }
    }
}

/// Whether a candidate that matches `len` bytes agrees with the best one at both ends, as far as zlib-ng
/// compares them.
fn is_good(data: &[u8], early: usize, late: usize, best: usize, len: usize) -> bool {
    let seen = match best {
        0..4 => 2,
        4..8 => 4,
        _ => 8,
    };
    let (early, late) = (early + best, late + best);
    len >= seen && data.get(early + 1 - seen..=early) == data.get(late + 1 - seen..=late)
}

/// The byte at `at` and the one before it.
#[inline]
fn tail(data: &[u8], at: usize) -> [u8; 2] {
    match data.get(at - 1..=at) {
        Some(two) => [two[0], two[1]],
        None => [0, 0],
    }
}

#[cfg(test)]
mod tests {
    use super::crc_word;

    #[test]
    fn the_word_crc_is_that_of_its_bytes() {
        for word in [0_u32, 1, 0x8000_0000, 0x1234_5678, u32::MAX] {
            assert_eq!(
                crate::crc::crc32c(u32::MAX, &word.to_le_bytes()),
                !crc_word(word),
                "{word:x}"
            );
        }
    }
}
