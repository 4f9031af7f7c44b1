//! How well an expert fits what was read.

use super::{AnyExpert, Expert, Params};
use crate::deflate::Token;
use crate::deflate::inflate::{Block, Kind};

/// Tokens foretold rightly, of how many.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Score {
    pub right: usize,
    pub tokens: usize,
}

impl Score {
    /// Wrong foretellings per thousand tokens, rounded up.
    #[must_use]
    pub fn misses_per_1000(&self) -> usize {
        ((self.tokens - self.right) * 1000).div_ceil(self.tokens.max(1))
    }
}

/// Follows the first `limit` tokens of `blocks` with the expert of `params`. `data` and `start` are those of
/// the span, `tokens` and `blocks` what was read of it; `sync` as for the first block.
#[must_use]
pub fn score(
    params: &Params,
    (data, start): (&[u8], usize),
    (tokens, blocks): (&[Token], &[Block]),
    mut sync: bool,
    limit: usize,
) -> Score {
    let mut expert = AnyExpert::new(params, data, start);
    let mut score = Score::default();
    for block in blocks {
        let (mut pos, end) = (block.plain.start, block.plain.end);
        if let Kind::Stored { .. } = block.kind {
            sync = pos == end;
            if !sync {
                expert.stored(data, pos, end);
            }
            continue;
        }
        expert.block(data, pos, end, std::mem::take(&mut sync));
        for &token in &tokens[block.tokens.clone()] {
            if score.tokens == limit {
                return score;
            }
            score.tokens += 1;
            score.right += usize::from(expert.predict(data, pos) == token);
            expert.accept(data, pos, token);
            pos += token.len();
        }
    }
    score
}
