//! Levels 2 to 6 of zlib-ng, which zlib-rs has too: hash chains of four bytes, no lazy choice.
//!
//! Level 2 is greedy. From level 3 on (its "medium" way) each match is followed by a look at what begins where
//! it ends; from level 5 on, if that match reaches so far to the left that it can take over all but the first
//! byte of the one before, that one is given up.
//!
//! Method: that of the deflate strategies by Intel and the zlib-ng authors (zlib licence); written anew.

use super::links::{Found, Hash, Links, Want};
use super::plan::{Plan, Planned, Scanner};
use crate::deflate::{Token, WINDOW};

/// The numbers by which levels differ.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rule {
    pub depth: usize,
    pub nice: usize,
    /// The inside of a match is put into the chains up to this length; of a longer one, its last byte.
    pub insert: usize,
    /// A search ends at the first candidate that looks good and is no better (levels below 5).
    pub hasty: bool,
    /// The match that follows may take over the one before (levels from 5 on).
    pub fizzle: bool,
    /// When a block is written the encoder starts again with what begins after it. It finds that in its own
    /// chains, and so a literal there (zlib-ng when there is no room for the block; zlib-rs does not).
    pub restart: bool,
}

/// Shortest match.
const MIN: usize = 4;
/// Furthest distance.
const REACH: usize = WINDOW - 262;
/// A match is moved to the left only while it is shorter.
const MOVABLE: usize = 256;
/// Tokens in one find.
const STEPS: usize = 256;

pub struct ZlibNg {
    rule: Rule,
    links: Links,
    at: usize,
    end: usize,
    /// What begins at `at`, when it was looked at already: its start is to the left of where it was found.
    next: Option<Plan>,
}

impl ZlibNg {
    /// The expert at `start`, having parsed the history.
    pub fn expert(rule: &Rule, data: &[u8], start: usize) -> Planned<Self> {
        let links = Links::new(Hash::Knuth, 16, 0);
        let mut this = Self {
            rule: *rule,
            links,
            at: 0,
            end: start,
            next: None,
        };
        while this.at < start {
            let plan = this.find(data, usize::MAX);
            this.at = this.at.max(plan.at + plan.len);
        }
        Planned::new(this, start)
    }

    /// What begins at `at`: a match, or one byte.
    #[inline]
    fn look(&mut self, data: &[u8], at: usize) -> Plan {
        self.links.insert_to(data, at);
        let want = Want {
            over: 2,
            depth: self.rule.depth,
            nice: self.rule.nice,
            max: Token::MAX_LEN.min(data.len() - at),
            min: 0,
            near: 0,
            reach: REACH,
            hasty: self.rule.hasty,
        };
        let Found { len, dist } = self.links.longest(data, at, &want);
        if len < MIN {
            Plan { at, len: 1, dist: 0 }
        } else {
            Plan { at, len, dist }
        }
    }

    #[inline]
    fn insert(&mut self, data: &[u8], token: Plan) {
        let end = token.at + token.len;
        self.links.insert_to(data, token.at + 1);
        if token.len > self.rule.insert {
            self.links.skip_to(end - 1);
        }
        self.links.insert_to(data, end);
    }

    /// The token that begins where the scan stands; the scan goes on behind it.
    #[inline]
    fn token(&mut self, data: &[u8]) -> Plan {
        let mut token = match self.next.take() {
            Some(token) => token,
            None => self.look(data, self.at),
        };
        self.insert(data, token);
        let tail = token.at + token.len;
        if self.rule.fizzle && tail < data.len() {
            let mut next = self.look(data, tail);
            if next.len >= MIN {
                move_left(data, &mut token, &mut next);
            }
            self.next = Some(next);
        }
        self.at = token.at + token.len;
        token
    }
}

/// Moves `next` to the left if that leaves at most a byte of `token`.
fn move_left(data: &[u8], token: &mut Plan, next: &mut Plan) {
    let source = next.at - next.dist;
    if token.len <= 1 || token.len > 1 + source {
        return;
    }
    let moved = token.len - 1;
    if data[source - moved] != data[next.at - moved] {
        return;
    }
    let limit = next.at.saturating_sub(REACH);
    let mut by = 0;
    while by < token.len && next.at - by > limit && next.len + by < MOVABLE && source - by > 1 {
        if data[source - by - 1] != data[next.at - by - 1] {
            break;
        }
        by += 1;
    }
    if by > 0 && token.len - by <= 1 {
        token.len -= by;
        next.at -= by;
        next.len += by;
    }
}

impl Scanner for ZlibNg {
    fn begin(&mut self, _data: &[u8], pos: usize, end: usize, _sync: bool) {
        self.end = end;
        if self.at != pos {
            (self.at, self.next) = (pos, None);
        } else if self.rule.restart && self.next.is_some_and(|next| next.at == pos) {
            self.next = Some(Plan {
                at: pos,
                len: 1,
                dist: 0,
            });
        }
    }

    fn find(&mut self, data: &[u8], _longest: usize) -> Plan {
        for _ in 0..STEPS {
            if self.at >= self.end {
                break;
            }
            let token = self.token(data);
            if token.len >= MIN {
                return token;
            }
        }
        Plan {
            at: self.at.max(1),
            len: 0,
            dist: 0,
        }
    }

    fn matched(&mut self, data: &[u8], at: usize, end: usize, planned: bool) {
        if !planned {
            (self.at, self.next) = (end, None);
            self.insert(
                data,
                Plan {
                    at,
                    len: end - at,
                    dist: 0,
                },
            );
        }
    }

    fn chunk_end(&self) -> usize {
        self.end
    }
}
