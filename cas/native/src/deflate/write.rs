//! Blocks as bits.

use super::Error;
use super::Token;
use super::bits::BitWriter;
use super::codes::{
    DISTANCE_BASE, DISTANCE_EXTRA, DISTANCES, END, LENGTH_BASE, LENGTH_EXTRA, LITERALS, Lengths, canonical,
    distance_slot, length_slot,
};
use super::inflate::Kind;

/// What begins a block.
pub fn start(writer: &mut BitWriter, last: bool, kind: &Kind) {
    let number = match kind {
        Kind::Stored { .. } => 0,
        Kind::Fixed => 1,
        Kind::Dynamic(_) => 2,
    };
    writer.put(number << 1 | u64::from(last), 3);
    if let Kind::Dynamic(header) = kind {
        header.write(writer);
    }
}

/// Bits up to the next whole byte.
///
/// # Errors
///
/// `Error::Side` if they do not go into what is left of this one.
pub fn padding(writer: &mut BitWriter, padding: u8) -> Result<(), Error> {
    let bits = (writer.position().wrapping_neg() % 8) as u32;
    if padding >> bits != 0 {
        return Err(Error::Side("padding is longer than a byte"));
    }
    writer.put(padding.into(), bits);
    Ok(())
}

/// The rest of a stored block, after its `start` and the padding.
pub fn stored(writer: &mut BitWriter, bytes: &[u8]) {
    let size = bytes.len() as u64;
    writer.put(size, 16);
    writer.put(0xFFFF ^ size, 16);
    writer.put_bytes(bytes);
}

/// A code: its bits, and how many.
type Code = (u16, u8);

/// Writes tokens by the codes of a block.
#[derive(Debug)]
pub struct TokenWriter {
    literals: [Code; LITERALS],
    distances: [Code; DISTANCES],
}

const NO_CODE: Error = Error::Side("a token has no code");

impl TokenWriter {
    #[must_use]
    pub fn new(lengths: &Lengths) -> Self {
        let (literals, distances) = (canonical(&lengths.literals), canonical(&lengths.distances));
        Self {
            literals: std::array::from_fn(|at| (literals[at], lengths.literals[at])),
            distances: std::array::from_fn(|at| (distances[at], lengths.distances[at])),
        }
    }

    /// Writes `tokens`, whose plain bytes begin at `at` of `data`.
    ///
    /// # Errors
    ///
    /// `Error::Side` if one of them has no code.
    pub fn tokens(
        &self,
        writer: &mut BitWriter,
        data: &[u8],
        at: usize,
        tokens: &[Token],
    ) -> Result<(), Error> {
        let mut at = at;
        for &token in tokens {
            if token.is_literal() {
                let (code, bits) = self.literals[usize::from(data[at])];
                if bits == 0 {
                    return Err(NO_CODE);
                }
                writer.put(code.into(), bits.into());
            } else {
                self.matched(writer, token)?;
            }
            at += token.len();
        }
        Ok(())
    }

    fn matched(&self, writer: &mut BitWriter, token: Token) -> Result<(), Error> {
        let slot = length_slot(token);
        let (code, bits) = self.literals[END + 1 + slot];
        let of_distance = distance_slot(token.dist());
        let (distance_code, distance_bits) = self.distances[of_distance];
        if bits == 0 || distance_bits == 0 {
            return Err(NO_CODE);
        }
        let mut word = u64::from(code);
        let mut count = u32::from(bits);
        word |= (token.len() as u64 - u64::from(LENGTH_BASE[slot])) << count;
        count += u32::from(LENGTH_EXTRA[slot]);
        word |= u64::from(distance_code) << count;
        count += u32::from(distance_bits);
        word |= (token.dist() as u64 - u64::from(DISTANCE_BASE[of_distance])) << count;
        count += u32::from(DISTANCE_EXTRA[of_distance]);
        writer.put(word, count);
        Ok(())
    }

    /// Writes the end of the block.
    pub fn end(&self, writer: &mut BitWriter) {
        let (code, bits) = self.literals[END];
        writer.put(code.into(), bits.into());
    }
}
