//! Levels 5 and 6: the table by seven bytes has two positions for each hash, and a match is looked at from its
//! end. What seven bytes say there may, extended to the left, be the longer one.

use super::super::bytes::load64;
use super::double::{Found, Tables, hash4, hash7, instead};
use super::{Chunk, Level, Plan, REACH, STEPS, agrees, reaches};
use crate::deflate::Token;

/// Level 5 does not look at a match as long from its end.
const LONG: usize = 30;

impl Tables<2> {
    /// What levels 5 and 6 find at `at`; `hold` decides what becomes of a match found by four bytes.
    #[inline]
    fn probe(
        &mut self,
        data: &[u8],
        chunk: &Chunk,
        at: usize,
        hold: impl Fn(Found, [usize; 2], u64) -> Found,
    ) -> Option<Found> {
        let (word, ahead) = (load64(data, at), chunk.ahead);
        let (hash, hash_long) = (hash4(word), hash7(word));
        let [short] = self.short.back(hash, at);
        let [first, second] = self.long.back(hash_long, at);
        self.short.put(hash, at);
        self.long.put(hash_long, at);
        if reaches(first) {
            let is_second = agrees(data, at, second, word);
            if agrees(data, at, first, word) {
                self.put(load64(data, ahead), ahead);
                let one = Found {
                    at,
                    len: 0,
                    dist: first,
                };
                return Some(if is_second {
                    longer(data, chunk, one, second)
                } else {
                    one
                });
            }
            if is_second {
                self.put(load64(data, ahead), ahead);
                return Some(Found {
                    at,
                    len: 0,
                    dist: second,
                });
            }
        }
        if agrees(data, at, short, word) {
            let next = load64(data, ahead);
            let hash_long = hash7(next);
            let backs = self.long.back(hash_long, ahead);
            self.short.put(hash4(next), ahead);
            self.long.put(hash_long, ahead);
            let len = chunk.extend_token(data, at, short);
            return Some(hold(Found { at, len, dist: short }, backs, next));
        }
        None
    }
}

/// The longer of two matches at the same position.
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
#[inline]
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
#[inline]
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

    fn scan(&mut self, data: &[u8], chunk: &mut Chunk) -> Option<Plan> {
        for _ in 0..STEPS {
            let at = Tables::<2>::step(chunk, 6)?;
            let hold = |held, backs: [usize; 2], next| {
                let mut all = backs.into_iter();
                all.find_map(|back| better(data, chunk, held, back, next))
                    .unwrap_or(held)
            };
            if let Some(found) = self.tables.probe(data, chunk, at, hold) {
                let mut found = complete(data, chunk, found);
                let tail = found.at + found.len;
                if found.len < LONG && tail < chunk.limit() {
                    let [back, _] = self.tables.long.back(hash7(load64(data, tail)), tail);
                    found = instead(data, chunk, found.at + self.shift, back, found);
                }
                return Some(chunk.widen(data, found.at, found.dist, found.len));
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

    fn scan(&mut self, data: &[u8], chunk: &mut Chunk) -> Option<Plan> {
        for _ in 0..STEPS {
            let at = Tables::<2>::step(chunk, 7)?;
            let hold = |held: Found, backs: [usize; 2], next| {
                let (after, repeat) = (at + 1, chunk.repeat);
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
                let [first, second] = backs;
                if !reaches(first) {
                    return held;
                }
                let one = better(data, chunk, held, first, next).unwrap_or(held);
                better(data, chunk, one, second, next).unwrap_or(one)
            };
            if let Some(found) = self.tables.probe(data, chunk, at, hold) {
                let found = self.by_end(data, chunk, complete(data, chunk, found));
                chunk.repeat = found.dist;
                return Some(chunk.widen(data, found.at, found.dist, found.len));
            }
            chunk.at = chunk.ahead;
        }
        None
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
