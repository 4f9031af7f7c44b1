//! What a deflate block is made of, before Huffman coding.

/// A literal, whose byte is in the plain bytes, or a match of 3 to 258 bytes, 1 to 32768 back.
///
/// Length 258 has a symbol of its own, but can also be written as the longest of the symbol before it. A
/// match written so is *odd*, and not equal to the usual one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Token(u32);

const LENGTH_AT: u32 = 16;
const ODD: u32 = 1 << 31;
/// From that bit to one that is not set in the length of an odd match, 258.
const ODD_KEY_SHIFT: u32 = 24;

impl Token {
    /// Shortest match.
    pub const MIN_LEN: usize = 3;
    /// Longest match.
    pub const MAX_LEN: usize = 258;

    /// More than any length key.
    pub const LENGTHS: usize = 512;

    /// One byte as it is.
    pub const LITERAL: Self = Self(1 << LENGTH_AT);

    /// A match of `len` bytes, `dist` back.
    #[inline]
    #[must_use]
    pub fn matched(len: usize, dist: usize) -> Self {
        debug_assert!((Self::MIN_LEN..=Self::MAX_LEN).contains(&len), "length {len}");
        debug_assert!((1..=super::WINDOW).contains(&dist), "distance {dist}");
        Self((len as u32) << LENGTH_AT | dist as u32)
    }

    /// A match of 258 bytes written as symbol 284 with all extra bits set.
    #[inline]
    #[must_use]
    pub fn odd_258(dist: usize) -> Self {
        Self(Self::matched(Self::MAX_LEN, dist).0 | ODD)
    }

    #[inline]
    #[must_use]
    pub fn is_literal(self) -> bool {
        self == Self::LITERAL
    }

    #[inline]
    #[must_use]
    pub fn is_odd(self) -> bool {
        self.0 & ODD != 0
    }

    /// The length, or another number below `LENGTHS` for an odd match: what tells tokens with different symbols apart.
    #[inline]
    #[must_use]
    pub fn length_key(self) -> usize {
        ((self.0 >> LENGTH_AT & 0x1FF) | (self.0 & ODD) >> ODD_KEY_SHIFT) as usize
    }

    /// Plain bytes that it stands for: 1 for a literal.
    #[inline]
    #[must_use]
    #[allow(clippy::len_without_is_empty)] // none is empty
    pub fn len(self) -> usize {
        (self.0 >> LENGTH_AT & 0x1FF) as usize
    }

    /// How far back, 0 for a literal.
    #[inline]
    #[must_use]
    pub fn dist(self) -> usize {
        (self.0 & 0xFFFF) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::Token;

    #[test]
    fn every_token_gives_back_what_it_was_made_of() {
        for len in [3, 4, 257, 258] {
            for dist in [1, 2, 32767, 32768] {
                let token = Token::matched(len, dist);
                assert_eq!((len, dist), (token.len(), token.dist()));
                assert!(!token.is_literal() && !token.is_odd());
            }
        }
        let odd = Token::odd_258(32768);
        assert_eq!((258, 32768, true), (odd.len(), odd.dist(), odd.is_odd()));
        assert_ne!(odd, Token::matched(258, 32768));
        let literal = Token::LITERAL;
        assert_eq!(
            (1, 0, true),
            (literal.len(), literal.dist(), literal.is_literal())
        );
    }
}
