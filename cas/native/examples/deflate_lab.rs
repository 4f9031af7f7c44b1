//! Measures the deflate core on gzip files: `deflate_lab FILE...`.

use std::time::Instant;

use _native::deflate::inflate;

#[allow(clippy::cast_precision_loss)] // figures for people
fn main() {
    for path in std::env::args().skip(1) {
        let bytes = std::fs::read(&path).expect("a file");
        let start = Instant::now();
        let whole = inflate::tokens(&bytes[gzip_header_size(&bytes)..]).expect("a gzip file");
        let seconds = start.elapsed().as_secs_f64();
        let megabytes = whole.plain.len() as f64 / 1e6;
        println!(
            "{path}: {:.1} MB, {} tokens, {} blocks, {:.0} MB/s",
            megabytes,
            whole.tokens.len(),
            whole.blocks.len(),
            megabytes / seconds
        );
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
