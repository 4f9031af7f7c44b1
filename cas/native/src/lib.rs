//! The parts of cas that Python is too slow for, as `cas._native`.
//!
//! Each module below is plain Rust over slices, tested by `cargo test` without a Python. `python` alone
//! knows about objects, buffers and the interpreter lock; it is built with the feature of that name.

pub mod cpu;
pub mod crc;
pub mod deflate;
pub mod look;
pub mod place;
#[cfg(feature = "python")]
mod python;
pub mod sha;
