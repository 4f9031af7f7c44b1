//! Coding of the tokens of a span: what an expert foretells, and what it misses.
//!
//! Whether an expert was right is for `hits` to code. What was missed is coded by the model, or the fallback.

use super::coder::Coder;
use super::config::Config;
use super::expert::{AnyExpert, Expert};
use super::fallback::Fallback;
use super::hits::{Hits, Record};
use super::model::Model;
use super::{Error, Token};

/// Codes tokens of one span, each once and in order.
#[derive(Debug)]
pub struct TokenCoder {
    /// None if there is none, or a record in place of it.
    expert: Option<AnyExpert>,
    hits: Option<Hits>,
    misses: Misses,
    /// What the expert was asked for already, at the position that is coded next.
    foretold: Option<Token>,
}

impl TokenCoder {
    /// For `data`, of which what is from `start` on belongs to the span. With a record, it is what an encoder found,
    /// and the decoder's is empty.
    #[must_use]
    pub fn new(config: &Config, data: &[u8], start: usize, maybe_record: Option<Record>) -> Self {
        let is_recorded = maybe_record.as_ref().is_some_and(Record::is_of_encoder);
        let params = config.expert.filter(|_| !is_recorded);
        let expert = params.map(|params| AnyExpert::new(&params, data, start));
        let hits = config.expert.map(|_| Hits::new(maybe_record));
        let misses = match &config.model {
            Some(params) => Misses::Model(Box::new(Model::new(params, start))),
            None => Misses::Fallback(Box::default()),
        };
        Self {
            expert,
            hits,
            misses,
            foretold: None,
        }
    }

    /// A block that is not stored begins; `end` as for `code`. `sync`: an empty stored block came just before.
    pub fn block(&mut self, data: &[u8], pos: usize, end: usize, sync: bool) {
        if let Some(expert) = &mut self.expert {
            expert.block(data, pos, end, sync);
        }
    }

    /// Plain bytes came in a stored block.
    pub fn stored(&mut self, data: &[u8], pos: usize, end: usize) {
        if let (Some(expert), true) = (&mut self.expert, pos < end) {
            expert.stored(data, pos, end);
        }
    }

    /// Passes over those of an encoder's `tokens`, the first of them at `pos`, for which nothing has to be coded.
    /// Gives how many they are and where they end.
    #[inline]
    pub fn pass(&mut self, pos: usize, tokens: &[Token]) -> (usize, usize) {
        let (None, Some(hits)) = (&self.expert, &mut self.hits) else {
            return (0, pos);
        };
        let (count, to) = hits.sure_of(pos, tokens);
        hits.pass(count);
        self.misses.skip_all(pos, &tokens[..count]);
        (count, to)
    }

    /// Adds to a decoder's `tokens`, the next of them at `pos`, those for which nothing has to be read, until there are
    /// `enough` or they reach to `stop`. Gives where they end.
    #[inline]
    pub fn lead(
        &mut self,
        data: &[u8],
        pos: usize,
        (stop, enough): (usize, usize),
        tokens: &mut Vec<Token>,
    ) -> usize {
        let (Some(expert), Some(hits)) = (&mut self.expert, &mut self.hits) else {
            return pos;
        };
        let before = tokens.len();
        let enough = enough.min(before.saturating_add(hits.sure()));
        let led = expert.lead(data, pos, (stop, enough), tokens);
        hits.pass(led.count);
        self.misses.skip_all(pos, &tokens[before..]);
        self.foretold = led.foretold;
        led.pos
    }

    /// Codes the token at `pos`, in a block that ends at `end` as far as that is known, or where the span does.
    ///
    /// # Errors
    ///
    /// `Error::Side` if what is read cannot be there.
    #[inline]
    pub fn code<C: Coder>(
        &mut self,
        coder: &mut C,
        data: &[u8],
        pos: usize,
        end: usize,
        token: Token,
    ) -> Result<Token, Error> {
        if pos >= end {
            return Err(OUTSIDE);
        }
        let foretold = match (self.foretold.take(), &mut self.expert) {
            (Some(foretold), _) => foretold,
            (None, Some(expert)) => expert.predict(data, pos),
            (None, None) => token,
        };
        let mut maybe_foretold = None;
        if let Some(hits) = &mut self.hits {
            let is_right = foretold == token;
            maybe_foretold = if hits.code(coder, self.expert.as_ref(), pos, foretold, is_right)? {
                Some(foretold)
            } else {
                hits.retry(coder, self.expert.as_mut(), (data, pos), token)
            };
        }
        let token = if let Some(foretold) = maybe_foretold {
            self.misses.skip(pos, foretold);
            foretold
        } else {
            self.misses.code(coder, data, pos, end, token)?
        };
        if token.len() > end - pos {
            return Err(OUTSIDE);
        }
        if let Some(expert) = &mut self.expert {
            expert.accept(data, pos, token);
        }
        Ok(token)
    }
}

const OUTSIDE: Error = Error::Side("a token reaches out of its block");

/// What codes the tokens that were not foretold.
#[derive(Debug)]
enum Misses {
    Fallback(Box<Fallback>),
    Model(Box<Model>),
}

impl Misses {
    #[inline]
    fn skip(&mut self, pos: usize, token: Token) {
        match self {
            Self::Fallback(fallback) => fallback.skip(token),
            Self::Model(model) => model.skip(pos, token),
        }
    }

    fn skip_all(&mut self, pos: usize, tokens: &[Token]) {
        match self {
            Self::Fallback(fallback) => fallback.skip_all(tokens),
            Self::Model(model) => model.skip_all(pos, tokens),
        }
    }

    fn code<C: Coder>(
        &mut self,
        coder: &mut C,
        data: &[u8],
        pos: usize,
        end: usize,
        token: Token,
    ) -> Result<Token, Error> {
        match self {
            Self::Fallback(fallback) => fallback.code(coder, data, pos, end, token),
            Self::Model(model) => model.code(coder, data, pos, end, token),
        }
    }
}
