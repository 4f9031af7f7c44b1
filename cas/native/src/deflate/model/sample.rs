//! The beginning of a stream, to try parameters on.

use super::super::coder::Cost;
use super::super::counter::{Tree, code_raw};
use super::super::{Token, WINDOW};
use super::Model;
use super::forecast::{Forecast, Outlook};
use super::params::{ModelParams, TableParams};
use super::table::{Table, WAYS};
use super::trail::Trail;

/// A token, where it is, and where its block ends or the part of it that is there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Placed {
    pub pos: usize,
    pub end: usize,
    pub token: Token,
}

/// Tokens to try parameters on, with their data.
#[derive(Clone, Copy, Debug)]
pub struct Sample<'a> {
    pub data: &'a [u8],
    pub tokens: &'a [Placed],
}

/// Bits that a match costs which no table gives.
const OTHERWISE: u32 = 7;

impl Sample<'_> {
    /// So many tokens from its middle: streams often begin with what is not like the rest.
    #[must_use]
    pub fn middle(&self, count: usize) -> Self {
        let count = count.min(self.tokens.len());
        let from = (self.tokens.len() - count) / 2;
        Self {
            data: self.data,
            tokens: &self.tokens[from..from + count],
        }
    }

    /// What all tokens cost with a model, in 1/256 of a bit. Stops at `most`.
    #[must_use]
    pub fn cost(&self, params: &ModelParams, most: u64) -> u64 {
        let mut coder = Cost::new();
        let mut model = Model::new(params, 0);
        for placed in self.tokens {
            if coder.total() >= most {
                break;
            }
            // An encoder is handed what is there, which is always legal.
            let _ = model.code(&mut coder, self.data, placed.pos, placed.end, placed.token);
        }
        coder.total()
    }

    /// How well tables alone foretell the tokens: what those would cost, in 1/256 of a bit, by which ways have
    /// a match. Stops at `most`.
    #[must_use]
    pub fn table_cost(&self, params: &[TableParams], short: u16, most: u64) -> u64 {
        let mut tables: Vec<_> = params.iter().map(Table::new).collect();
        let mut trail = Trail::new(short);
        let mut outcomes: Vec<_> = (0..SITUATIONS).map(|_| Tree::new(3)).collect();
        let mut coder = Cost::new();
        let mut outlook = Outlook::default();
        let mut known = self
            .tokens
            .first()
            .map_or(0, |first| first.pos.saturating_sub(WINDOW));
        for &Placed { pos, end, token } in self.tokens {
            for table in &mut tables {
                let inserted = table.params().inserted;
                for at in known..pos {
                    if trail.is_in(inserted, at) {
                        table.insert(self.data, at);
                    }
                }
            }
            outlook.update(&tables, self.data, (pos, end), trail.run);
            let (situation, outcome) = outcome(&tables, self.data, pos, token, outlook.forecast());
            if outcomes[situation].code(&mut coder, outcome) == OTHER {
                code_raw(&mut coder, 0, OTHERWISE);
            }
            trail.accept(pos, token, outlook.lateness(pos, token.dist()));
            known = pos;
            if coder.total() >= most {
                break;
            }
        }
        coder.total()
    }
}

/// Not in any table; below are a literal and, from 1, the ways; above it what is planned.
const OTHER: usize = WAYS + 1;
const SITUATIONS: usize = 3 << WAYS;

/// Which ways have a match at `pos` and whether a planned one covers it; and which of them the token is.
fn outcome(
    tables: &[Table],
    data: &[u8],
    pos: usize,
    token: Token,
    forecast: Option<&Forecast>,
) -> (usize, usize) {
    let (mut valid, mut outcome) = (0, if token.is_literal() { 0 } else { OTHER });
    for (way, old) in tables.iter().flat_map(|table| table.find(data, pos)).enumerate() {
        let Some(old) = old else { continue };
        valid |= 1 << way;
        if outcome == OTHER && pos - old == token.dist() {
            outcome = 1 + way;
        }
    }
    let planned = forecast.map_or(0, |f| 1 + usize::from(f.first.start <= pos && f.hit > pos));
    if outcome == OTHER && forecast.is_some_and(|f| f.first.dist == token.dist()) {
        outcome = OTHER + 1;
    } else if outcome == OTHER
        && forecast
            .and_then(|f| f.instead)
            .is_some_and(|i| i.dist == token.dist())
    {
        outcome = OTHER + 2;
    }
    (planned << WAYS | valid, outcome)
}
