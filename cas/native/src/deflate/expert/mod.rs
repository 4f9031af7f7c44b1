//! Experts: the ways in which known encoders choose tokens, each as a pure predictor.
//!
//! An expert is told what was really there after each of its foretellings, and goes on from that, so it may
//! be used for an encoder that is only like the one it knows: it is wrong more often.

mod bytes;
mod chain;
mod klauspost;
mod libdeflate;
mod links;
mod menu;
mod miniz;
mod params;
mod plan;
mod score;
mod slots;
mod table;
#[cfg(test)]
mod tests;
mod unsure;
mod zlibng;
#[cfg(test)]
mod zoo;

use super::Token;
use chain::Chain;
use klauspost::{GoFastest, Level1, Level2, Level3, Level4, Level5, Level6, Scan};
use libdeflate::Libdeflate;
pub use menu::{menu, narrow, variants};
use miniz::Miniz;
pub use params::Params;
use plan::Planned;
pub use score::{Score, score};
use table::Table;
use zlibng::ZlibNg;

/// See `Expert::doubt`.
pub const AGES: usize = 8;
pub const TIMES: usize = 4;

/// Foretells the tokens of one encoder from the plain bytes and what it has seen.
///
/// `data` is the history (at most 32 KiB) and all plain bytes of a span; positions are indices into it. The
/// same calls give the same answers everywhere. No call panics or takes long, whatever tokens it is given,
/// as long as they are legal.
pub trait Expert {
    /// A deflate block, or the part of one that lies in the span, begins at `pos`, and its plain bytes end
    /// at `end`. `sync`: an empty stored block came just before it. Blocks without plain bytes are told too.
    fn block(&mut self, data: &[u8], pos: usize, end: usize, sync: bool);

    /// The next token that the encoder would write at `pos`. Always legal: it stays inside the block and
    /// stands for the bytes that are there. To be asked once for every token.
    fn predict(&mut self, data: &[u8], pos: usize) -> Token;

    /// How much it doubts what it foretold last, at `pos`: nothing, or how old what it goes by is, in `AGES`, times `TIMES`,
    /// and how much of the window was seen since the span began, in `TIMES`.
    fn doubt(&self, _pos: usize) -> Option<usize> {
        None
    }

    /// Another token, after the one foretold last at `pos` was said to be wrong; nothing if there is no other that
    /// is likely. As legal, and never the same again. May be asked for again and again, or not at all.
    fn again(&mut self, _data: &[u8], _pos: usize) -> Option<Token> {
        None
    }

    /// What was really there, as foretold or not. To be told for every token after it was asked for.
    fn accept(&mut self, data: &[u8], pos: usize, token: Token);

    /// Foretells and accepts `tokens`, the first of them at `pos`, as long as they are as foretold and that is not
    /// doubted.
    #[inline]
    fn follow(&mut self, data: &[u8], mut pos: usize, tokens: &[Token]) -> Followed {
        for (count, &token) in tokens.iter().enumerate() {
            let foretold = self.predict(data, pos);
            if foretold != token || self.doubt(pos).is_some() {
                let foretold = Some(foretold);
                return Followed { count, pos, foretold };
            }
            self.accept(data, pos, token);
            pos += token.len();
        }
        Followed {
            count: tokens.len(),
            pos,
            foretold: None,
        }
    }

    /// Adds to `tokens`, the first of them at `pos`, what it foretells and is not doubted, as if that was what was
    /// there, until there are `enough` or they reach to `stop`.
    #[inline]
    fn lead(
        &mut self,
        data: &[u8],
        mut pos: usize,
        (stop, enough): (usize, usize),
        tokens: &mut Vec<Token>,
    ) -> Followed {
        let (before, mut foretold) = (tokens.len(), None);
        while pos < stop && tokens.len() < enough {
            let token = self.predict(data, pos);
            if self.doubt(pos).is_some() {
                foretold = Some(token);
                break;
            }
            self.accept(data, pos, token);
            tokens.push(token);
            pos += token.len();
        }
        let count = tokens.len() - before;
        Followed { count, pos, foretold }
    }

    /// Steps that its searches took so far, as `Budget` counts them, if that can be many.
    fn spent(&self) -> usize {
        0
    }

    /// The plain bytes from `pos` to `end`, some at least, came in a stored block.
    fn stored(&mut self, data: &[u8], pos: usize, end: usize) {
        self.block(data, pos, end, false);
        parse(self, data, pos, end);
    }
}

/// How far an expert went over several tokens at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Followed {
    /// Tokens that were accepted.
    pub count: usize,
    /// Where they end.
    pub pos: usize,
    /// What was foretold there, and is doubted or was not what is there: to be accepted yet.
    pub foretold: Option<Token>,
}

