//! Streams of real encoders, which the model is told nothing of: the small zoo of the tests.

use std::path::Path;

use super::params::{Classes, TableParams};
use super::{Model, ModelParams, Placed};
use crate::deflate::coder::{Decoder, Encoder};
use crate::deflate::inflate::{Whole, tokens};
use crate::deflate::{Error, Token};

/// The stream in a gzip file whose header has no more than a name.
fn stream(name: &str) -> Whole {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/zoo/streams");
    let file = std::fs::read(folder.join(format!("{name}.gz"))).expect("a stream of the zoo");
    let named = if file[3] == 0 {
        0
    } else {
        1 + file[10..].iter().position(|&byte| byte == 0).expect("an end")
    };
    tokens(&file[10 + named..]).expect("a stream")
}

fn placed(whole: &Whole) -> Vec<Placed> {
    let mut placed = Vec::new();
    for block in &whole.blocks {
        let mut pos = block.plain.start;
        for &token in &whole.tokens[block.tokens.clone()] {
            placed.push(Placed {
                pos,
                end: block.plain.end,
                token,
            });
            pos += token.len();
        }
    }
    placed
}

fn decode(params: &ModelParams, data: &[u8], placed: &[Placed], side: &[u8]) -> Result<(), Error> {
    let mut decoder = Decoder::new(side);
    let mut model = Model::new(params, 0);
    for &Placed { pos, end, token } in placed {
        assert_eq!(token, model.code(&mut decoder, data, pos, end, Token::LITERAL)?);
    }
    decoder.finish()
}

/// That the tokens come back, from side information of at most so many thousandths of the stream.
fn check(name: &str, params: &ModelParams, most: usize) {
    let whole = stream(name);
    let placed = placed(&whole);
    let mut encoder = Encoder::new();
    let mut model = Model::new(params, 0);
    for &Placed { pos, end, token } in &placed {
        assert_eq!(Ok(token), model.code(&mut encoder, &whole.plain, pos, end, token));
    }
    let side = encoder.finish();
    assert!(
        side.len() * 1000 <= most * whole.size,
        "{name}: {} of {}",
        side.len(),
        whole.size
    );
    assert_eq!(Ok(()), decode(params, &whole.plain, &placed, &side), "{name}");
}

fn with_table(hash: u8, bits: u8, ways: u8, inserted: u32) -> ModelParams {
    let inserted = Classes::from(inserted) << 32 | Classes::from(inserted);
    let tables = vec![TableParams {
        hash,
        bits,
        ways,
        inserted,
    }];
    ModelParams {
        tables,
        ..ModelParams::default()
    }
}

#[test]
fn encoders_with_chains() {
    let mut params = ModelParams::default();
    check("go-6", &params, 8);
    (params.short, params.chain.inserted) = (4, 0xFFFF_FFFF_E0F0_03FF);
    check("zlibng-2", &params, 12);
}

#[test]
fn encoders_with_tables() {
    check("igzip-1", &with_table(2, 13, 1, 0xF871_FFFF), 12);
    check("libdeflate-1", &with_table(1, 15, 2, u32::MAX), 5);
}

#[test]
fn encoders_that_look_far_ahead() {
    check("7z-5", &ModelParams::default(), 200);
}
