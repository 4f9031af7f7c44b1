//! The codes of RFC 1951: what symbols stand for, canonical Huffman codes, and tables to decode them by.

use super::Token;

/// Literal and length symbols; the last two have codes in the fixed code but never occur.
pub const LITERALS: usize = 288;
/// Distance symbols; the last two never occur.
pub const DISTANCES: usize = 32;
/// Symbols that code lengths are written with.
pub const CODE_LENGTHS: usize = 19;
/// End of block.
pub const END: usize = 256;
/// Longest code of literals, lengths and distances.
pub const MAX_BITS: usize = 15;
/// Longest code of code lengths.
pub const MAX_LENGTH_BITS: usize = 7;

/// The order in which lengths of the code of code lengths are written.
pub const ORDER: [usize; CODE_LENGTHS] = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];

/// Shortest match of each length symbol from 257 on.
pub const LENGTH_BASE: [u16; 29] = [
    3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 23, 27, 31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195,
    227, 258,
];
/// Bits that follow each length symbol.
pub const LENGTH_EXTRA: [u8; 29] = [
    0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0,
];
/// Smallest distance of each distance symbol.
pub const DISTANCE_BASE: [u16; 30] = [
    1, 2, 3, 4, 5, 7, 9, 13, 17, 25, 33, 49, 65, 97, 129, 193, 257, 385, 513, 769, 1025, 1537, 2049, 3073,
    4097, 6145, 8193, 12289, 16385, 24577,
];
/// Bits that follow each distance symbol.
pub const DISTANCE_EXTRA: [u8; 30] = [
    0, 0, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8, 9, 9, 10, 10, 11, 11, 12, 12, 13, 13,
];

/// Length symbol, less 257, of each length, less 3.
static LENGTH_SLOTS: [u8; 256] = {
    let mut slots = [0; 256];
    let mut at = 0;
    let mut slot = 0;
    while at < slots.len() {
        while slot + 1 < LENGTH_BASE.len() && LENGTH_BASE[slot + 1] as usize <= at + 3 {
            slot += 1;
        }
        slots[at] = slot as u8;
        at += 1;
    }
    slots
};

/// Length symbol of a match, less 257.
#[must_use]
pub fn length_slot(len: usize, is_odd: bool) -> usize {
    usize::from(LENGTH_SLOTS[len - Token::MIN_LEN]) - usize::from(is_odd)
}

/// Where a token's symbol is in a table with one entry for each literal and each length: below `PLACES`.
///
/// Whether a token is a literal cannot be foreseen, so it is not branched by: that would be half of the time that a token
/// takes.
#[inline]
#[must_use]
pub fn place(token: Token, literal: u8) -> usize {
    let (first, of_literal) = PLACES_OF[token.length_key() % PLACES_OF.len()];
    usize::from(first) + usize::from(of_literal & literal)
}

pub const PLACES: usize = 1024;

/// By the length key of a token its place, and the bits of the literal that are added to it.
static PLACES_OF: [(u16, u8); Token::LENGTHS] = {
    let mut places = [(0, 0xFF); Token::LENGTHS];
    let mut key = Token::MIN_LEN;
    while key < places.len() {
        places[key] = ((END + key) as u16, 0);
        key += 1;
    }
    places
};

/// The place of a match of `len` bytes, odd or not.
#[must_use]
pub fn place_of_length(len: usize, is_odd: bool) -> usize {
    let token = if is_odd {
        Token::odd_258(1)
    } else {
        Token::matched(len, 1)
    };
    place(token, 0)
}

/// Not the symbol of any distance, but what a literal has.
pub const NO_DISTANCE: usize = DISTANCES - 1;

/// Distances up to which each has a slot of its own in `DISTANCE_SLOTS`; from there on so many share one.
const NEAR: usize = 256;
const SHARE: u32 = 7;

static DISTANCE_SLOTS: [u8; 1024] = {
    let mut slots = [NO_DISTANCE as u8; 1024];
    let mut dist = 1;
    let mut slot = 0;
    while dist <= 32768 {
        while slot + 1 < DISTANCE_BASE.len() && DISTANCE_BASE[slot + 1] as usize <= dist {
            slot += 1;
        }
        slots[distance_place(dist)] = slot as u8;
        dist += 1;
    }
    slots
};

