//! Coding of the tokens of a span: what an expert foretells, and what it misses.

use super::coder::Coder;
use super::config::Config;
use super::fallback::Fallback;
use super::{Error, Token};

/// Codes tokens of one span, each once and in order.
#[derive(Debug)]
pub struct TokenCoder {
    fallback: Fallback,
}

impl TokenCoder {
    #[must_use]
    pub fn new(_config: &Config) -> Self {
        Self {
            fallback: Fallback::new(),
        }
    }

    /// Codes the token at `pos`, in a block that ends at `end` as far as that is known, or where the span does.
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
        if pos >= end {
            return Err(Error::Side("a block has more tokens than plain bytes"));
        }
        self.fallback.code(coder, data, pos, end, token)
    }
}
