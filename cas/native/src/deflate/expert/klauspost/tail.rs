//! Levels 5 and 6: the table by seven bytes has two positions for each hash, and a match is looked at from its
//! end. What seven bytes say there may, extended to the left, be the longer one.

use super::super::bytes::{load32, load64};
use super::double::{Found, Tables, hash4, hash7, instead};
use super::{Chunk, Level, Plan, REACH, STEPS, agrees, reaches};
use crate::deflate::Token;

/// Level 5 does not look at a match as long from its end.
const LONG: usize = 30;

/// Where levels 5 and 6 stop to take a match.
#[derive(Clone, Copy)]
struct Hit {
    at: usize,
    /// How far back those are that seven bytes and that four bytes give, and whether they match.
    long: [usize; 2],
    is_long: [bool; 2],
    short: usize,
}

/// Whether the four bytes `back` before `at`, which are there if that is within reach, are those of `word`, and it is.
/// Neither is rare, so that it is not branched by.
#[inline]
fn is_match(data: &[u8], at: u32, back: u32, word: u64) -> bool {
    let is_near = reaches(back as usize);
    let from = at.wrapping_sub(if is_near { back } else { 0 });
    is_near & (load32(data, from as usize) == word as u32)
}

impl Tables<2> {
    /// Scans on for at most `STEPS` steps, as `Level::scan` does.
    #[inline(always)]
    fn run(&mut self, data: &[u8], chunk: &mut Chunk, slowness: u32) -> Option<Hit> {
        let (emitted, limit) = (chunk.emitted, chunk.limit());
        let mut at = chunk.at;
        for _ in 0..STEPS {
            let ahead = at + 1 + ((at - emitted) >> slowness);
            if ahead > limit {
                (chunk.at, chunk.ahead) = (chunk.end, ahead);
                return None;
            }
            let word = load64(data, at);
            let entry = self.short.entry(at);
            let [short] = self.short.swap(hash4(word), entry);
            let [first, second] = self.long.swap(hash7(word), entry);
            let here = at as u32;
            let is_first = is_match(data, here, first, word);
            let is_second = is_match(data, here, second, word) & reaches(first as usize);
            if is_first | is_second | is_match(data, here, short, word) {
                (chunk.at, chunk.ahead) = (at, ahead);
                return Some(Hit {
                    at,
                    long: [first as usize, second as usize],
                    is_long: [is_first, is_second],
                    short: short as usize,
                });
            }
            at = ahead;
        }
        (chunk.at, chunk.ahead) = (at, at);
        None
    }

    /// The match that is taken at a hit; `hold` decides what becomes of one found by four bytes.
    #[inline(always)]
    fn take(
        &mut self,
        data: &[u8],
        chunk: &Chunk,
        hit: Hit,
        hold: impl Fn(Found, [usize; 2], u64) -> Found,
    ) -> Found {
        let (at, ahead) = (hit.at, chunk.ahead);
        let next = load64(data, ahead);
        let entry = self.short.entry(ahead);
        self.short.swap(hash4(next), entry);
        let backs = self.long.swap(hash7(next), entry).map(|back| back as usize);
        let [first, second] = hit.long;
        match hit.is_long {
            [true, false] => Found {
                at,
                len: 0,
                dist: first,
            },
            [false, true] => Found {
                at,
                len: 0,
                dist: second,
            },
            [true, true] => longer(
                data,
                chunk,
                Found {
                    at,
                    len: 0,
                    dist: first,
                },
                second,
            ),
            [false, false] => {
                let (dist, len) = (hit.short, chunk.extend_token(data, at, hit.short));
                hold(Found { at, len, dist }, backs, next)
            }
        }
    }
}

/// The longer of two matches at the same position.
#[inline(always)]
fn longer(data: &[u8], chunk: &Chunk, one: Found, other: usize) -> Found {
    let [first, second] = [one.dist, other].map(|dist| chunk.extend_token(data, one.at, dist));
    if second > first {
        Found {
            len: second,
            dist: other,
            ..one
        }
    } else {
        Found { len: first, ..one }
    }
}

/// A match where the scan would go on, `back` from there, if it is one and longer than `held`.
#[inline(always)]
fn better(data: &[u8], chunk: &Chunk, held: Found, back: usize, next: u64) -> Option<Found> {
    if !agrees(data, chunk.ahead, back, next) {
        return None;
    }
    let len = chunk.extend_token(data, chunk.ahead, back);
    (len > held.len).then_some(Found {
        at: chunk.ahead,
        len,
        dist: back,
    })
}

