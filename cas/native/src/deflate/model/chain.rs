//! Hash chains through the window, and all the matches they lead to.

use super::super::WINDOW;
use super::super::budget::{Budget, steps};
use super::params::ChainParams;
use super::table::HASHES;

/// A way to copy: so many bytes from so far back. All zeros: none.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Match {
    pub len: u16,
    pub dist: u16,
}

impl Match {
    #[inline]
    #[must_use]
    pub fn new(len: usize, dist: usize) -> Self {
        Self {
            len: len as u16,
            dist: dist as u16,
        }
    }
}

/// Bytes equal at `old` and at the later `new`, at most `max`, which both have.
#[inline]
#[must_use]
pub fn match_len(data: &[u8], old: usize, new: usize, max: usize) -> usize {
    const WORD: usize = 8;
    let (old, new) = (&data[old..old + max], &data[new..new + max]);
    let mut len = 0;
    for (a, b) in old.chunks_exact(WORD).zip(new.chunks_exact(WORD)) {
        let a = u64::from_le_bytes(a.try_into().unwrap_or_default());
        let b = u64::from_le_bytes(b.try_into().unwrap_or_default());
        if a != b {
            return len + ((a ^ b).trailing_zeros() / 8) as usize;
        }
        len += WORD;
    }
    while len < max && old[len] == new[len] {
        len += 1;
    }
    len
}

/// The matches found at a position, in the order they were found: nearest first.
#[derive(Clone, Debug)]
pub struct Found {
    list: Vec<Match>,
    /// The longest, of those the nearest.
    pub best: Match,
    /// The nearest of 4 bytes or more.
    pub near4: Match,
    /// The nearest of 7 bytes or more.
    pub near7: Match,
}

/// Matches that are farther and no longer than another one are kept up to this number.
const BESIDES: usize = 48;

impl Found {
    #[must_use]
    pub fn new() -> Self {
        let nothing = Match::default();
        Self {
            list: Vec::with_capacity(BESIDES + 256),
            best: nothing,
            near4: nothing,
            near7: nothing,
        }
    }

    #[inline]
    #[must_use]
    pub fn list(&self) -> &[Match] {
        &self.list
    }

    fn clear(&mut self) {
        self.list.clear();
        self.best = Match::default();
        self.near4 = self.best;
        self.near7 = self.best;
    }

    #[inline]
    fn add(&mut self, found: Match) {
        if found.len > self.best.len {
            self.best = found;
        }
        if found.len >= 4 && self.near4.len == 0 {
            self.near4 = found;
        }
        if found.len >= 7 && self.near7.len == 0 {
            self.near7 = found;
        }
        self.list.push(found);
    }
}

/// Where a search may look and how far a match may go.
#[derive(Clone, Copy, Debug)]
pub struct Reach {
    /// Bytes from the position to the end of its block, at most 258.
    pub max: usize,
    pub depth: u32,
    /// No match begins before this.
    pub base: usize,
}

const MASK: usize = WINDOW - 1;
const NEAR_BITS: u32 = 15;

/// For each hash the last position, for each position the one before it. Positions are kept plus one; 0 is none.
#[derive(Debug)]
pub struct Chain {
    params: ChainParams,
    /// Bytes that are hashed.
    least: usize,
    heads: Vec<u32>,
    links: Vec<u32>,
    /// Last positions by 3 bytes, beside chains of 4.
    near: Vec<u32>,
    budget: Budget,
}

impl Chain {
    #[must_use]
    pub fn new(params: &ChainParams) -> Self {
        let least = params.bytes() as usize;
        let near = if least > 3 { 1 << NEAR_BITS } else { 0 };
        Self {
            params: *params,
            least,
            heads: vec![0; 1 << params.bits],
            links: vec![0; WINDOW],
            near: vec![0; near],
            budget: Budget::default(),
        }
    }

    #[inline]
    pub fn insert(&mut self, data: &[u8], pos: usize) {
        let Some(hash) = self.hash(data, pos) else { return };
        self.links[pos & MASK] = self.heads[hash];
        self.heads[hash] = pos as u32 + 1;
        if self.least > 3 {
            self.near[near_hash(data, pos)] = pos as u32 + 1;
        }
    }

    /// Finds what matches at `pos`, which is not yet inserted.
    pub fn search(&mut self, data: &[u8], pos: usize, reach: Reach, found: &mut Found) {
        found.clear();
        let (Some(hash), true) = (self.hash(data, pos), reach.max >= 3) else {
            return;
        };
        let lowest = pos.saturating_sub(WINDOW).max(reach.base) as u32;
        let enough = reach.max.min(usize::from(self.params.nice));
        let mut at = self.heads[hash];
        let mut depth = self.budget.depth(pos, reach.depth as usize);
        while at > lowest && at as usize <= pos && depth > 0 {
            let old = at as usize - 1;
            let cost = 1 + self.look(data, old, pos, reach.max, found);
            self.budget.spend(cost);
            depth -= 1;
            let next = self.links[old & MASK];
            if usize::from(found.best.len) >= enough || next >= at {
                break;
            }
            at = next;
        }
        if self.least > 3 {
            self.add_near(data, pos, reach.max, lowest, found);
        }
    }

    /// Adds the match at `old` if it is one and of use. Gives how many steps that took.
    #[inline]
    fn look(&self, data: &[u8], old: usize, pos: usize, max: usize, found: &mut Found) -> usize {
        let best = usize::from(found.best.len);
        let is_full = found.list.len() >= BESIDES;
        if is_full && data[old + best] != data[pos + best] {
            return 0;
        }
        let len = match_len(data, old, pos, max);
        if len >= self.least && (len > best || !is_full) {
            found.add(Match::new(len, pos - old));
        }
        steps(len)
    }

    /// Beside chains of 4: the nearest match of 3 bytes, if it is just that long.
    fn add_near(&self, data: &[u8], pos: usize, max: usize, lowest: u32, found: &mut Found) {
        let at = self.near[near_hash(data, pos)];
        if at > lowest && at as usize <= pos && match_len(data, at as usize - 1, pos, max.min(4)) == 3 {
            found.add(Match::new(3, pos + 1 - at as usize));
        }
    }

    #[inline]
    fn hash(&self, data: &[u8], pos: usize) -> Option<usize> {
        if self.params.hash > 0 {
            return HASHES[usize::from(self.params.hash) - 1].of(data, pos, u32::from(self.params.bits));
        }
        let three = data.get(pos..pos + 3)?;
        let shift = u32::from(self.params.bits).div_ceil(3);
        let hash = u32::from(three[0]) << (2 * shift) ^ u32::from(three[1]) << shift ^ u32::from(three[2]);
        Some(hash as usize & (self.heads.len() - 1))
    }
}

/// Hash of the 3 bytes at `pos`, which the data has.
#[inline]
fn near_hash(data: &[u8], pos: usize) -> usize {
    let three = u32::from(data[pos]) | u32::from(data[pos + 1]) << 8 | u32::from(data[pos + 2]) << 16;
    (three.wrapping_mul(0x1E35_A7BD) >> (32 - NEAR_BITS)) as usize
}
