//! Coding of the tokens of a span: what an expert foretells, and what it misses.
//!
//! Whether an expert was right is coded in one of two ways. Where it nearly always is, the lengths of runs of
//! right foretellings are, and a decoder hardly does more than the expert. Where it more often is wrong, there
//! is a flag for each token, by what was foretold and how it went before. What was missed is coded by the model,
//! or the fallback.

use super::coder::{Coder, Counter, Number, SLOW};
use super::config::Config;
use super::expert::{AnyExpert, Expert};
use super::fallback::Fallback;
use super::model::Model;
use super::{Error, Token};

/// Codes tokens of one span, each once and in order.
#[derive(Debug)]
pub struct TokenCoder {
    expert: Option<AnyExpert>,
    hits: Hits,
    misses: Misses,
}

/// How it is coded which foretellings were right.
#[derive(Debug)]
enum Hits {
    /// There are none.
    None,
    Flags(Box<Flags>),
    Runs(Box<Runs>),
}

impl TokenCoder {
    /// For `data`, of which what is from `start` on belongs to the span. With `runs`, these are what an encoder
    /// found them to be, and the decoder knows none of them.
    #[must_use]
    pub fn new(config: &Config, data: &[u8], start: usize, maybe_runs: Option<Vec<u32>>) -> Self {
        let is_encoder_of_runs = maybe_runs.as_ref().is_some_and(|runs| !runs.is_empty());
        let params = config.expert.filter(|_| !is_encoder_of_runs);
        let expert = params.map(|params| AnyExpert::new(&params, data, start));
        let hits = match (maybe_runs, config.expert) {
            (_, None) => Hits::None,
            (None, _) => Hits::Flags(Box::new(Flags::new())),
            (Some(runs), _) => Hits::Runs(Box::new(Runs::new(runs))),
        };
        let misses = match &config.model {
            Some(params) => Misses::Model(Box::new(Model::new(params, start))),
            None => Misses::Fallback(Box::default()),
        };
        Self { expert, hits, misses }
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
        let foretold = self
            .expert
            .as_mut()
            .map_or(token, |expert| expert.predict(data, pos));
        let is_right = match &mut self.hits {
            Hits::None => false,
            Hits::Runs(runs) => runs.code(coder)?,
            Hits::Flags(flags) => flags.code(coder, foretold, foretold == token),
        };
        let token = if is_right {
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

/// Flags of right foretellings, by the last six of them and what was foretold.
#[derive(Debug)]
struct Flags {
    counters: [[Counter; 3]; 64],
    last: usize,
}

impl Flags {
    fn new() -> Self {
        Self {
            counters: [[Counter::biased(60_000, 1); 3]; 64],
            last: 0x3F,
        }
    }

    #[inline]
    fn code<C: Coder>(&mut self, coder: &mut C, foretold: Token, is_right: bool) -> bool {
        let kind = match foretold.len() {
            1 => 0,
            2..8 => 1,
            _ => 2,
        };
        let is_right = self.counters[self.last][kind].code_limited(coder, is_right, SLOW);
        self.last = (self.last << 1 | usize::from(is_right)) & 0x3F;
        is_right
    }
}

/// Runs of right foretellings, each but the last ended by a wrong one.
#[derive(Debug)]
struct Runs {
    /// An encoder's, from the last to the next.
    given: Vec<u32>,
    left: Option<u32>,
    is_last: Counter,
    /// By the length of the run before: none, some, many.
    length: [Number; 3],
    before: usize,
}

/// No span has so many tokens.
const ENDLESS: u32 = u32::MAX;

impl Runs {
    fn new(mut given: Vec<u32>) -> Self {
        given.reverse();
        let length = [(); 3].map(|()| Number::new());
        Self {
            given,
            left: None,
            is_last: Counter::biased(8000, 1),
            length,
            before: 2,
        }
    }

    /// Whether the next foretelling is right.
    #[inline]
    fn code<C: Coder>(&mut self, coder: &mut C) -> Result<bool, Error> {
        let left = match self.left {
            Some(left) => left,
            None => self.next(coder)?,
        };
        self.left = left.checked_sub(u32::from(left != ENDLESS));
        Ok(left > 0)
    }

    #[cold]
    fn next<C: Coder>(&mut self, coder: &mut C) -> Result<u32, Error> {
        let run = self.given.pop().unwrap_or(0);
        if self.is_last.code(coder, self.given.is_empty()) {
            return Ok(ENDLESS);
        }
        let run = self.length[self.before].code(coder, run, ENDLESS - 1)?;
        self.before = usize::from(run > 0) + usize::from(run > 8);
        Ok(run)
    }
}

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
