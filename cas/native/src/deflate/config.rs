//! What analysing a span is told of its encoder, and how that is written in side information.

use super::Error;

/// How the tokens of a span are foretold.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Config {}

impl Config {
    /// Its encoded form, which tells where it ends.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        vec![0]
    }

    /// A configuration and what follows it.
    ///
    /// # Errors
    ///
    /// `Error::Side` if these bytes are not what encoding one gives.
    pub fn decode(bytes: &[u8]) -> Result<(Self, &[u8]), Error> {
        match bytes {
            [0, rest @ ..] => Ok((Self {}, rest)),
            _ => Err(Error::Side("an encoder that is not known")),
        }
    }

    /// Whether lengths of blocks are told in plain bytes, as an expert needs that has to know them.
    #[must_use]
    pub fn by_plain(&self) -> bool {
        false
    }
}
