//! Any bytes, as side information for any plain bytes: bits come of it, or an error.

#![no_main]

use _native::deflate::span::rebuild;
use libfuzzer_sys::fuzz_target;

/// The first two bytes say how much of the rest is history and plain bytes.
fuzz_target!(|data: &[u8]| {
    let Some((&[history, plain], rest)) = data.split_first_chunk() else {
        return;
    };
    let (history, rest) = rest.split_at(usize::from(history).min(rest.len()));
    let (plain, side) = rest.split_at((8 * usize::from(plain)).min(rest.len()));
    let _ = rebuild(history, plain, side);
});