#[inline]
const fn distance_place(dist: usize) -> usize {
    if dist <= NEAR {
        dist
    } else {
        NEAR + 1 + ((dist - 1) >> SHARE & 0x1FF)
    }
}

/// Distance symbol of a distance from 1 to 32768; of 0, `NO_DISTANCE`.
#[inline]
#[must_use]
pub fn distance_slot(dist: usize) -> usize {
    usize::from(DISTANCE_SLOTS[distance_place(dist)]) & (DISTANCES - 1)
}

/// Code lengths of the fixed codes.
#[must_use]
pub fn fixed_lengths() -> Lengths {
    let mut lengths = Lengths {
        literals: [8; LITERALS],
        distances: [5; DISTANCES],
    };
    lengths.literals[144..256].fill(9);
    lengths.literals[256..280].fill(7);
    lengths
}

/// Code lengths of a block: 0 where a symbol has no code.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Lengths {
    pub literals: [u8; LITERALS],
    pub distances: [u8; DISTANCES],
}

/// The canonical codes of `lengths`, bits in the order in which they are written.
#[must_use]
pub fn canonical<const N: usize>(lengths: &[u8; N]) -> [u16; N] {
    let mut next = first_codes(lengths);
    let mut codes = [0; N];
    for (code, &length) in codes.iter_mut().zip(lengths).filter(|(_, length)| **length > 0) {
        let length = usize::from(length);
        *code = (next[length] as u16).reverse_bits() >> (16 - length);
        next[length] += 1;
    }
    codes
}

/// The first code of each length, by RFC 1951, 3.2.2.
fn first_codes(lengths: &[u8]) -> [u32; MAX_BITS + 1] {
    let count = counts(lengths);
    let mut next = [0; MAX_BITS + 1];
    let mut code = 0;
    for length in 1..=MAX_BITS {
        next[length] = code;
        code = (code + count[length]) << 1;
    }
    next
}

fn counts(lengths: &[u8]) -> [u32; MAX_BITS + 1] {
    let mut counts = [0; MAX_BITS + 1];
    for &length in lengths {
        counts[usize::from(length)] += 1;
    }
    counts[0] = 0;
    counts
}

/// Whether a code of these lengths can be decoded: no more codes than there is room for, and room left over
/// only as encoders leave it, with no code at all or a single one of one bit. That is what zlib takes.
#[must_use]
pub fn is_decodable(lengths: &[u8]) -> bool {
    let counts = counts(lengths);
    let used: u32 = counts
        .iter()
        .enumerate()
        .map(|(length, count)| count << (MAX_BITS - length))
        .sum();
    let codes: u32 = counts.iter().sum();
    used == 1 << MAX_BITS || codes == 0 || (codes == 1 && counts[1] == 1)
}

/// What an entry of a decoding table says of the bits that lead to it.
///
/// From the lowest: 8 bits of how many bits to leave behind, with the extra ones; 4 of how many of them are
/// the code; 4 of `kind`; 16 of a literal, the base of a length or distance, or where a further table is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Entry(u32);

impl Entry {
    /// Bits that are no code.
    const NONE: Self = Self::new(Self::INVALID, 0, 0, 0);
    pub const LITERAL: u32 = 0;
    /// A length or a distance.
    pub const BASE: u32 = 1;
    pub const END: u32 = 2;
    /// A code that goes on in a table at `value`, of as many bits as `total` says.
    const FURTHER: u32 = 3;
    pub const INVALID: u32 = 4;

    const fn new(kind: u32, value: u32, code: u32, extra: u32) -> Self {
        Self(value << 16 | kind << 12 | code << 8 | (code + extra))
    }

    #[inline]
    #[must_use]
    pub fn kind(self) -> u32 {
        self.0 >> 12 & 15
    }

    /// Bits of the code and extra bits.
    #[inline]
    #[must_use]
    pub fn total(self) -> u32 {
        self.0 & 0xFF
    }

    /// The literal.
    #[inline]
    #[must_use]
    pub fn literal(self) -> u8 {
        (self.0 >> 16) as u8
    }

