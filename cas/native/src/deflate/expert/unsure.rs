//! What an encoder that puts only some positions into its tables may have put in before the span began.
//!
//! The history is parsed as the encoder would have if nothing came before it, which says of most positions
//! rightly whether they are in. What is wrong in it shows when a foretelling is: whoever goes by it may then be
//! told so, try again, and learn from what was there in the end.

use super::{AGES, TIMES};
use crate::deflate::{Token, WINDOW};

/// Bits of the positions of the history.
type Bits = [u64; WINDOW / 64];

/// Positions of the history, each thought to be in or out.
pub struct Unsure {
    end: usize,
    out: Box<Bits>,
    /// Matches that were found and not written.
    tried: Vec<Tried>,
    /// Whether all positions are looked at, those that are out too.
    is_open: bool,
}

/// A match of `len` bytes at `at`, which was thought to be out or not before it was found.
struct Tried {
    at: usize,
    len: usize,
    was_out: bool,
}

/// So many matches are tried for one token.
const TRIES: usize = 16;
/// A position that is out lies in a long match: so do those around it.
const BEFORE: usize = 0;
const AFTER: usize = 2;

impl Unsure {
    /// Of the history before `end`, the whole of which is thought to be in.
    pub fn new(end: usize) -> Self {
        Self {
            end,
            out: Box::new([0; WINDOW / 64]),
            tried: Vec::with_capacity(TRIES),
            is_open: false,
        }
    }

    /// Whether anything of it can be reached from `pos`.
    pub fn reaches(&self, pos: usize) -> bool {
        pos < self.end + WINDOW
    }

    #[inline]
    pub fn is_out(&self, at: usize) -> bool {
        if at >= self.end {
            return false;
        }
        if self.is_open {
            return self.tried.iter().any(|tried| tried.at == at);
        }
        self.has_mark(at)
    }

    #[inline]
    fn has_mark(&self, at: usize) -> bool {
        self.out[at / 64 % self.out.len()] >> (at % 64) & 1 != 0
    }

    /// Takes what is from `from` to `to` as out, as far as it is history.
    pub fn leave_out(&mut self, from: usize, to: usize) {
        for at in from..to.min(self.end) {
            self.out[at / 64 % self.out.len()] |= 1 << (at % 64);
        }
    }

    fn take_in(&mut self, at: usize) {
        if at < self.end {
            self.out[at / 64 % self.out.len()] &= !(1 << (at % 64));
        }
    }

    /// How far a match at `at` is to be doubted that was found at `pos`, as `Expert::doubt` has it.
    pub fn doubt(&self, at: usize, pos: usize) -> Option<usize> {
        let age = AGES * at / WINDOW;
        let time = TIMES * (pos - self.end) / WINDOW;
        (at < self.end).then(|| age.min(AGES - 1) * TIMES + time.min(TIMES - 1))
    }

    /// What was found was not written: the match of some bytes at `at`, or none. It is to be looked for without that match,
    /// and if that was done or is no use, as if everything was in. Whether it may be found then.
    pub fn tried(&mut self, maybe_match: Option<(usize, usize)>) -> bool {
        if self.tried.len() == TRIES {
            return false;
        }
        let is_first = self.tried.is_empty() && !self.is_open;
        match maybe_match {
            Some((at, len)) if at < self.end => {
                let was_out = self.has_mark(at);
                self.tried.push(Tried { at, len, was_out });
                self.leave_out(at, at + 1);
                self.is_open = !is_first;
                true
            }
            _ => !std::mem::replace(&mut self.is_open, true),
        }
    }

    /// The token at `pos` is known.
    #[inline]
    pub fn learn(&mut self, pos: usize, token: Token) {
        self.is_open = false;
        while let Some(Tried { at, len, was_out }) = self.tried.pop() {
            let is_found_first = pos - at < token.dist();
            if token.len() < len || token.len() == len && is_found_first {
                self.leave_out(at.saturating_sub(BEFORE), at + 1 + AFTER);
            } else if !was_out {
                self.take_in(at);
            }
        }
        if !token.is_literal() {
            self.take_in(pos - token.dist());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{TRIES, Unsure};
    use crate::deflate::Token;

    #[test]
    fn what_was_found_and_not_written_is_out() {
        let mut unsure = Unsure::new(100);
        assert!(unsure.tried(Some((40, 8))));
        assert!(unsure.is_out(40) && !unsure.is_out(41));
        unsure.learn(200, Token::matched(7, 150));
        assert!(unsure.is_out(40) && unsure.is_out(41) && !unsure.is_out(50));
    }

    #[test]
    fn a_match_that_gave_way_to_a_better_one_stays_in() {
        let mut unsure = Unsure::new(100);
        unsure.leave_out(60, 70);
        assert!(unsure.tried(Some((40, 8))));
        assert!(unsure.tried(None) && !unsure.tried(None));
        assert!(!unsure.is_out(65), "all are looked at");
        unsure.learn(200, Token::matched(9, 135));
        assert!(!unsure.is_out(40) && !unsure.is_out(65) && unsure.is_out(66));
    }

    #[test]
    fn tries_come_to_an_end() {
        let mut unsure = Unsure::new(100);
        assert!((0..TRIES).all(|at| unsure.tried(Some((at, 8)))));
        assert!(!unsure.tried(Some((90, 8))) && !unsure.tried(None));
    }

    #[test]
    fn only_history_is_doubted() {
        let unsure = Unsure::new(100);
        assert_eq!((Some(0), None), (unsure.doubt(99, 150), unsure.doubt(100, 150)));
    }
}
