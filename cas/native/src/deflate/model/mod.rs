//! The universal model: codes the tokens of an encoder nobody knows.
//!
//! Whatever an encoder does, it found its matches by some search through the window. So all matches there
//! are at a position (along a hash chain) are candidates, and a token is coded as a few decisions: is it a
//! literal; if not, how long among the lengths there are, longest first; which of the candidates of that
//! length; and, where it is none of them, the token itself. Each decision is mixed from counters in several
//! contexts (`mixer`), which look at this position and the next one: an encoder that defers matches shows in
//! what it does when the next match is longer, one that keeps a table in what it had inserted where the
//! match points to (`trail`).
//!
//! A decoder has all plain bytes before it begins, those to come as well, so it sees the same candidates.

// Values are small: lengths, logarithms.
#![allow(clippy::cast_possible_wrap)]

mod chain;
mod discover;
mod escape;
mod forecast;
mod groups;
mod literal;
mod matching;
mod mixer;
pub mod params;
mod sample;
mod scene;
mod skipped;
mod table;
#[cfg(test)]
mod tests;
mod trail;
#[cfg(test)]
mod zoo;

use super::coder::Coder;
use super::counter::Counter;
use super::{Error, Token, WINDOW};
use chain::{Chain, Found, Match, Reach, match_len};
pub use discover::discover;
use escape::Escape;
use forecast::Outlook;
use groups::Groups;
use literal::LiteralModel;
use matching::MatchModel;
pub use params::ModelParams;
pub use sample::Placed;
use scene::Scene;
use skipped::Skipped;
use table::{Looked, Table};
use trail::Trail;

/// Codes tokens. Positions are indices into `data`: at most 32 KiB of history, then all plain bytes of a span.
#[derive(Debug)]
pub struct Model {
    params: ModelParams,
    chain: Chain,
    tables: Vec<Table>,
    trail: Trail,
    skipped: Skipped,
    /// Where the tokens known end.
    known: usize,
    /// Up to where positions were offered to the chain, and to tables.
    inserted: usize,
    tabled: usize,
    here: Found,
    ahead: Found,
    /// For which position and end of block `ahead` is.
    ahead_at: (usize, usize),
    outlook: Outlook,
    groups: Groups,
    decisions: Decisions,
}

/// All that is learnt.
#[derive(Debug)]
struct Decisions {
    literal: LiteralModel,
    matching: MatchModel,
    escape: Escape,
    /// Literal where nothing matches, by whether the last token was one.
    alone: [Counter; 2],
    odd: Counter,
}

const LONGEST: usize = Token::MAX_LEN;

impl Model {
    /// For data of which the bytes from `start` on are coded.
    #[must_use]
    pub fn new(params: &ModelParams, start: usize) -> Self {
        Self {
            params: params.clone(),
            chain: Chain::new(&params.chain),
            tables: params.tables.iter().map(Table::new).collect(),
            trail: Trail::new(params.short),
            skipped: Skipped::new(),
            known: start,
            tabled: 0,
            inserted: 0,
            here: Found::new(),
            ahead: Found::new(),
            ahead_at: (usize::MAX, 0),
            outlook: Outlook::default(),
            groups: Groups::new(),
            decisions: Decisions {
                literal: LiteralModel::new(),
                matching: MatchModel::new(),
                escape: Escape::new(),
                alone: [Counter::new(); 2],
                odd: Counter::new(),
            },
        }
    }

    /// Codes the token at `pos`, of a block or part of one that ends at `end`; a decoder ignores `token`.
    ///
    /// # Errors
    ///
    /// `Error::Side` in a decoder that reads a match which cannot be there.
    pub fn code<C: Coder>(
        &mut self,
        coder: &mut C,
        data: &[u8],
        pos: usize,
        end: usize,
        token: Token,
    ) -> Result<Token, Error> {
        if pos < self.known || pos >= end || end > data.len() {
            return Err(Error::Side("a token outside its block"));
        }
        self.catch_up(data, pos);
        self.look(data, pos, end);
        let token = self.decide(coder, data, pos, end, token)?;
        let late = self.outlook.lateness(pos, token.dist());
        self.accept(data, pos, token, late);
        Ok(token)
    }

    /// Notes a token that was not coded here.
    #[inline]
    pub fn skip(&mut self, pos: usize, token: Token) {
        self.skipped.push(pos, token);
    }

    /// Notes several, the first of them at `pos`.
    pub fn skip_all(&mut self, mut pos: usize, tokens: &[Token]) {
        for &token in tokens {
            self.skipped.push(pos, token);
            pos += token.len();
        }
    }

    /// Brings chain and trail up to `pos`: what was skipped, and before that what nobody told.
    fn catch_up(&mut self, data: &[u8], pos: usize) {
        if !self.skipped.is_empty() {
            let tokens = self.skipped.take();
            self.fill_gap(data, tokens[0].0);
            for (at, token) in tokens {
                self.accept(data, at, token, 0);
            }
        }
        self.fill_gap(data, pos);
    }

    fn fill_gap(&mut self, data: &[u8], to: usize) {
        if self.known < to {
            self.trail.forget(self.known, to);
        }
        self.insert(data, to);
    }