/// Lets an expert have its own way from `pos` to the end of its block.
fn parse<E: Expert + ?Sized>(expert: &mut E, data: &[u8], mut pos: usize, end: usize) {
    while pos < end {
        let token = expert.predict(data, pos);
        expert.accept(data, pos, token);
        pos += token.len();
    }
}

/// Any of the experts.
pub enum AnyExpert {
    Chain(Chain),
    Table(Planned<Table>),
    Libdeflate(Libdeflate),
    ZlibNg(Planned<ZlibNg>),
    Miniz(Miniz),
    GoFastest(Planned<Scan<GoFastest>>),
    Klauspost1(Planned<Scan<Level1>>),
    Klauspost2(Planned<Scan<Level2>>),
    Klauspost3(Planned<Scan<Level3>>),
    Klauspost4(Planned<Scan<Level4>>),
    Klauspost5(Planned<Scan<Level5>>),
    Klauspost6(Planned<Scan<Level6>>),
}

macro_rules! each {
    ($any:ident, $expert:ident, $call:expr) => {
        match $any {
            Self::Chain($expert) => $call,
            Self::Table($expert) => $call,
            Self::Libdeflate($expert) => $call,
            Self::ZlibNg($expert) => $call,
            Self::Miniz($expert) => $call,
            Self::GoFastest($expert) => $call,
            Self::Klauspost1($expert) => $call,
            Self::Klauspost2($expert) => $call,
            Self::Klauspost3($expert) => $call,
            Self::Klauspost4($expert) => $call,
            Self::Klauspost5($expert) => $call,
            Self::Klauspost6($expert) => $call,
        }
    };
}

const GO: klauspost::Rule = klauspost::Rule {
    level: 1,
    old: false,
    pieces: false,
};

impl AnyExpert {
    /// At `start` of `data`, having seen the history before.
    #[must_use]
    pub fn new(params: &Params, data: &[u8], start: usize) -> Self {
        match params {
            Params::Chain(rule) => Self::Chain(Chain::new(rule, data, start)),
            Params::Table(rule) => Self::Table(Table::expert(*rule, data, start)),
            Params::Libdeflate(rule) => Self::Libdeflate(Libdeflate::new(rule, start)),
            Params::ZlibNg(rule) => Self::ZlibNg(ZlibNg::expert(rule, data, start)),
            Params::Miniz(rule) => Self::Miniz(Miniz::new(rule, start)),
            Params::GoFastest => Self::GoFastest(Scan::expert(&GO, start)),
            Params::Klauspost(rule) => match rule.level {
                1 => Self::Klauspost1(Scan::expert(rule, start)),
                2 => Self::Klauspost2(Scan::expert(rule, start)),
                3 => Self::Klauspost3(Scan::expert(rule, start)),
                4 => Self::Klauspost4(Scan::expert(rule, start)),
                5 => Self::Klauspost5(Scan::expert(rule, start)),
                _ => Self::Klauspost6(Scan::expert(rule, start)),
            },
        }
    }
}

impl Expert for AnyExpert {
    fn block(&mut self, data: &[u8], pos: usize, end: usize, sync: bool) {
        each!(self, expert, expert.block(data, pos, end, sync));
    }

    #[inline]
    fn predict(&mut self, data: &[u8], pos: usize) -> Token {
        each!(self, expert, expert.predict(data, pos))
    }

    #[inline]
    fn doubt(&self, pos: usize) -> Option<usize> {
        match self {
            Self::Chain(chain) => chain.doubt(pos),
            _ => None,
        }
    }

    fn follow(&mut self, data: &[u8], pos: usize, tokens: &[Token]) -> Followed {
        each!(self, expert, expert.follow(data, pos, tokens))
    }

    fn lead(&mut self, data: &[u8], pos: usize, until: (usize, usize), tokens: &mut Vec<Token>) -> Followed {
        each!(self, expert, expert.lead(data, pos, until, tokens))
    }

    fn spent(&self) -> usize {
        match self {
            Self::Chain(expert) => expert.spent(),
            Self::Libdeflate(expert) => expert.spent(),
            Self::Miniz(expert) => expert.spent(),
            _ => 0,
        }
    }

    fn again(&mut self, data: &[u8], pos: usize) -> Option<Token> {
        each!(self, expert, expert.again(data, pos))
    }

    #[inline]
    fn accept(&mut self, data: &[u8], pos: usize, token: Token) {
        each!(self, expert, expert.accept(data, pos, token));
    }

    fn stored(&mut self, data: &[u8], pos: usize, end: usize) {
        each!(self, expert, expert.stored(data, pos, end));
    }
}

impl std::fmt::Debug for AnyExpert {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("AnyExpert")
    }
}
