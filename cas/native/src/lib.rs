//! The parts of cas that Python is too slow for, as `cas._native`.
//!
//! Each module below is plain Rust over slices, tested by `cargo test` without a Python. Those named
//! `python` alone know about objects, buffers and the interpreter lock; they are built with that feature.

pub mod cpu;
pub mod crc;
pub mod deflate;
#[cfg(feature = "python")]
mod deflate_python;
pub mod look;
pub mod place;
#[cfg(feature = "python")]
mod python;
pub mod records;
pub mod replay;
#[cfg(feature = "python")]
mod replay_python;
pub mod scout;
pub mod sha;
