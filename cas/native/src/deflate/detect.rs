//! Choosing how to foretell the tokens of a stream, from the first of them.
//!
//! Experts are tried first, on few tokens each and then the best of them on more; whichever is nearest may
//! have its numbers changed a little. An expert that is right nearly always is all that is needed. One that
//! often is wrong has a model beside it. Where that is not good either, what the encoder does is found out from
//! its tokens, which takes longer. What is taken in the end is what costs least for the first 256 KiB.

use super::Token;
use super::coder::Cost;
use super::config::Config;
use super::expert::{Params, Score, menu, narrow, score, variants};
use super::inflate::Block;
use super::model::{ModelParams, Placed, discover};
use super::span::Span;
use super::walk::{Given, Walk};

/// Tokens that experts are tried on, round by round, and how many of them go on to the next.
const ROUNDS: [(usize, usize); 3] = [(2000, 8), (16_000, 3), (64_000, 1)];
/// An expert that is wrong more often, of a thousand tokens, is not worth a try.
const USELESS: usize = 300;
/// One that is not wrong as often needs nothing to be found out.
const GOOD: usize = 5;
/// From fewer tokens nothing can be found out, nor is it worth the time to try all experts again.
const FEW: usize = 2000;
/// When trying experts has taken so many steps of searching, no more are tried, nor is anything found out.
const PATIENCE: usize = 100_000_000;
/// Plain bytes that configurations are compared on.
const SAMPLE: usize = 256 * 1024;

/// How to foretell the tokens of a stream that begins with these spans, or goes on with them.
#[must_use]
pub fn choose(spans: &[&Span]) -> Config {
    // Of those with enough tokens the first: at the start of a stream nothing is missing of the history.
    let enough = |span: &&&Span| span.tokens.len().min(ROUNDS[2].0);
    let Some(span) = spans.iter().rev().max_by_key(enough) else {
        return Config::default();
    };
    if span.tokens.is_empty() {
        return Config::universal();
    }
    let mut steps = 0;
    let maybe_expert = best_expert(span, &mut steps);
    let expert = maybe_expert.map(|(expert, _)| expert);
    let mut field = Vec::new();
    match maybe_expert {
        Some((expert, 0)) => return Config::of_expert(expert),
        Some((expert, _)) => field.push(Config::of_expert(expert)),
        None => {}
    }
    let is_good = maybe_expert.is_some_and(|(_, wrong)| wrong < GOOD);
    let model = Some(if is_good || span.tokens.len() < FEW || steps > PATIENCE {
        ModelParams::default()
    } else {
        found_out(span)
    });
    if expert.is_some() {
        field.push(Config {
            expert,
            model: model.clone(),
        });
    }
    if !is_good {
        field.push(Config { expert: None, model });
    }
    cheapest(span, field)
}

/// Another configuration to try for a span that `config` does badly on: of an encoder that is known, or of none.
#[must_use]
pub fn another(span: &Span, config: &Config) -> Option<Config> {
    if span.tokens.len() < FEW {
        return None;
    }
    let found = match best_expert(span, &mut 0) {
        Some((expert, wrong)) if wrong < GOOD => Config::of_expert(expert),
        _ => Config::universal(),
    };
    let is_better = found.expert.is_some() || config.expert.is_some();
    Some(found).filter(|found| is_better && found.expert != config.expert)
}

fn found_out(span: &Span) -> ModelParams {
    let (_, blocks) = sample(span);
    let mut placed = Vec::new();
    for block in &blocks {
        let (mut pos, end) = (block.plain.start, block.plain.end);
        for &token in &span.tokens[block.tokens.clone()] {
            placed.push(Placed { pos, end, token });
            pos += token.len();
        }
    }
    discover(&placed, &span.data)
}

/// The expert that is right most often, and how often of a thousand times it is wrong.
///
/// Adds what it took to `steps`.
fn best_expert(span: &Span, steps: &mut usize) -> Option<(Params, usize)> {
    let furthest = span.tokens.iter().map(|token| token.dist()).max().unwrap_or(0);
    let mut field = menu();
    field.extend(narrow(furthest));
    for (limit, survivors) in ROUNDS {
        field = best_of(span, &field, (limit, survivors), steps);
    }
    let nearest = *field.first()?;
    let near: Vec<Params> = [nearest]
        .into_iter()
        .chain(variants(&nearest, furthest))
        .collect();
    let best = *best_of(span, &near, (ROUNDS[1].0, 1), steps).first()?;
    let (last, _) = ROUNDS[if *steps > PATIENCE { 1 } else { 2 }];
    let tokens = span.tokens.len().min(last);
    let wrong = follow(span, &best, (tokens, usize::MAX)).wrong;
    Some((best, (1000 * wrong).div_ceil(tokens.max(1))))
}

/// Those of `field` that are right most often, the best first; of those equal, whichever comes first. Nobody is
/// followed on who is behind as many as are wanted already.
fn best_of(
    span: &Span,
    field: &[Params],
    (limit, survivors): (usize, usize),
    steps: &mut usize,
) -> Vec<Params> {
    let useless = limit.min(span.tokens.len()) * USELESS / 1000 + 1;
    let mut best: Vec<(usize, Params)> = Vec::new();
    for params in field {
        let most = best.get(survivors - 1).map_or(useless, |(wrong, _)| *wrong);
        let score = follow(span, params, (limit, most));
        if score.wrong < most {
            let place = best.partition_point(|(other, _)| *other <= score.wrong);
            best.insert(place, (score.wrong, *params));
            best.truncate(survivors);
        }
        *steps += score.steps;
        if *steps > PATIENCE && !best.is_empty() {
            break;
        }
    }
    best.into_iter().map(|(_, params)| params).collect()
}

/// Follows an expert through the first `limit` tokens, or until it was wrong `most` times.
fn follow(span: &Span, params: &Params, (limit, most): (usize, usize)) -> Score {
    let data = (&span.data[..], span.start);
    score(params, data, (&span.tokens, &span.blocks), (limit, most))
}

/// The configuration that costs least for the beginning of the span.
fn cheapest(span: &Span, field: Vec<Config>) -> Config {
    let (data, blocks) = sample(span);
    let given = Given {
        tokens: &span.tokens,
        blocks: &blocks,
        end: None,
    };
    let cost = |config: &Config| {
        let mut cost = Cost::new();
        let mut walk = Walk::new(config, (data, span.start), config.by_plain(), None);
        walk.encode(&mut cost, &given).map_or(u64::MAX, |()| cost.total())
    };
    field.into_iter().min_by_key(cost).unwrap_or_default()
}

/// The beginning of a span, up to the first token past the sample's size.
fn sample(span: &Span) -> (&[u8], Vec<Block>) {
    let stop = span.start + SAMPLE;
    let mut blocks: Vec<Block> = span
        .blocks
        .iter()
        .take_while(|block| block.plain.start < stop)
        .cloned()
        .collect();
    let mut end = span.start;
    if let Some(last) = blocks.last_mut() {
        end = last.plain.end;
        if end > stop && !last.tokens.is_empty() {
            end = shorten(last, &span.tokens, stop);
        }
    }
    (&span.data[..end], blocks)
}

/// Leaves of a block what begins before `stop`. Gives where it ends then.
fn shorten(block: &mut Block, tokens: &[Token], stop: usize) -> usize {
    let (mut at, mut count) = (block.plain.start, 0);
    for token in &tokens[block.tokens.clone()] {
        if at >= stop {
            break;
        }
        at += token.len();
        count += 1;
    }
    block.tokens.end = block.tokens.start + count;
    block.plain.end = at;
    at
}
