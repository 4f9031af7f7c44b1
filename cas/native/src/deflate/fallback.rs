//! Coding of tokens without any idea of what an encoder does.
//!
//! It costs about what Huffman coding does: the way for the few tokens that nothing foretells.

use super::coder::{Coder, Counter, Tree, code_raw};
use super::codes::{DISTANCE_BASE, DISTANCE_EXTRA, distance_slot};
use super::{Error, Token, WINDOW};

/// Tokens before whose kinds count.
const KINDS: usize = 3;

/// Codes tokens by length and distance.
#[derive(Debug)]
pub struct Fallback {
    /// By the kinds of the tokens before.
    is_literal: [Counter; 1 << KINDS],
    last_kinds: usize,
    length: Tree,
    is_odd: Counter,
    slot: Tree,
}

impl Default for Fallback {
    fn default() -> Self {
        Self::new()
    }
}

impl Fallback {
    #[must_use]
    pub fn new() -> Self {
        Self {
            is_literal: [Counter::new(); 1 << KINDS],
            last_kinds: 0,
            length: Tree::new(8),
            is_odd: Counter::biased(1000, 2),
            slot: Tree::new(5),
        }
    }

    /// Codes the token at `pos` of `data`, in a block or span that ends at `end`.
    ///
    /// # Errors
    ///
    /// `Error::Side` if what is read cannot be there.
    pub fn code<C: Coder>(
        &mut self,
        coder: &mut C,
        data: &[u8],
        pos: usize,
        end: usize,
        token: Token,
    ) -> Result<Token, Error> {
        let is_literal = self.is_literal[self.last_kinds].code(coder, token.is_literal());
        self.saw(is_literal);
        if is_literal {
            return Ok(Token::LITERAL);
        }
        let of_token = token.len().wrapping_sub(Token::MIN_LEN) & 0xFF;
        let len = Token::MIN_LEN + self.length.code(coder, of_token);
        let is_odd = len == Token::MAX_LEN && self.is_odd.code(coder, token.is_odd());
        let slot = self.slot.code(coder, distance_slot(token.dist().max(1)));
        let (Some(&base), Some(&extra)) = (DISTANCE_BASE.get(slot), DISTANCE_EXTRA.get(slot)) else {
            return Err(Error::Side("a distance is too large"));
        };
        let base = usize::from(base);
        let more = code_raw(coder, token.dist().wrapping_sub(base) as u32, extra.into());
        let dist = base + more as usize;
        if !fits(data, pos, end, len, dist) {
            return Err(Error::Side("a match is not of the bytes that are there"));
        }
        Ok(if is_odd {
            Token::odd_258(dist)
        } else {
            Token::matched(len, dist)
        })
    }

    /// Sees a token that was not coded here.
    pub fn skip(&mut self, token: Token) {
        self.saw(token.is_literal());
    }

    /// Sees several.
    pub fn skip_all(&mut self, tokens: &[Token]) {
        for token in &tokens[tokens.len().saturating_sub(KINDS)..] {
            self.skip(*token);
        }
    }

    fn saw(&mut self, is_literal: bool) {
        self.last_kinds = (self.last_kinds << 1 | usize::from(is_literal)) & ((1 << KINDS) - 1);
    }
}

/// Whether a match can be at `pos`, and is of the bytes that are there.
#[must_use]
pub fn fits(data: &[u8], pos: usize, end: usize, len: usize, dist: usize) -> bool {
    let end = end.min(data.len());
    if !(1..=WINDOW).contains(&dist) || dist > pos || pos > end || len > end - pos {
        return false;
    }
    data[pos - dist..pos - dist + len] == data[pos..pos + len]
}
