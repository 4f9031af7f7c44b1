//! Tokens that the model was not asked about, kept until it is.

use super::super::{Token, WINDOW};

const MASK: usize = WINDOW - 1;

/// The last tokens, as many as can lie in a window.
#[derive(Debug)]
pub struct Skipped {
    ring: Vec<Token>,
    count: usize,
    end: usize,
}

impl Skipped {
    #[must_use]
    pub fn new() -> Self {
        Self {
            ring: Vec::new(),
            count: 0,
            end: 0,
        }
    }

    #[inline]
    pub fn push(&mut self, pos: usize, token: Token) {
        if self.ring.is_empty() {
            self.ring.resize(WINDOW, Token::LITERAL);
        }
        if pos != self.end {
            self.count = 0;
        }
        self.ring[self.count & MASK] = token;
        self.count += 1;
        self.end = pos + token.len();
    }

    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The tokens that reach into the last 32768 positions before the end of the last one, with where they are; the first.
    pub fn take(&mut self) -> Vec<(usize, Token)> {
        let mut tokens = Vec::new();
        let mut pos = self.end;
        for back in 1..=self.count.min(WINDOW) {
            if self.end - pos >= WINDOW {
                break;
            }
            let token = self.ring[self.count.wrapping_sub(back) & MASK];
            pos -= token.len();
            tokens.push((pos, token));
        }
        self.count = 0;
        tokens.reverse();
        tokens
    }
}
