//! Tokens made by a small parser with whims, through the model both ways; and anything at all as side
//! information.

use super::params::{ChainParams, Classes, TableParams};
use super::table::Table;
use super::{Match, Model, ModelParams, Placed, discover, match_len};
use crate::deflate::coder::{Decoder, Encoder};
use crate::deflate::{Error, Token};

/// Deterministic numbers.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) as usize % limit
    }
}

/// Words in an order that repeats often, with runs of one byte between them.
fn text(seed: u64, size: usize) -> Vec<u8> {
    let mut dice = Dice(seed | 1);
    let words: Vec<Vec<u8>> = (0..200)
        .map(|_| {
            (0..2 + dice.below(9))
                .map(|_| b'a' + dice.below(20) as u8)
                .collect()
        })
        .collect();
    let mut text = Vec::new();
    while text.len() < size {
        let word = dice.below(14) * dice.below(14);
        text.extend(&words[word]);
        if dice.below(100) == 0 {
            text.resize(text.len() + dice.below(600), b' ');
        }
    }
    text.truncate(size);
    text
}

/// What a parser does that takes the longest of some nearest matches; with a chance of one in `whim` any
/// match at all, cut short.
fn parse(data: &[u8], start: usize, end: usize, whim: usize, dice: &mut Dice) -> Vec<(usize, Token)> {
    let mut tokens = Vec::new();
    let mut pos = start;
    while pos < end {
        let max = (end - pos).min(258);
        let is_whim = dice.below(whim) == 0;
        let reach = if is_whim { 1 + dice.below(32768) } else { 300 };
        let lengths = (1..=reach.min(pos)).map(|dist| (match_len(data, pos - dist, pos, max), dist));
        let best = lengths
            .max_by_key(|&(len, dist)| (len, usize::MAX - dist))
            .unwrap_or_default();
        let token = match best {
            (0..3, _) => Token::LITERAL,
            (258, dist) if is_whim => Token::odd_258(dist),
            (len, dist) if is_whim => Token::matched(3 + dice.below(len - 2), dist),
            (len, dist) => Token::matched(len, dist),
        };
        tokens.push((pos, token));
        pos += token.len();
    }
    tokens
}

fn chain(hash: u8, depth: u16) -> ModelParams {
    ModelParams {
        chain: ChainParams {
            hash,
            depth,
            ..ModelParams::default().chain
        },
        ..ModelParams::default()
    }
}

fn tables() -> ModelParams {
    let narrow = TableParams {
        hash: 2,
        bits: 12,
        ways: 1,
        inserted: 0x1234_5678_9ABC_DEF7,
    };
    let wide = TableParams {
        hash: 5,
        bits: 13,
        ways: 2,
        inserted: Classes::MAX,
    };
    ModelParams {
        short: 20,
        tables: vec![narrow, wide],
        ..chain(1, 20)
    }
}

/// Codes tokens, all but those that `skipped` says.
fn encode(
    params: &ModelParams,
    data: &[u8],
    tokens: &[(usize, Token)],
    skipped: impl Fn(usize) -> bool,
) -> Vec<u8> {
    let mut encoder = Encoder::new();
    let mut model = Model::new(params, tokens[0].0);
    for (index, &(pos, token)) in tokens.iter().enumerate() {
        if skipped(index) {
            model.skip(pos, token);
        } else {
            assert_eq!(Ok(token), model.code(&mut encoder, data, pos, data.len(), token));
        }
    }
    encoder.finish()
}

fn check(
    params: &ModelParams,
    data: &[u8],
    tokens: &[(usize, Token)],
    skipped: impl Fn(usize) -> bool,
) -> usize {
    let side = encode(params, data, tokens, &skipped);
    let mut decoder = Decoder::new(&side);
    let mut model = Model::new(params, tokens[0].0);
    for (index, &(pos, token)) in tokens.iter().enumerate() {
        if skipped(index) {
            model.skip(pos, token);
        } else {
            assert_eq!(
                Ok(token),
                model.code(&mut decoder, data, pos, data.len(), Token::LITERAL)
            );
        }
    }
    decoder.finish().unwrap();
    side.len()
}

#[test]
fn tokens_come_back_and_a_rule_is_learnt() {
    let data = text(1, 60_000);
    for start in [0, 7, 40_000] {
        for params in [chain(0, 300), chain(1, 300), tables()] {
            let regular = parse(&data, start, data.len(), usize::MAX, &mut Dice(5));
            let size = check(&params, &data, &regular, |_| false);
            assert!(
                size * 8 < regular.len(),
                "{size} bytes for {} tokens",
                regular.len()
            );
            let wild = parse(&data, start, data.len(), 9, &mut Dice(5));
            assert!(check(&params, &data, &wild, |_| false) > 2 * size);
        }
    }
}

