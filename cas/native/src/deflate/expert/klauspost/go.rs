//! Level 1 of Go's compress/flate, from which the others came: one table, no extension to the left, and a step
//! that grows with the length of the scan.

use super::super::bytes::load32;
use super::super::slots::Slots;
use super::{Chunk, Level, Plan, REACH, STEPS};

const BITS: u32 = 14;

pub struct GoFastest {
    table: Slots<{ 1 << BITS }, 1>,
    /// Where the scan began.
    from: usize,
}

impl GoFastest {
    /// How far before `at` there is a match, if there is; `at` is put in.
    #[inline]
    fn probe(&mut self, data: &[u8], at: usize) -> Option<usize> {
        let word = load32(data, at);
        let hash = (word.wrapping_mul(0x1E35_A7BD) >> (32 - BITS)) as usize;
        let [back] = self.table.back(hash, at);
        self.table.put(hash, at);
        let reaches = back.wrapping_sub(1) < REACH && back <= at;
        (reaches && load32(data, at - back) == word).then_some(back)
    }
}

impl Level for GoFastest {
    const MARGIN: usize = 15;

    fn new(_old: bool) -> Self {
        Self {
            table: Slots::new(),
            from: 0,
        }
    }

    fn clear(&mut self) {
        self.table.clear();
    }

    fn scan(&mut self, data: &[u8], chunk: &mut Chunk) -> Option<Plan> {
        if chunk.at == chunk.emitted {
            self.from = chunk.at;
        }
        for _ in 0..STEPS {
            let at = chunk.at;
            let ahead = at + 1 + ((at - self.from) >> 5);
            if ahead > chunk.limit() {
                chunk.at = chunk.end;
                return None;
            }
            if let Some(dist) = self.probe(data, at) {
                chunk.ahead = at;
                return Some(self.plan(data, chunk, dist));
            }
            chunk.at = ahead;
        }
        None
    }

    fn plan(&self, data: &[u8], chunk: &Chunk, dist: usize) -> Plan {
        Plan {
            at: chunk.at,
            len: chunk.extend_token(data, chunk.at, dist),
            dist,
        }
    }

    fn index(&mut self, data: &[u8], chunk: &mut Chunk, _len: usize) {
        if chunk.at >= chunk.limit() {
            return;
        }
        self.probe(data, chunk.at - 1);
        chunk.pending = self.probe(data, chunk.at);
        if chunk.pending.is_none() {
            chunk.at += 1;
        }
        self.from = chunk.at;
    }
}
