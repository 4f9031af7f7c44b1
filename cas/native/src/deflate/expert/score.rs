//! How well an expert fits what was read.

use super::{AnyExpert, Expert, Params};
use crate::deflate::Token;
use crate::deflate::inflate::{Block, Kind};

/// Tokens foretold wrongly, of how many.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Score {
    pub wrong: usize,
    pub tokens: usize,
    /// Steps that searches took.
    pub steps: usize,
}

/// Follows the first `limit` tokens of `blocks` with the expert of `params`, until it was wrong `most` times. `data`
/// and `start` are those of the span, `tokens` and `blocks` what was read of it.
#[must_use]
pub fn score(
    params: &Params,
    (data, start): (&[u8], usize),
    (tokens, blocks): (&[Token], &[Block]),
    (limit, most): (usize, usize),
) -> Score {
    let mut sync = false;
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
            if score.tokens == limit || score.wrong >= most {
                score.steps = expert.spent();
                return score;
            }
            score.tokens += 1;
            score.wrong += usize::from(expert.predict(data, pos) != token);
            expert.accept(data, pos, token);
            pos += token.len();
        }
    }
    score.steps = expert.spent();
    score
}
