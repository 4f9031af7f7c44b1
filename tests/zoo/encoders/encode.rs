//! Encode standard input to standard output with the crate flate2: `encode LEVEL`.

use std::io::{copy, stdin, stdout, Error, Result, Write};

use flate2::{write::GzEncoder, Compression};

fn main() -> Result<()> {
    let level = std::env::args().nth(1).and_then(|word| word.parse().ok());
    let level = level.ok_or_else(|| Error::other("usage: encode LEVEL"))?;
    let mut encoder = GzEncoder::new(stdout().lock(), Compression::new(level));
    copy(&mut stdin().lock(), &mut encoder)?;
    encoder.finish()?.flush()
}
