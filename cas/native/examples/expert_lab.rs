//! What the experts make of a gzip file: `expert_lab FILE.gz [MIB [WORD...]]` tries each of the menu whose
//! description contains one of the words, in spans of a MiB that know 32 KiB of history, and prints misses
//! and speed. With SHOW in the environment it prints the first so many misses as well.

#![allow(clippy::cast_precision_loss)] // of figures that are printed

use std::ops::Range;

use _native::deflate::Token;
use _native::deflate::expert::{AnyExpert, Expert, Params, menu};
use _native::deflate::inflate::{self, Block, Kind};

const SPAN: usize = 1 << 20;
const HISTORY: usize = 32768;

/// CPU seconds of this process.
fn cpu() -> f64 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    stat.split(' ').next().unwrap().parse::<f64>().unwrap() / 1e9
}

fn body(file: &[u8]) -> &[u8] {
    let mut at = 10;
    if file[3] & 4 != 0 {
        at += 2 + usize::from(file[10]) + 256 * usize::from(file[11]);
    }
    for flag in [8, 16] {
        if file[3] & flag != 0 {
            at += file[at..].iter().position(|&byte| byte == 0).unwrap() + 1;
        }
    }
    &file[at..]
}

fn spans(blocks: &[Block]) -> Vec<Range<usize>> {
    let mut spans = Vec::new();
    let mut first = 0;
    for (number, block) in blocks.iter().enumerate() {
        if block.plain.end - blocks[first].plain.start >= SPAN || number + 1 == blocks.len() {
            spans.push(first..number + 1);
            first = number + 1;
        }
    }
    spans
}

#[derive(Default)]
struct Tally {
    misses: usize,
    tokens: usize,
    show: usize,
    blocks: bool,
}

fn is_sync(block: &Block) -> bool {
    matches!(block.kind, Kind::Stored { .. }) && block.plain.is_empty()
}

fn span(
    params: &Params,
    (data, tokens): (&[u8], &[Token]),
    blocks: &[Block],
    mut sync: bool,
    tally: &mut Tally,
) {
    let begin = blocks[0].plain.start;
    let from = begin.saturating_sub(HISTORY);
    let data = &data[from..blocks[blocks.len() - 1].plain.end];
    let mut expert = AnyExpert::new(params, data, begin - from);
    for block in blocks {
        let (mut pos, end) = (block.plain.start - from, block.plain.end - from);
        if let Kind::Stored { .. } = block.kind {
            sync = pos == end;
            if !sync {
                expert.stored(data, pos, end);
            }
            continue;
        }
        let before = tally.misses;
        expert.block(data, pos, end, std::mem::take(&mut sync));
        for &token in &tokens[block.tokens.clone()] {
            let guess = expert.predict(data, pos);
            if guess != token {
                tally.misses += 1;
                if tally.show > 0 {
                    tally.show -= 1;
                    println!(
                        "  {} block +{} of {}: {token:?} not {guess:?}",
                        pos + from,
                        pos + from - block.plain.start,
                        block.plain.len()
                    );
                }
            }
            expert.accept(data, pos, token);
            pos += token.len();
        }
        tally.tokens += block.tokens.len();
        if tally.blocks {
            println!(
                "  block at {} bytes {} tokens {} misses {}",
                block.plain.start,
                block.plain.len(),
                block.tokens.len(),
                tally.misses - before
            );
        }
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let limit = arguments
        .get(1)
        .map_or(usize::MAX, |mib| mib.parse::<usize>().unwrap() << 20);
    let words = &arguments[2.min(arguments.len())..];
    let file = std::fs::read(&arguments[0]).unwrap();
    let whole = inflate::tokens(body(&file)).unwrap();
    let (data, tokens) = (&whole.plain[..], &whole.tokens[..]);
    let blocks: Vec<Block> = whole
        .blocks
        .iter()
        .filter(|b| b.plain.start < limit)
        .cloned()
        .collect();
    println!(
        "{} {} bytes, {} tokens, {} blocks",
        arguments[0],
        data.len(),
        tokens.len(),
        blocks.len()
    );
    let size = blocks[blocks.len() - 1].plain.end as f64 / 1e6;
    for params in menu() {
        let text = format!("{params:?}").replace(' ', "");
        if !words.is_empty() && !words.iter().any(|word| text.contains(word.as_str())) {
            continue;
        }
        let show = std::env::var("SHOW").map_or(0, |n| n.parse().unwrap());
        let mut tally = Tally {
            show,
            blocks: std::env::var("BLOCKS").is_ok(),
            ..Tally::default()
        };
        let before = cpu();
        for range in spans(&blocks) {
            let sync = range.start > 0 && is_sync(&blocks[range.start - 1]);
            span(&params, (data, tokens), &blocks[range], sync, &mut tally);
        }
        let speed = size / (cpu() - before);
        let rate = tally.misses as f64 * 1000.0 / tally.tokens as f64;
        println!(
            "{rate:9.4} misses per 1000 ({} of {}), {speed:.0} MB/s: {text}",
            tally.misses, tally.tokens
        );
    }
}