    /// The least length or distance of the symbol.
    #[inline]
    #[must_use]
    pub fn base(self) -> usize {
        (self.0 >> 16) as usize
    }

    /// The length or distance, given the bits from the code on.
    #[inline]
    #[must_use]
    pub fn with_extra(self, bits: u64) -> usize {
        let code = self.0 >> 8 & 15;
        let extra = (bits & ((1 << self.total()) - 1)) >> code;
        self.base() + extra as usize
    }

    fn of_literal(symbol: usize, code: u32) -> Self {
        match symbol {
            0..END => Self::new(Self::LITERAL, symbol as u32, code, 0),
            END => Self::new(Self::END, 0, code, 0),
            _ => Self::based(&LENGTH_BASE, &LENGTH_EXTRA, symbol - END - 1, code),
        }
    }

    fn of_distance(symbol: usize, code: u32) -> Self {
        Self::based(&DISTANCE_BASE, &DISTANCE_EXTRA, symbol, code)
    }

    fn based(bases: &[u16], extras: &[u8], slot: usize, code: u32) -> Self {
        match (bases.get(slot), extras.get(slot)) {
            (Some(&base), Some(&extra)) => Self::new(Self::BASE, base.into(), code, extra.into()),
            _ => Self::new(Self::INVALID, 0, code, 0),
        }
    }
}

/// A decoding table: looked up by the first `bits` bits, and for longer codes by the others once more.
#[derive(Clone, Debug)]
pub struct Table {
    entries: Vec<Entry>,
    bits: u32,
}

impl Table {
    const LITERAL_BITS: u32 = 11;
    const DISTANCE_BITS: u32 = 9;

    /// One that finds nothing, to be filled.
    #[must_use]
    pub fn empty() -> Self {
        Self {
            entries: Vec::new(),
            bits: 0,
        }
    }

    pub fn fill_literals(&mut self, lengths: &[u8; LITERALS]) {
        self.fill(lengths, Self::LITERAL_BITS, Entry::of_literal);
    }

    pub fn fill_distances(&mut self, lengths: &[u8; DISTANCES]) {
        self.fill(lengths, Self::DISTANCE_BITS, Entry::of_distance);
    }

    /// The entry for the next bits, of which there are at least 15, or zeros in their place.
    #[inline]
    #[must_use]
    pub fn find(&self, bits: u64) -> Entry {
        let entry = self.entries[(bits & ((1 << self.bits) - 1)) as usize];
        if entry.kind() != Entry::FURTHER {
            return entry;
        }
        let rest = bits >> self.bits & ((1 << entry.total()) - 1);
        self.entries[entry.base() + rest as usize]
    }

    fn fill<const N: usize>(&mut self, lengths: &[u8; N], bits: u32, entry_of: fn(usize, u32) -> Entry) {
        let longest = lengths.iter().copied().max().map_or(0, u32::from);
        self.bits = bits.min(longest);
        self.entries.clear();
        self.entries.resize(1 << self.bits, Entry::NONE);
        let codes = canonical(lengths);
        for (symbol, (&length, &code)) in lengths.iter().zip(&codes).enumerate() {
            let (length, code) = (u32::from(length), usize::from(code));
            if (1..=self.bits).contains(&length) {
                step_fill(
                    &mut self.entries[..1 << self.bits],
                    code,
                    1 << length,
                    entry_of(symbol, length),
                );
            } else if length > self.bits {
                let rest = longest - self.bits;
                let at = self.further(code & ((1 << self.bits) - 1), rest);
                let table = &mut self.entries[at..at + (1 << rest)];
                step_fill(
                    table,
                    code >> self.bits,
                    1 << (length - self.bits),
                    entry_of(symbol, length),
                );
            }
        }
    }

    /// Where the table is in which codes beginning with `prefix` go on, by `rest` bits.
    fn further(&mut self, prefix: usize, rest: u32) -> usize {
        if self.entries[prefix].kind() != Entry::FURTHER {
            let at = self.entries.len();
            self.entries.resize(at + (1 << rest), Entry::NONE);
            self.entries[prefix] = Entry::new(Entry::FURTHER, at as u32, 0, rest);
        }
        self.entries[prefix].base()
    }
}

