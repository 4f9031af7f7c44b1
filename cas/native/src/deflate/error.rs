//! What can be wrong with bytes that are handed in.

use std::fmt;

/// Why bytes are no deflate stream, or no side information.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Error {
    /// The data is no legal deflate stream; `bit` is where, counted from the stream's start.
    Stream { what: &'static str, bit: u64 },
    /// The side information is not what analysing any span gives.
    Side(&'static str),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stream { what, bit } => {
                write!(
                    f,
                    "no deflate stream: {what} at byte {}, bit {}",
                    bit / 8,
                    bit % 8
                )
            }
            Self::Side(what) => write!(f, "no side information of a deflate span: {what}"),
        }
    }
}

impl std::error::Error for Error {}
