//! Encoders that look for matches in hash chains: zlib, GNU gzip, pigz, Chromium's zlib, Go.
//!
//! They take the longest match at each position, the nearest of those as long. A *greedy* one writes it. A
//! *lazy* one first looks one byte further on, unless the match is already `lazy` bytes long, and writes a
//! literal instead if there is a longer match there.

use super::Expert;
use super::links::{Found, Hash, Links, Want};
use super::unsure::Unsure;
use crate::deflate::{Token, WINDOW};

/// The numbers by which such encoders differ.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rule {
    pub hash: Hash,
    pub hash_bits: u32,
    /// Candidates looked at.
    pub depth: usize,
    /// With a match of so many bytes in hand, the next position gets a quarter of the depth. 0: never.
    pub good: usize,
    /// A match of so many bytes ends the search.
    pub nice: usize,
    /// A match of so many bytes is taken without a look further on. 0: every match is (greedy).
    pub lazy: usize,
    /// A greedy encoder puts the inside of a match into its chains only up to this length.
    pub insert: usize,
    /// Shortest match that the search gives.
    pub min: usize,
    /// How far back a match of `min` bytes may be.
    pub near: usize,
    /// How far back any match may be.
    pub reach: usize,
    /// Shorter matches are found but not taken (zlib's strategy for filtered data).
    pub shortest: usize,
    /// What an empty stored block does.
    pub sync: Sync,
}

/// What an encoder knows of the bytes before an empty stored block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sync {
    /// What it knew: the block is a flush.
    Keep,
    /// Nothing: a full flush, or the start of an independent piece (pigz -i).
    Forget,
    /// Every position of the window: a piece given it as a dictionary (pigz).
    Prime,
}

/// A piece shorter than this does not get a dictionary: nobody cuts so finely, and it bounds the work.
const SHORTEST_PIECE: usize = 4096;

/// Tokens in a block of zlib's that ends because it is full. pigz ends a piece with any other, then with empty
/// blocks of either kind as far as they are needed to get to a byte.
const FULL_BLOCK: usize = 16383;

pub struct Chain {
    rule: Rule,
    links: Links,
    end: usize,
    /// Where a dictionary was put in last, if any was.
    primed: Option<usize>,
    /// What of the history is in the chains, of an encoder that does not put in all.
    unsure: Option<Unsure>,
    /// Tokens in the block so far.
    tokens: usize,
    /// The best match at a position, known because the one before was asked for.
    known: (usize, Found),
}

const NOWHERE: usize = usize::MAX;

impl Chain {
    /// At `start` of `data`, having seen everything before.
    pub fn new(rule: &Rule, data: &[u8], start: usize) -> Self {
        let first = usize::from(rule.hash == Hash::Go);
        let links = Links::new(rule.hash, rule.hash_bits, first);
        let mut chain = Self {
            rule: *rule,
            links,
            end: start,
            primed: None,
            unsure: None,
            tokens: 0,
            known: (NOWHERE, Found::default()),
        };
        if rule.lazy == 0 && rule.insert < Token::MAX_LEN && rule.sync != Sync::Prime {
            chain.learn_history(data, start);
        }
        chain
    }

    /// Parses what is before `start`; then all of it goes in, and what should not have is known.
    fn learn_history(&mut self, data: &[u8], start: usize) {
        self.block(data, 0, start, false);
        let mut unsure = Unsure::new(start);
        let mut pos = 0;
        while pos < start {
            let token = self.predict(data, pos);
            self.accept(data, pos, token);
            if token.len() > self.rule.insert {
                unsure.leave_out(pos + 1, pos + token.len());
            }
            pos += token.len();
        }
        self.links.refill(data, 0, start);
        self.unsure = Some(unsure);
    }

    fn prime(&mut self, data: &[u8], pos: usize) {
        if self.primed.is_none_or(|at| pos >= at + SHORTEST_PIECE) {
            self.primed = Some(pos);
            self.links.refill(data, pos.saturating_sub(WINDOW), pos);
        }
    }

