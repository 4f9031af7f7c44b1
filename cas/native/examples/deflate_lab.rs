//! Measures the deflate core on gzip files: `deflate_lab [-s SPAN_SIZE] FILE...`.
//!
//! For each file: plain and compressed size, side information, and the speed of each step in plain bytes. All
//! spans are rebuilt and compared.

use std::time::{Duration, Instant};

use _native::deflate::config::Config;
use _native::deflate::span::{Bits, Span, rebuild};
use _native::deflate::stream::Splitter;

fn main() {
    let mut span_size = 1 << 20;
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        if argument == "-s" {
            span_size = arguments
                .next()
                .and_then(|size| size.parse().ok())
                .expect("a span size");
        } else {
            measure(&argument, span_size);
        }
    }
}

#[derive(Default)]
struct Figures {
    spans: usize,
    plain: usize,
    side: usize,
    as_it_is: usize,
    splitting: Duration,
    analysing: Duration,
    rebuilding: Duration,
}

#[allow(clippy::cast_precision_loss)] // figures for people
fn measure(path: &str, span_size: usize) {
    let bytes = std::fs::read(path).expect("a file");
    let stream = &bytes[gzip_header_size(&bytes)..];
    let mut splitter = Splitter::new(span_size);
    let mut figures = Figures::default();
    for piece in stream.chunks(1 << 20) {
        let start = Instant::now();
        let spans = splitter.feed(piece);
        figures.splitting += start.elapsed();
        for span in spans {
            figures.take(&span);
        }
    }
    assert!(splitter.is_finished(), "{path}: {:?}", splitter.failed());
    let size = stream.len() - splitter.unused().len();
    let speed = |time: Duration| figures.plain as f64 / 1e6 / time.as_secs_f64();
    let name = path.rsplit('/').next().unwrap_or(path);
    println!(
        "{name:32} {:7.2} MB of {:7.2} MB, {:4} spans ({} as they are): side {:9} = {:.4} %; MB/s: split {:.0}, \
         analyse {:.1}, rebuild {:.1}",
        size as f64 / 1e6,
        figures.plain as f64 / 1e6,
        figures.spans,
        figures.as_it_is,
        figures.side,
        100.0 * figures.side as f64 / size as f64,
        speed(figures.splitting),
        speed(figures.analysing),
        speed(figures.rebuilding),
    );
}

impl Figures {
    fn take(&mut self, span: &Span) {
        let start = Instant::now();
        let side = span.analyse(&Config::default());
        self.analysing += start.elapsed();
        let start = Instant::now();
        let bits: Bits = rebuild(span.history(), span.plain(), &side).expect("side information");
        self.rebuilding += start.elapsed();
        assert_eq!(span.bits(), &bits);
        self.spans += 1;
        self.plain += span.plain().len();
        self.side += side.len();
        self.as_it_is += usize::from(side.len() >= span.bits().bytes.len());
    }
}

/// Bytes before the deflate stream, by RFC 1952.
fn gzip_header_size(bytes: &[u8]) -> usize {
    let flags = bytes[3];
    let mut at = 10;
    if flags & 4 != 0 {
        at += 2 + usize::from(u16::from_le_bytes([bytes[at], bytes[at + 1]]));
    }
    for flag in [8, 16] {
        if flags & flag != 0 {
            at += bytes[at..].iter().position(|&byte| byte == 0).expect("a name") + 1;
        }
    }
    at + if flags & 2 != 0 { 2 } else { 0 }
}
