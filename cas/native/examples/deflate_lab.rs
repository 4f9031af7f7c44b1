//! Measures the deflate core on gzip and zlib files: `deflate_lab [-s SPAN_SIZE] FILE...`.
//!
//! For each file: plain and compressed size, side information, and plain bytes per second of processor time in
//! each step. All spans are rebuilt and compared.

use std::fs;
use std::time::Duration;

use _native::deflate::config::Config;
use _native::deflate::detect::choose;
use _native::deflate::span::{Span, rebuild};
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

/// Spans by which the encoder is judged.
const FIRST: usize = 4;

#[derive(Default)]
struct Figures {
    spans: usize,
    plain: usize,
    side: usize,
    as_it_is: usize,
    splitting: Duration,
    choosing: Duration,
    analysing: Duration,
    rebuilding: Duration,
}

/// Processor time of this thread so far.
fn now() -> Duration {
    let text = fs::read_to_string("/proc/thread-self/schedstat").expect("Linux");
    let nanoseconds = text.split(' ').next().and_then(|field| field.parse().ok());
    Duration::from_nanos(nanoseconds.expect("a number"))
}

/// Does some work, and adds up how long that took.
fn timed<T>(total: &mut Duration, work: impl FnOnce() -> T) -> T {
    let start = now();
    let done = work();
    *total += now().saturating_sub(start);
    done
}

/// Most memory that was resident, in MB.
fn peak() -> usize {
    let text = fs::read_to_string("/proc/self/status").expect("Linux");
    let line = text
        .lines()
        .find(|line| line.starts_with("VmHWM:"))
        .expect("a peak");
    line.split_whitespace()
        .nth(1)
        .and_then(|size| size.parse::<usize>().ok())
        .expect("a number")
        / 1000
}

fn measure(path: &str, span_size: usize) {
    let bytes = fs::read(path).expect("a file");
    let stream = &bytes[header_size(&bytes)..];
    let mut splitter = Splitter::new(span_size);
    let mut figures = Figures::default();
    let mut maybe_config = None;
    let mut held = Vec::new();
    for piece in stream.chunks(1 << 18) {
        held.extend(timed(&mut figures.splitting, || splitter.feed(piece)));
        if held.len() < FIRST && maybe_config.is_none() && !splitter.is_finished() {
            continue;
        }
        let first: Vec<&Span> = held.iter().take(FIRST).collect();
        let config = maybe_config.get_or_insert_with(|| timed(&mut figures.choosing, || choose(&first)));
        for span in held.drain(..) {
            figures.take(&span, config);
        }
    }
    assert!(splitter.is_finished(), "{path}: {:?}", splitter.failed());
    let size = stream.len() - splitter.unused().len();
    figures.print(path, size);
    println!("    {maybe_config:?}");
}

impl Figures {
    fn take(&mut self, span: &Span, config: &Config) {
        let side = timed(&mut self.analysing, || span.analyse(config));
        let bits = timed(&mut self.rebuilding, || {
            rebuild(span.history(), span.plain(), &side)
        });
        assert_eq!(Ok(span.bits()), bits.as_ref());
        self.spans += 1;
        self.plain += span.plain().len();
        self.side += side.len();
        self.as_it_is += usize::from(side.len() >= span.bits().bytes.len());
    }

    #[allow(clippy::cast_precision_loss)] // figures for people
    fn print(&self, path: &str, size: usize) {
        let speed = |time: Duration| self.plain as f64 / 1e6 / time.as_secs_f64();
        println!(
            "{:28} {:6.2} of {:6.2} MB, {:3} spans, {} as is; side {:7} = {:.4} %; split {:3.0}, choose {:.2} s, \
             analyse {:4.1}, rebuild {:4.1} MB/s; {} MB",
            path.rsplit('/').next().unwrap_or(path),
            size as f64 / 1e6,
            self.plain as f64 / 1e6,
            self.spans,
            self.as_it_is,
            self.side,
            100.0 * self.side as f64 / size as f64,
            speed(self.splitting),
            self.choosing.as_secs_f64(),
            speed(self.analysing),
            speed(self.rebuilding),
            peak(),
        );
    }
}

/// Bytes before the deflate stream, by RFC 1950 or 1952.
fn header_size(bytes: &[u8]) -> usize {
    if !bytes.starts_with(&[0x1F, 0x8B]) {
        return 2;
    }
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