fn step_fill(table: &mut [Entry], from: usize, step: usize, entry: Entry) {
    table
        .iter_mut()
        .skip(from)
        .step_by(step)
        .for_each(|place| *place = entry);
}

#[cfg(test)]
mod tests {
    use super::{
        DISTANCE_BASE, DISTANCE_EXTRA, Entry, LENGTH_BASE, LENGTH_EXTRA, LITERALS, NO_DISTANCE, PLACES,
        Table, canonical, distance_slot, fixed_lengths, is_decodable, length_slot, place, place_of_length,
    };
    use crate::deflate::Token;
    use std::collections::HashSet;

    #[test]
    fn slots_are_those_whose_range_holds_the_value() {
        for len in 3..=258 {
            let slot = length_slot(len, false);
            let extra = len - usize::from(LENGTH_BASE[slot]);
            assert!(extra < 1 << LENGTH_EXTRA[slot], "length {len}");
        }
        assert_eq!((28, 27), (length_slot(258, false), length_slot(258, true)));
        for dist in 1..=32768 {
            let slot = distance_slot(dist);
            let extra = dist - usize::from(DISTANCE_BASE[slot]);
            assert!(extra < 1 << DISTANCE_EXTRA[slot], "distance {dist}");
        }
    }

    #[test]
    fn every_symbol_has_a_place_of_its_own() {
        let lengths = (3..=258).map(|len| place_of_length(len, false));
        let literals = (0..=255).map(|byte| place(Token::LITERAL, byte));
        let all = literals.chain(lengths).chain([place_of_length(258, true)]);
        let places: HashSet<usize> = all.collect();
        assert_eq!(256 + 256 + 1, places.len());
        assert!(places.iter().all(|&place| place < PLACES));
        assert_eq!(7, place(Token::LITERAL, 7));
        assert_eq!(NO_DISTANCE, distance_slot(Token::LITERAL.dist()));
    }

    #[test]
    fn codes_of_the_example_in_rfc_1951() {
        let codes = canonical(&[3, 3, 3, 3, 3, 2, 4, 4]);
        let written = [0b010, 0b011, 0b100, 0b101, 0b110, 0b00, 0b1110, 0b1111];
        let bits = [3, 3, 3, 3, 3, 2, 4, 4];
        for ((code, written), bits) in codes.iter().zip(written).zip(bits) {
            assert_eq!(written, code.reverse_bits() >> (16 - bits));
        }
    }

    /// As long and as uneven as codes can be: lengths 1 to 14, and two of 15.
    fn longest() -> [u8; LITERALS] {
        let mut lengths = [0; LITERALS];
        for (at, length) in lengths[250..265].iter_mut().enumerate() {
            *length = at as u8 + 1;
        }
        lengths[3] = 15;
        lengths
    }

    #[test]
    fn a_table_finds_every_code_with_any_bits_behind_it() {
        for lengths in [fixed_lengths().literals, longest()] {
            assert!(is_decodable(&lengths));
            let mut table = Table::empty();
            table.fill_literals(&lengths);
            for (symbol, (&length, code)) in lengths.iter().zip(canonical(&lengths)).enumerate() {
                for behind in [0, u64::MAX] {
                    let bits = u64::from(code) | behind.checked_shl(length.into()).unwrap();
                    let expected = Entry::of_literal(symbol, length.into());
                    assert!(length == 0 || expected == table.find(bits), "symbol {symbol}");
                }
            }
        }
    }

    #[test]
    fn codes_with_too_much_or_too_little_room_are_refused() {
        let refused: [&[u8]; 5] = [&[1, 1, 1], &[2], &[1, 2], &[2, 2, 2], &[1, 2, 3, 3, 15]];
        for lengths in refused {
            assert!(!is_decodable(lengths), "{lengths:?}");
        }
        let taken: [&[u8]; 5] = [&[0, 0], &[0, 1], &[1, 1], &[1, 2, 2], &[0, 2, 2, 0, 2, 2]];
        for lengths in taken {
            assert!(is_decodable(lengths), "{lengths:?}");
        }
    }

    #[test]
    fn an_empty_table_finds_nothing() {
        let mut table = Table::empty();
        table.fill_distances(&[0; 32]);
        assert_eq!(Entry::INVALID, table.find(u64::MAX).kind());
    }
}