#[test]
fn tokens_may_be_skipped_and_gaps_be_left() {
    let data = text(2, 150_000);
    let mut tokens = parse(&data, 100, data.len(), 30, &mut Dice(3));
    let params = chain(0, 50);
    check(&params, &data, &tokens, |index| index % 7 < 5);
    check(&params, &data, &tokens, |index| index % 9000 > 2);
    tokens.retain(|&(pos, _)| pos / 50_000 != 1);
    check(&params, &data, &tokens, |index| index % 3 == 0);
    check(&tables(), &data, &tokens, |index| index % 3 == 0);
}

#[test]
fn a_single_byte_and_the_shortest_matches_are_coded() {
    for data in [&b"a"[..], b"aa", b"aaaa", b"abcabc"] {
        for end in 1..=data.len() {
            let data = &data[..end];
            check(&chain(0, 9), data, &parse(data, 0, end, 2, &mut Dice(1)), |_| {
                false
            });
        }
    }
}

/// Reads tokens until there is one that cannot be, or the data ends; all read are legal.
fn read_anything(params: &ModelParams, data: &[u8], start: usize, side: &[u8]) -> Result<(), Error> {
    let mut decoder = Decoder::new(side);
    let mut model = Model::new(params, start);
    let mut pos = start;
    while pos < data.len() {
        let end = (pos + 1000).min(data.len());
        let token = model.code(&mut decoder, data, pos, end, Token::LITERAL)?;
        let Match { len, dist } = Match::new(token.len(), token.dist());
        let (len, dist) = (usize::from(len), usize::from(dist));
        assert!(len <= end - pos && dist <= pos.min(32768));
        assert!(token.is_literal() || match_len(data, pos - dist, pos, len) == len);
        pos += len;
    }
    Ok(())
}

#[test]
fn any_side_information_gives_legal_tokens_or_an_error() {
    let mut dice = Dice(11);
    let mut refused = 0;
    for round in 0..200 {
        let data = text(round, 1 + dice.below(3000));
        let start = dice.below(data.len());
        let side: Vec<u8> = (0..dice.below(400)).map(|_| dice.below(256) as u8).collect();
        for params in [chain(0, 20), chain(1, 4), tables()] {
            refused += usize::from(read_anything(&params, &data, start, &side).is_err());
        }
    }
    assert!(refused > 50, "{refused}");
}

#[test]
fn a_token_outside_its_block_is_refused() {
    let mut model = Model::new(&ModelParams::default(), 0);
    for (pos, end) in [(0, 0), (2, 2), (3, 2), (0, 4)] {
        assert!(
            model
                .code(&mut Encoder::new(), b"abc", pos, end, Token::LITERAL)
                .is_err()
        );
    }
}

/// A parser that takes what its table has, and inserts literals and first bytes of matches.
fn parse_by_table(data: &[u8], params: &TableParams) -> Vec<Placed> {
    let mut table = Table::new(params);
    let mut tokens = Vec::new();
    let (mut pos, end) = (0, data.len());
    while pos < end {
        let token = match table.find(data, pos)[0] {
            Some(old) => Token::matched(match_len(data, old, pos, (end - pos).min(258)), pos - old),
            None => Token::LITERAL,
        };
        table.insert(data, pos);
        tokens.push(Placed { pos, end, token });
        pos += token.len();
    }
    tokens
}

#[test]
fn a_table_is_found_out_from_what_was_taken_from_it() {
    let data: Vec<u8> = (0..20)
        .flat_map(|seed| text(seed % 7, 9_000 + 100 * seed as usize))
        .collect();
    for (hash, bits) in [(1, 13), (2, 12)] {
        let table = TableParams {
            hash,
            bits,
            ways: 1,
            inserted: 0,
        };
        let tokens = parse_by_table(&data, &table);
        let params = discover(&tokens, &data);
        assert_eq!(
            [(hash, bits, 1)],
            params
                .tables
                .iter()
                .map(|t| (t.hash, t.bits, t.ways))
                .collect::<Vec<_>>()[..]
        );
        let placed: Vec<_> = tokens.iter().map(|placed| (placed.pos, placed.token)).collect();
        let size = check(&params, &data, &placed, |_| false);
        assert!(
            size * 8 < tokens.len() / 20,
            "{size} bytes for {} tokens",
            tokens.len()
        );
    }
}

#[test]
fn nothing_is_found_out_from_nothing() {
    assert_eq!(ModelParams::default(), discover(&[], b""));
    let alone = [Placed {
        pos: 0,
        end: 1,
        token: Token::LITERAL,
    }];
    assert_eq!(ModelParams::default(), discover(&alone, b"a"));
}
