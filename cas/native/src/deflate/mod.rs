//! Deflate streams (RFC 1951) as plain bytes and a little side information, from which the very same bits
//! are made again.
//!
//! A compressed stream is what its plain bytes are and what its encoder chose: where matches are, where
//! blocks end, which Huffman codes they have. Encoders choose by rule, so most choices can be foretold from
//! the plain bytes by something that knows the rule, or learns it. The side information says only where the
//! foretelling is wrong, so that it is a small part of a percent of the stream, and nothing at all has to be
//! known of an encoder for it to be right.
//!
//! ```text
//! bits -> inflate -> spans of plain bytes, tokens, blocks -> span::analyse -> side information
//!                          history + plain bytes + side information -> span::rebuild -> bits
//! ```
//!
//! A *span* is 1 to 4 MiB of plain bytes with the blocks that lie in it. It is rebuilt from the 32 KiB of
//! plain bytes before it, its own, and its side information, so spans can be kept, sent and rebuilt alone
//! and side by side. Everything learnt is learnt anew in each span.
//!
//! One function codes each choice in both directions (`coder::Coder`): in an encoder it writes what is there,
//! in a decoder it gives back what was written. So the two cannot drift apart. All arithmetic is of integers
//! with tables made at compile time: the same on every machine.
//!
//! Side information may come from anyone. Every index and length is checked before it is used, what cannot
//! be is an `Error`, and time and memory are bounded by the number of plain bytes.

// Widths are stated where a value is made: bits out of a 64-bit buffer, fields out of packed words.
#![allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
// What a name says is not said again.
#![allow(missing_docs)]

pub mod bits;
pub mod budget;
pub mod coder;
pub mod codes;
pub mod config;
pub mod counter;
pub mod detect;
pub mod dynamic;
pub mod error;
pub mod expert;
pub mod extent;
pub mod fallback;
pub mod frequencies;
pub mod header;
pub mod hits;
pub mod huffman;
pub mod inflate;
pub mod model;
pub mod output;
pub mod runs;
pub mod span;
pub mod stream;
pub mod token;
pub mod tokens;
pub mod walk;
#[cfg(test)]
mod wild;
pub mod write;

pub use error::Error;
pub use token::Token;

/// How far back a match may reach, and so how much history a span needs.
pub const WINDOW: usize = 32768;
