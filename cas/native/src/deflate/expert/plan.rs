//! Encoders that scan ahead for the next match, written as the scan alone.
//!
//! Such an encoder knows nothing of a lazy choice: from the end of one match it runs ahead until a table gives
//! it the next, and all before that are literals. So one find foretells many tokens, and an expert is a
//! *scanner* with a *plan*: the literals up to a match, and the match. When a token was another one, the
//! scanner goes on behind that, with whatever it has put into its tables.

use super::{Expert, Followed};
use crate::deflate::Token;

/// Literals up to `at`, then `len` bytes that stand `dist` back as well. `len` 0: nothing is known further on.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Plan {
    pub at: usize,
    pub len: usize,
    pub dist: usize,
}

/// The scan of one encoder.
pub trait Scanner {
    /// A block begins at `pos`. `sync` as in `Expert`.
    fn begin(&mut self, data: &[u8], pos: usize, end: usize, sync: bool);

    /// The next match at or after the position where the scan stands, not after a position that it says is
    /// all literals before. Must take at most some hundred steps. Matches stay inside the chunk, and have at
    /// most `longest` bytes, if they can be longer than 258 at all.
    fn find(&mut self, data: &[u8], longest: usize) -> Plan;

    /// All of a match from `at` to `end` was written; the scan goes on there. `planned`: it is what `find` gave.
    fn matched(&mut self, data: &[u8], at: usize, end: usize, planned: bool);

    /// End of the chunk of input where the scan stands. What it chose is written or not chunk by chunk.
    fn chunk_end(&self) -> usize;

    /// Bytes of the next token when `left` are still to be written of a match.
    fn piece(&self, left: usize) -> usize {
        left.min(Token::MAX_LEN)
    }
}

/// From so many wrong foretellings on, with no match foretold rightly between them, matches are not followed
/// further than a token reaches: short tokens in a long run of one byte would cost its length squared.
const PATIENCE: u32 = 4;

/// An encoder may find that matches do not pay and write a whole chunk as literals. After so many matches that
/// came as literals that is what is foretold, up to the end of the chunk or the first match.
const REFUSED: u32 = 2;

pub struct Planned<S> {
    scanner: S,
    plan: Plan,
    /// Where the next token is.
    pos: usize,
    end: usize,
    wrong: u32,
    /// End of the chunk, and matches in a row in it that came as literals.
    chunk: usize,
    refused: u32,
    /// Up to here there are only literals, though a match is planned.
    literals: usize,
}

impl<S: Scanner> Planned<S> {
    /// At `start` of `data`, with a scanner that has seen what it wants of the bytes before.
    pub fn new(scanner: S, start: usize) -> Self {
        Self {
            scanner,
            plan: Plan::default(),
            pos: start,
            end: start,
            wrong: 0,
            chunk: 0,
            refused: 0,
            literals: 0,
        }
    }

    #[inline]
    fn next(&mut self, data: &[u8]) -> Token {
        if self.pos >= self.plan.at + self.plan.len {
            self.replan(data);
        }
        if self.pos < self.plan.at || self.pos < self.literals {
            return Token::LITERAL;
        }
        let len = self
            .scanner
            .piece((self.plan.at + self.plan.len).min(self.end) - self.pos);
        if len < Token::MIN_LEN {
            Token::LITERAL
        } else {
            Token::matched(len, self.plan.dist)
        }
    }

    /// Literals up to the match that is planned, `most` at most.
    #[inline]
    fn literals_ahead(&mut self, data: &[u8], most: usize) -> usize {
        if self.pos >= self.plan.at + self.plan.len {
            self.replan(data);
        }
        self.plan.at.saturating_sub(self.pos).min(most)
    }

    /// The token that `next` gave was what is there.
    #[inline]
    fn was_right(&mut self, data: &[u8], token: Token) {
        self.pos += token.len();
        if self.pos >= self.plan.at + self.plan.len && self.plan.len > 0 {
            self.scanner.matched(data, self.plan.at, self.pos, true);
            if !token.is_literal() {
                (self.wrong, self.refused) = (0, 0);
            }
        }
    }

    /// Not inline: it is what everything below a scan is to be inlined in.
    #[inline(never)]
    fn replan(&mut self, data: &[u8]) {
        let longest = if self.wrong < PATIENCE {
            usize::MAX
        } else {
            Token::MAX_LEN
        };
        self.plan = self.scanner.find(data, longest);
        if self.chunk != self.scanner.chunk_end() {
            (self.chunk, self.refused) = (self.scanner.chunk_end(), 0);
        }
    }

    #[cold]
    fn surprise(&mut self, data: &[u8], token: Token) {
        self.wrong = self.wrong.saturating_add(1);
        if token.is_literal() {
            // The match may have been found all the same.
            self.refused += 1;
            let end = self.plan.at + self.plan.len;
            self.literals = if self.refused < REFUSED {
                end
            } else {
                self.scanner.chunk_end()
            };
        } else {
            let from = if self.literals > self.pos {
                self.pos
            } else {
                self.pos.min(self.plan.at)
            };
            self.scanner.matched(data, from, self.pos + token.len(), false);
            self.plan = Plan::default();
            (self.literals, self.refused) = (0, 0);
        }
    }
}

impl<S: Scanner> Expert for Planned<S> {
    fn block(&mut self, data: &[u8], pos: usize, end: usize, sync: bool) {
        self.scanner.begin(data, pos, end, sync);
        (self.pos, self.end) = (pos, end);
        self.plan = Plan::default();
        (self.literals, self.refused) = (0, 0);
    }

    #[inline]
    fn predict(&mut self, data: &[u8], pos: usize) -> Token {
        debug_assert_eq!(self.pos, pos);
        self.next(data)
    }

    #[inline]
    fn accept(&mut self, data: &[u8], pos: usize, token: Token) {
        debug_assert_eq!(self.pos, pos);
        if token == self.next(data) {
            self.was_right(data, token);
        } else {
            self.surprise(data, token);
            self.pos += token.len();
        }
    }

    #[inline]
    fn follow(&mut self, data: &[u8], pos: usize, tokens: &[Token]) -> Followed {
        debug_assert_eq!(self.pos, pos);
        let (mut count, mut foretold) = (0, None);
        while count < tokens.len() {
            let ahead = self.literals_ahead(data, tokens.len() - count);
            let literals = tokens[count..count + ahead]
                .iter()
                .take_while(|token| token.is_literal())
                .count();
            self.pos += literals;
            count += literals;
            if count == tokens.len() {
                break;
            }
            let token = self.next(data);
            if token != tokens[count] {
                foretold = Some(token);
                break;
            }
            self.was_right(data, token);
            count += 1;
        }
        let pos = self.pos;
        Followed { count, pos, foretold }
    }

    #[inline]
    fn lead(
        &mut self,
        data: &[u8],
        pos: usize,
        (stop, enough): (usize, usize),
        tokens: &mut Vec<Token>,
    ) -> Followed {
        debug_assert_eq!(self.pos, pos);
        let before = tokens.len();
        while self.pos < stop && tokens.len() < enough {
            let ahead = self.literals_ahead(data, (stop - self.pos).min(enough - tokens.len()));
            tokens.extend(std::iter::repeat_n(Token::LITERAL, ahead));
            self.pos += ahead;
            if self.pos == stop || tokens.len() == enough {
                break;
            }
            let token = self.next(data);
            self.was_right(data, token);
            tokens.push(token);
        }
        let (count, pos) = (tokens.len() - before, self.pos);
        Followed {
            count,
            pos,
            foretold: None,
        }
    }
}