    /// Inserts the positions up to `to` that were not yet, of those in the window.
    fn insert(&mut self, data: &[u8], to: usize) {
        let classes = self.params.chain.inserted;
        for at in self.inserted.max(to.saturating_sub(WINDOW))..to {
            if self.trail.is_in(classes, at) {
                self.chain.insert(data, at);
            }
        }
        self.inserted = self.inserted.max(to);
        for table in &mut self.tables {
            let classes = table.params().inserted;
            for at in self.tabled.max(to.saturating_sub(WINDOW))..to {
                if self.trail.is_in(classes, at) {
                    table.insert(data, at);
                }
            }
        }
        self.tabled = self.tabled.max(to);
        self.known = to;
    }

    fn accept(&mut self, data: &[u8], pos: usize, token: Token, late: usize) {
        self.trail.accept(pos, token, late);
        self.insert(data, pos + token.len());
    }

    /// Finds what matches at `pos` and at the next position.
    fn look(&mut self, data: &[u8], pos: usize, end: usize) {
        let reach = |at: usize, depth: u16| Reach {
            max: (end - at).min(LONGEST),
            depth: u32::from(depth),
            base: 0,
        };
        let chain = &self.params.chain;
        if self.ahead_at == (pos, end) {
            std::mem::swap(&mut self.here, &mut self.ahead);
        } else {
            self.chain
                .search(data, pos, reach(pos, chain.depth), &mut self.here);
        }
        if self.inserted == pos {
            self.chain.insert(data, pos);
            self.inserted = pos + 1;
        }
        let quarters = if self.here.best.len >= chain.good { 1 } else { 4 };
        let depth = (chain.depth * quarters / 4).max(1);
        self.chain
            .search(data, pos + 1, reach(pos + 1, depth), &mut self.ahead);
        self.ahead_at = (pos + 1, end);
    }

    fn decide<C: Coder>(
        &mut self,
        coder: &mut C,
        data: &[u8],
        pos: usize,
        end: usize,
        token: Token,
    ) -> Result<Token, Error> {
        let max = (end - pos).min(LONGEST);
        let looked = [(pos, max), (pos + 1, max.min(end - pos - 1))]
            .map(|(at, max)| Looked::new(&self.tables, data, at, max));
        self.outlook
            .update(&self.tables, data, (pos, end), self.trail.run);
        let repeat = self.repeat(data, pos, max);
        let found = [&self.here, &self.ahead];
        let scene = Scene::new(pos, found, looked, self.outlook.forecast(), repeat, &self.trail);
        let decisions = &mut self.decisions;
        let actual = Match::new(token.len(), token.dist());
        if end - pos < Token::MIN_LEN {
            return Ok(Token::LITERAL);
        }
        self.groups.fill(&[], &[]);
        let found = if scene.best.len == 0 {
            let alone = &mut decisions.alone[scene.after_literal() as usize];
            if alone.code(coder, token.is_literal()) {
                return Ok(Token::LITERAL);
            }
            None
        } else {
            if decisions.literal.code(coder, &scene, token.is_literal()) {
                return Ok(Token::LITERAL);
            }
            self.groups.fill(&scene.looked(), self.here.list());
            decisions
                .matching
                .code(coder, (&scene, &self.trail, pos), &self.groups, actual)
        };
        if let Some(longest) = self.groups.order().first() {
            let is_longest = found.is_some_and(|found| found.len == longest.len);
            self.trail.longest = self.trail.longest << 1 | u32::from(is_longest);
        }
        let found = match found {
            Some(found) => found,
            None => self.spell(coder, data, (pos, end), actual)?,
        };
        Ok(self.decisions.token(coder, found, token.is_odd()))
    }

    /// The last match going on directly after its end.
    fn repeat(&self, data: &[u8], pos: usize, max: usize) -> Match {
        let dist = self.trail.dist;
        if self.trail.run > 0 || dist == 0 || dist > pos {
            return Match::default();
        }
        let len = match_len(data, pos - dist, pos, max);
        if len < Token::MIN_LEN {
            Match::default()
        } else {
            Match::new(len, dist)
        }
    }

    /// A match that is no candidate; in a decoder it may be anything.
    fn spell<C: Coder>(
        &mut self,
        coder: &mut C,
        data: &[u8],
        (pos, end): (usize, usize),
        actual: Match,
    ) -> Result<Match, Error> {
        let found = self.decisions.escape.code(coder, self.groups.all(), actual);
        let (len, dist) = (usize::from(found.len), usize::from(found.dist));
        let is_inside = len <= end - pos && len <= LONGEST && (1..=pos.min(WINDOW)).contains(&dist);
        if is_inside && match_len(data, pos - dist, pos, len) == len {
            return Ok(found);
        }
        Err(Error::Side("a match that does not match"))
    }
}

impl Decisions {
    fn token<C: Coder>(&mut self, coder: &mut C, found: Match, is_odd: bool) -> Token {
        let (len, dist) = (usize::from(found.len), usize::from(found.dist));
        if len == LONGEST && self.odd.code(coder, is_odd) {
            return Token::odd_258(dist);
        }
        Token::matched(len, dist)
    }
}