    #[inline]
    fn search(&mut self, data: &[u8], at: usize, limit: usize, held: usize) -> Found {
        self.links.insert_to(data, at);
        let rule = &self.rule;
        let quarter = rule.good != 0 && held >= rule.good;
        let want = Want {
            over: held.max(rule.min - 1),
            depth: if quarter { rule.depth / 4 } else { rule.depth },
            nice: rule.nice,
            max: Token::MAX_LEN.min(limit.saturating_sub(at)),
            min: rule.min,
            near: rule.near,
            reach: rule.reach,
            hasty: false,
        };
        let found = match &self.unsure {
            None => self.links.longest(data, at, &want),
            Some(unsure) => self
                .links
                .longest_but(data, at, &want, |early| unsure.is_out(early)),
        };
        if found.len < rule.shortest {
            Found::default()
        } else {
            found
        }
    }

    /// What it takes at `pos`, when it sees the bytes before `limit`.
    #[inline]
    fn choose(&mut self, data: &[u8], pos: usize, limit: usize) -> Found {
        let here = if self.known.0 == pos {
            self.known.1
        } else {
            self.search(data, pos, limit, 0)
        };
        self.known = (pos, here);
        if here.len == 0 || here.len >= self.rule.lazy {
            return here;
        }
        let next = self.search(data, pos + 1, limit, here.len);
        if next.len == 0 {
            return here;
        }
        self.known = (pos + 1, next);
        Found::default()
    }
}

impl Expert for Chain {
    fn spent(&self) -> usize {
        self.links.budget().spent()
    }

    fn block(&mut self, data: &[u8], pos: usize, end: usize, sync: bool) {
        let piece = self.tokens != FULL_BLOCK;
        (self.end, self.tokens) = (end, 0);
        match self.rule.sync {
            Sync::Forget if sync => self.links.forget(pos),
            Sync::Prime if sync || piece => self.prime(data, pos),
            _ if !sync => return,
            _ => (),
        }
        self.known.0 = NOWHERE;
    }

    #[inline]
    fn predict(&mut self, data: &[u8], pos: usize) -> Token {
        let mut found = self.choose(data, pos, data.len());
        let (ahead, better) = self.known;
        if ahead < self.end && ahead + better.len > self.end {
            // It cannot have seen so far: the block ends here because its input did.
            self.known.0 = NOWHERE;
            found = self.choose(data, pos, self.end);
        }
        if found.len < Token::MIN_LEN {
            Token::LITERAL
        } else {
            Token::matched(found.len, found.dist)
        }
    }

    #[inline]
    fn doubt(&self, pos: usize) -> Option<usize> {
        let unsure = self.unsure.as_ref()?;
        let (at, found) = self.known;
        if at == pos && found.len > 0 {
            unsure.doubt(pos - found.dist, pos)
        } else {
            None
        }
    }

    fn again(&mut self, data: &[u8], pos: usize) -> Option<Token> {
        let (at, found) = self.known;
        let unsure = self.unsure.as_mut()?;
        let maybe_match = (found.len > 0).then(|| (pos - found.dist, found.len));
        if at != pos || !unsure.tried(maybe_match) {
            return None;
        }
        self.known.0 = NOWHERE;
        Some(self.predict(data, pos))
    }

    #[inline]
    fn accept(&mut self, data: &[u8], pos: usize, token: Token) {
        self.tokens += 1;
        if let Some(unsure) = &mut self.unsure {
            unsure.learn(pos, token);
            if !unsure.reaches(pos) {
                self.unsure = None;
            }
        }
        if token.is_literal() {
            return;
        }
        self.known.0 = NOWHERE;
        if self.rule.lazy == 0 && token.len() > self.rule.insert {
            self.links.insert_to(data, pos + 1);
            self.links.skip_to(pos + token.len());
        }
    }
}