/// The whole length of a match that was compared at the length of a token, or not at all.
#[inline(always)]
fn complete(data: &[u8], chunk: &Chunk, found: Found) -> Found {
    let known = if found.len == 0 { 4 } else { found.len };
    if found.len != 0 && found.len != Token::MAX_LEN {
        return found;
    }
    Found {
        len: chunk.extend(data, found.at, found.dist, known),
        ..found
    }
}

pub struct Level5 {
    tables: Tables<2>,
    /// How far from its start a match may go wrong when it is looked at from its end.
    shift: usize,
}

impl Level for Level5 {
    fn new(old: bool) -> Self {
        Self {
            tables: Tables::new(),
            shift: if old { 0 } else { 2 },
        }
    }

    fn clear(&mut self) {
        self.tables.clear();
    }

    #[inline(always)]
    fn scan(&mut self, data: &[u8], chunk: &mut Chunk) -> Option<Plan> {
        let hit = self.tables.run(data, chunk, 6)?;
        let found = self.tables.take(data, chunk, hit, |held, backs, next| {
            let mut all = backs.into_iter();
            all.find_map(|back| better(data, chunk, held, back, next))
                .unwrap_or(held)
        });
        let mut found = complete(data, chunk, found);
        let tail = found.at + found.len;
        if found.len < LONG && tail < chunk.limit() {
            let [back, _] = self.tables.long.back(hash7(load64(data, tail)), tail);
            found = instead(data, chunk, found.at + self.shift, back, found);
        }
        Some(chunk.widen(data, found.at, found.dist, found.len))
    }

    fn index(&mut self, data: &[u8], chunk: &mut Chunk, len: usize) {
        let at = chunk.at;
        if at >= chunk.limit() {
            return;
        }
        let mut inside = at - len + 1;
        if inside + 1 < at {
            let word = load64(data, inside);
            self.tables.put(word, inside);
            self.tables.put_long(word >> 8, inside + 1);
            self.tables.put_short(word >> 16, inside + 2);
            inside += 4;
        }
        while inside + 1 < at {
            let word = load64(data, inside);
            self.tables.put_long(word, inside);
            self.tables.put_short(word >> 8, inside + 1);
            inside += 3;
        }
        self.tables.put(load64(data, at - 1), at - 1);
    }
}

pub struct Level6 {
    tables: Tables<2>,
    shift: usize,
}

impl Level6 {
    /// What both positions that seven bytes give at the end of a match make of it. The second is tried with
    /// the length that the first has brought.
    fn by_end(&self, data: &[u8], chunk: &Chunk, found: Found) -> Found {
        let tail = found.at + found.len;
        if tail >= chunk.limit() {
            return found;
        }
        let [first, second] = self.tables.long.back(hash7(load64(data, tail)), tail);
        if first >= REACH {
            return found;
        }
        let at = found.at + self.shift;
        let one = instead(data, chunk, at, first, found);
        instead(data, chunk, at, second.saturating_add(one.len - found.len), one)
    }
}

impl Level for Level6 {
    fn new(old: bool) -> Self {
        Self {
            tables: Tables::new(),
            shift: if old { 0 } else { 2 },
        }
    }

    fn clear(&mut self) {
        self.tables.clear();
    }

    #[inline(always)]
    fn scan(&mut self, data: &[u8], chunk: &mut Chunk) -> Option<Plan> {
        let hit = self.tables.run(data, chunk, 7)?;
        let found = self.tables.take(data, chunk, hit, |held, [first, second], next| {
            let (after, repeat) = (hit.at + 1, chunk.repeat);
            if agrees(data, after, repeat, load64(data, after)) {
                let len = 4 + chunk.extend_token(data, after, repeat).saturating_sub(4);
                if len > held.len {
                    return Found {
                        at: after,
                        len,
                        dist: repeat,
                    };
                }
            }
            if !reaches(first) {
                return held;
            }
            let one = better(data, chunk, held, first, next).unwrap_or(held);
            better(data, chunk, one, second, next).unwrap_or(one)
        });
        let found = self.by_end(data, chunk, complete(data, chunk, found));
        chunk.repeat = found.dist;
        Some(chunk.widen(data, found.at, found.dist, found.len))
    }

    fn index(&mut self, data: &[u8], chunk: &mut Chunk, _len: usize) {
        let (mut inside, at) = (chunk.ahead + 1, chunk.at);
        if at >= chunk.limit() {
            while inside + 8 < chunk.end {
                self.tables.put(load64(data, inside), inside);
                inside += 2;
            }
            return;
        }
        while inside + 1 < at {
            let word = load64(data, inside);
            self.tables.put(word, inside);
            self.tables.put_long(word >> 8, inside + 1);
            inside += 2;
        }
    }
}
