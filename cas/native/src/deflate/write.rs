//! Blocks as bits.

use super::Error;
use super::Token;
use super::bits::BitWriter;
use super::codes::{
    DISTANCE_BASE, DISTANCE_EXTRA, DISTANCES, END, LENGTH_BASE, LENGTH_EXTRA, Lengths, NO_DISTANCE, PLACES,
    canonical, distance_slot, length_slot, place, place_of_length,
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

/// What is written for a token by its place or the slot of its distance.
#[derive(Clone, Copy, Debug)]
struct Code {
    /// The code, and above it the extra bits of a length.
    bits: u32,
    count: u8,
    /// Extra bits of a distance, and the least distance.
    extra: u8,
    base: u16,
}

impl Code {
    /// Of a token that cannot be written; `extra` says so.
    const NONE: Self = Self {
        bits: 0,
        count: 0,
        extra: NONE,
        base: 0,
    };
    /// The distance of a literal.
    const NOTHING: Self = Self {
        extra: 0,
        ..Self::NONE
    };
}

const NONE: u8 = 0x80;

/// Writes tokens by the codes of a block.
#[derive(Debug)]
pub struct TokenWriter {
    places: Box<[Code; PLACES]>,
    distances: [Code; DISTANCES],
    end: Code,
}

const NO_CODE: Error = Error::Side("a token has no code");

/// Tokens that are written between two looks at how much room there is, and bytes that they take at most, of
/// 48 bits each, with as many again as a word has that is written and not all used.
const BURST: usize = 256;
const ROOM: usize = 6 * BURST + 16;

impl TokenWriter {
    #[must_use]
    pub fn new(lengths: &Lengths) -> Self {
        let symbols = codes(&lengths.literals);
        let mut places = Box::new([Code::NONE; PLACES]);
        places[..END].copy_from_slice(&symbols[..END]);
        let usual = (Token::MIN_LEN..=Token::MAX_LEN).map(|len| (len, false));
        for (len, is_odd) in usual.chain([(Token::MAX_LEN, true)]) {
            let slot = length_slot(len, is_odd);
            let code = symbols[END + 1 + slot];
            let extra = len as u32 - u32::from(LENGTH_BASE[slot]);
            places[place_of_length(len, is_odd)] = Code {
                bits: code.bits | extra << code.count,
                count: code.count + LENGTH_EXTRA[slot],
                ..code
            };
        }
        let mut distances = codes(&lengths.distances);
        for ((code, &base), &extra) in distances.iter_mut().zip(&DISTANCE_BASE).zip(&DISTANCE_EXTRA) {
            (code.base, code.extra) = (base, code.extra | extra);
        }
        distances[NO_DISTANCE] = Code::NOTHING;
        Self {
            places,
            distances,
            end: symbols[END],
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
        let (mut at, mut missing) = (at, 0);
        for tokens in tokens.chunks(BURST) {
            writer.burst::<ROOM>(tokens.iter().map(|&token| {
                let code = self.places[place(token, data[at])];
                let of_distance = self.distances[distance_slot(token.dist())];
                missing |= (code.extra | of_distance.extra) & NONE;
                let more = token.dist() as u64 - u64::from(of_distance.base);
                let mut count = u32::from(code.count);
                let mut word = u64::from(code.bits) | u64::from(of_distance.bits) << count;
                count += u32::from(of_distance.count);
                word |= more << count;
                at += token.len();
                (word, count + u32::from(of_distance.extra & !NONE))
            }));
        }
        if missing == 0 { Ok(()) } else { Err(NO_CODE) }
    }

    /// Writes the end of the block.
    pub fn end(&self, writer: &mut BitWriter) {
        writer.put(self.end.bits.into(), self.end.count.into());
    }
}

/// The canonical codes of `lengths`, without extra bits.
fn codes<const N: usize>(lengths: &[u8; N]) -> [Code; N] {
    let codes = canonical(lengths);
    std::array::from_fn(|at| match lengths[at] {
        0 => Code::NONE,
        count => Code {
            bits: codes[at].into(),
            count,
            ..Code::NOTHING
        },
    })
}
