//! Measures the universal model: `model_lab [--first MIB] [--decode] FILE.gz...`
//!
//! For each file the side information of the tokens alone, in percent of the compressed bytes, and the speed
//! in MB of plain bytes per second of processor time, with everything learnt anew in each span of 1 MiB,
//! and the parameters that were found out from the first four.

#![allow(clippy::cast_precision_loss)] // figures for people

use _native::deflate::coder::{Decoder, Encoder};
use _native::deflate::inflate::{Whole, tokens};
use _native::deflate::model::{Model, ModelParams, Placed, discover};
use _native::deflate::{Token, WINDOW};

const SPAN: usize = 1 << 20;

/// Tokens of a span with where they are and the ends of their blocks.
struct Span {
    start: usize,
    end: usize,
    tokens: Vec<(usize, Token, usize)>,
}

fn main() {
    let mut first = usize::MAX;
    let mut decode = false;
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--first" => first = args.next().expect("a number").parse::<usize>().expect("a number") << 20,
            "--decode" => decode = true,
            path => measure(path, first, decode),
        }
    }
}

fn measure(path: &str, first: usize, decode: bool) {
    let bytes = std::fs::read(path).expect("a file");
    let whole = tokens(&bytes[header_size(&bytes)..]).expect("a gzip file");
    let mut spans = spans(&whole);
    spans.retain(|span| span.start < first);
    let plain = spans.last().map_or(0, |span| span.end);
    let part = plain as f64 / whole.plain.len() as f64;
    let params = params(&whole, &spans[..spans.len().min(4)]);
    let began = cpu_seconds();
    let sides: Vec<_> = spans
        .iter()
        .map(|span| encode(&params, &whole.plain, span))
        .collect();
    let encoding = cpu_seconds() - began;
    let side: usize = sides.iter().map(Vec::len).sum();
    let name = path.rsplit('/').next().unwrap_or(path);
    let percent = 100.0 * side as f64 / (whole.size as f64 * part);
    print!(
        "{name:32} {percent:8.4} %  encode {:6.1} MB/s",
        plain as f64 / 1e6 / encoding
    );
    if decode {
        let began = cpu_seconds();
        for (span, side) in spans.iter().zip(&sides) {
            check(&params, &whole.plain, span, side);
        }
        print!(
            "  decode {:6.1} MB/s",
            plain as f64 / 1e6 / (cpu_seconds() - began)
        );
    }
    println!();
}

/// What is found out from some spans, with a line about it.
fn params(whole: &Whole, spans: &[Span]) -> ModelParams {
    let placed = |&(pos, token, end): &(usize, Token, usize)| Placed { pos, end, token };
    let tokens: Vec<_> = spans.iter().flat_map(|span| &span.tokens).map(placed).collect();
    let began = cpu_seconds();
    let params = discover(&tokens, &whole.plain[..spans[spans.len() - 1].end]);
    let chain = &params.chain;
    print!(
        "  found in {:.2} s: chain {}/{}, depth {}",
        cpu_seconds() - began,
        chain.hash,
        chain.bits,
        chain.depth
    );
    print!(
        ", good {}, nice {}, short {}, {:x}",
        chain.good, chain.nice, params.short, chain.inserted
    );
    for table in &params.tables {
        print!(
            "; table {}/{}/{} {:x}",
            table.hash, table.bits, table.ways, table.inserted
        );
    }
    println!();
    params
}

/// Processor time of this thread, from the kernel's own account of it.
fn cpu_seconds() -> f64 {
    let account = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux");
    account
        .split(' ')
        .next()
        .and_then(|nanos| nanos.parse::<f64>().ok())
        .expect("a number")
        / 1e9
}

/// Size of a gzip header without extra field; a name or comment ends with a zero.
fn header_size(bytes: &[u8]) -> usize {
    let strings = usize::from(bytes[3] >> 3 & 1) + usize::from(bytes[3] >> 4 & 1);
    let extra = if bytes[3] & 4 != 0 {
        2 + usize::from(u16::from_le_bytes([bytes[10], bytes[11]]))
    } else {
        0
    };
    let mut at = 10 + extra;
    for _ in 0..strings {
        at += bytes[at..].iter().position(|&byte| byte == 0).expect("an end") + 1;
    }
    at
}

fn spans(whole: &Whole) -> Vec<Span> {
    let mut spans = Vec::new();
    let mut span = Span {
        start: 0,
        end: 0,
        tokens: Vec::new(),
    };
    for block in &whole.blocks {
        span.end = block.plain.start;
        for &token in &whole.tokens[block.tokens.clone()] {
            if span.end - span.start >= 2 * SPAN {
                cut(&mut spans, &mut span);
            }
            span.tokens.push((span.end, token, block.plain.end));
            span.end += token.len();
        }
        span.end = block.plain.end;
        if span.end - span.start >= SPAN {
            cut(&mut spans, &mut span);
        }
    }
    if span.end > span.start {
        cut(&mut spans, &mut span);
    }
    spans
}

fn cut(spans: &mut Vec<Span>, span: &mut Span) {
    let next = Span {
        start: span.end,
        end: span.end,
        tokens: Vec::new(),
    };
    for (_, _, end) in &mut span.tokens {
        *end = (*end).min(span.end);
    }
    spans.push(std::mem::replace(span, next));
}

/// History and plain bytes of a span, and where the latter begin.
fn data<'a>(plain: &'a [u8], span: &Span) -> (&'a [u8], usize) {
    let base = span.start.saturating_sub(WINDOW);
    (&plain[base..span.end], base)
}

fn encode(params: &ModelParams, plain: &[u8], span: &Span) -> Vec<u8> {
    let (data, base) = data(plain, span);
    let mut model = Model::new(params, span.start - base);
    let mut encoder = Encoder::new();
    for &(pos, token, end) in &span.tokens {
        model
            .code(&mut encoder, data, pos - base, end - base, token)
            .expect("a legal token");
    }
    encoder.finish()
}

fn check(params: &ModelParams, plain: &[u8], span: &Span, side: &[u8]) {
    let (data, base) = data(plain, span);
    let mut model = Model::new(params, span.start - base);
    let mut decoder = Decoder::new(side);
    for &(pos, token, end) in &span.tokens {
        let read = model
            .code(&mut decoder, data, pos - base, end - base, Token::LITERAL)
            .expect("a legal token");
        assert_eq!(token, read);
    }
    decoder.finish().expect("nothing more");
}
