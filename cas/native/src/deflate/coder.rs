//! The entropy coder: binary decisions with a probability each, which `counter` adapts.
//!
//! A binary range coder with 32 bits of range, 64 of low end, and carries passed on to what was written. The
//! range is split by an exact product, so that a decision of probability 65535/65536 costs hardly more than
//! it should. Of all numbers in the last interval the encoder takes the one with the most trailing zeros, and
//! leaves zero bytes at the end away; a decoder reads zeros past the end, and takes no other number
//! (`Decoder::finish`), so that a sequence of decisions has one encoding.

use super::Error;
pub use super::counter::{Counter, Number, SLOW, Tree, USUAL, code_raw};

/// Codes decisions in either direction: an encoder writes `bit`, a decoder ignores it and gives what it read.
pub trait Coder {
    /// `probability` is that of a 1, in 1/65536, from 1 to 65535.
    fn code(&mut self, bit: bool, probability: u16) -> bool;
}

const TOP: u32 = 1 << 24;

/// Writes decisions.
#[derive(Debug)]
pub struct Encoder {
    low: u64,
    range: u32,
    bytes: Vec<u8>,
}

impl Default for Encoder {
    fn default() -> Self {
        Self::new()
    }
}

impl Encoder {
    #[must_use]
    pub fn new() -> Self {
        Self {
            low: 0,
            range: u32::MAX,
            bytes: Vec::new(),
        }
    }

    /// Bytes written so far; what is still open comes to 4 more at most.
    #[must_use]
    #[allow(clippy::len_without_is_empty)] // nobody asks
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// All bytes, without the zeros at the end of the last four.
    #[must_use]
    pub fn finish(mut self) -> Vec<u8> {
        let last = roundest(self.low as u32, self.range);
        self.low += u64::from(last);
        let before = self.bytes.len();
        for _ in 0..AHEAD {
            self.shift();
        }
        while self.bytes.len() > before && self.bytes.last() == Some(&0) {
            self.bytes.pop();
        }
        self.bytes
    }

    fn shift(&mut self) {
        if self.low >> 32 != 0 {
            carry(&mut self.bytes);
        }
        self.bytes.push((self.low >> 24) as u8);
        self.low = (self.low & 0x00FF_FFFF) << 8;
    }
}

impl Coder for Encoder {
    #[inline]
    fn code(&mut self, bit: bool, probability: u16) -> bool {
        let split = split(self.range, probability);
        if bit {
            self.range = split;
        } else {
            self.low += u64::from(split);
            self.range -= split;
        }
        while self.range < TOP {
            self.range <<= 8;
            self.shift();
        }
        bit
    }
}

/// Adds one to the number that the bytes are. It never runs over: what is written is below 1.
fn carry(bytes: &mut [u8]) {
    for byte in bytes.iter_mut().rev() {
        *byte = byte.wrapping_add(1);
        if *byte != 0 {
            return;
        }
    }
}

/// What part of the range a 1 has: at least 1, less than all.
#[inline]
fn split(range: u32, probability: u16) -> u32 {
    debug_assert!(probability > 0);
    ((u64::from(range) * u64::from(probability)) >> 16) as u32
}

/// What to add to `low` to get the number from `low` to `low + range - 1` with the most trailing zeros.
fn roundest(low: u32, range: u32) -> u32 {
    for zeros in (0..32).rev() {
        let up = low.wrapping_neg() & ((1_u32 << zeros) - 1);
        if up < range {
            return up;
        }
    }
    0
}

/// Reads decisions. Past the end of the bytes it reads zeros.
#[derive(Debug)]
pub struct Decoder<'a> {
    bytes: &'a [u8],
    next: usize,
    low: u32,
    range: u32,
    value: u32,
}

/// Bytes that a decoder is ahead of its encoder by.
const AHEAD: usize = 4;

impl<'a> Decoder<'a> {
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        let mut decoder = Self {
            bytes,
            next: 0,
            low: 0,
            range: u32::MAX,
            value: 0,
        };
        for _ in 0..AHEAD {
            decoder.value = decoder.value << 8 | u32::from(decoder.byte());
        }
        decoder
    }

    /// Whether more was read than an encoder left away: no encoder wrote these bytes for these decisions.
    #[must_use]
    pub fn exhausted(&self) -> bool {
        self.next > self.bytes.len() + AHEAD
    }

    /// That the decisions read are all there are, and encoded as an encoder does.
    ///
    /// # Errors
    ///
    /// `Error::Side` if bytes are left over or lacking, or the last number is not the roundest.
    pub fn finish(self) -> Result<(), Error> {
        let left_away = self.next.wrapping_sub(self.bytes.len());
        let is_trimmed = left_away == AHEAD || self.bytes.last().is_some_and(|&byte| byte != 0);
        if left_away <= AHEAD && is_trimmed && self.value == roundest(self.low, self.range) {
            return Ok(());
        }
        Err(Error::Side("it does not end where its decisions do"))
    }

    #[inline]
    fn byte(&mut self) -> u8 {
        let byte = self.bytes.get(self.next).copied().unwrap_or(0);
        self.next += 1;
        byte
    }
}

impl Coder for Decoder<'_> {
    #[inline]
    fn code(&mut self, _: bool, probability: u16) -> bool {
        let split = split(self.range, probability);
        let bit = self.value < split;
        if bit {
            self.range = split;
        } else {
            self.low = self.low.wrapping_add(split);
            self.value -= split;
            self.range -= split;
        }
        while self.range < TOP {
            self.range <<= 8;
            self.low <<= 8;
            self.value = self.value << 8 | u32::from(self.byte());
        }
        bit
    }
}

/// Adds up what decisions would cost, for the same decisions as an encoder's.
#[derive(Debug, Default)]
pub struct Cost {
    total: u64,
}

impl Cost {
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// In 1/256 of a bit.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.total >> 8
    }
}

impl Coder for Cost {
    #[inline]
    fn code(&mut self, bit: bool, probability: u16) -> bool {
        let of_this = if bit {
            probability
        } else {
            probability.wrapping_neg()
        };
        self.total += u64::from(COSTS[usize::from(of_this >> 4)]);
        bit
    }
}

/// By the upper 12 bits of a probability, what a decision of it costs in 1/65536 of a bit.
static COSTS: [u32; 4096] = costs();

const fn costs() -> [u32; 4096] {
    let mut costs = [0; 4096];
    let mut at = 0;
    while at < costs.len() {
        costs[at] = minus_log2(2 * at as u64 + 1);
        at += 1;
    }
    costs
}

/// -log2 of `numerator` / 8192 in 1/65536, a bit of the fraction for each squaring.
const fn minus_log2(numerator: u64) -> u32 {
    let whole = numerator.ilog2();
    let mut mantissa = numerator << (31 - whole);
    let mut log = whole << 16;
    let mut bit = 1 << 15;
    while bit > 0 {
        mantissa = (mantissa * mantissa) >> 31;
        if mantissa >> 32 != 0 {
            mantissa >>= 1;
            log += bit;
        }
        bit >>= 1;
    }
    (13 << 16) - log
}

#[cfg(test)]
mod tests {
    use super::{Coder, Cost, Decoder, Encoder};
    use crate::deflate::Error;

    /// Deterministic decisions of all degrees of likelihood, from a seed.
    fn decisions(seed: u64, count: usize) -> Vec<(bool, u16)> {
        let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        let mut next = move || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        };
        let decision = |_| {
            let probability = match next() % 4 {
                0 => 1,
                1 => 65535,
                2 => 32768,
                _ => (next() as u16).max(1),
            };
            let likely = (next() as u16) < probability;
            (likely ^ (next() % 64 == 0), probability)
        };
        (0..count).map(decision).collect()
    }

    fn encode(decisions: &[(bool, u16)]) -> Vec<u8> {
        let mut encoder = Encoder::new();
        for &(bit, probability) in decisions {
            encoder.code(bit, probability);
        }
        encoder.finish()
    }

    fn decode(bytes: &[u8], decisions: &[(bool, u16)]) -> Result<bool, Error> {
        let mut decoder = Decoder::new(bytes);
        let mut is_same = true;
        for &(bit, probability) in decisions {
            is_same &= bit == decoder.code(!bit, probability);
        }
        let is_over = decoder.exhausted();
        let end = decoder.finish();
        assert!(end.is_err() || !is_over);
        end.map(|()| is_same)
    }

    #[test]
    fn what_was_coded_is_read_and_nothing_else_is() {
        for seed in 0..400 {
            let decisions = decisions(seed, (seed * seed / 16) as usize);
            let mut bytes = encode(&decisions);
            assert_eq!(Ok(true), decode(&bytes, &decisions), "seed {seed}");
            bytes.push(0);
            assert!(decode(&bytes, &decisions).is_err(), "seed {seed}");
            *bytes.last_mut().unwrap() = 1;
            assert!(decode(&bytes, &decisions).is_err(), "seed {seed}");
            bytes.pop();
            if let Some(last) = bytes.pop() {
                assert!(decode(&bytes, &decisions) != Ok(true), "seed {seed}");
                bytes.push(last ^ 1);
                assert!(decode(&bytes, &decisions) != Ok(true), "seed {seed}");
            }
        }
    }

    #[test]
    fn a_carry_runs_through_bytes_of_all_ones() {
        let mut decisions = vec![(false, 1); 3_000_000];
        decisions.extend(vec![(false, 65535); 40]);
        assert_eq!(Ok(true), decode(&encode(&decisions), &decisions));
    }

    #[test]
    fn reading_on_is_noticed() {
        let mut decoder = Decoder::new(&[1, 2, 3]);
        let mut steps = 0;
        while !decoder.exhausted() {
            decoder.code(false, 32768);
            steps += 1;
        }
        assert!((24..=40).contains(&steps), "{steps}");
    }

    #[test]
    fn cost_is_what_an_encoder_needs() {
        let mut decisions = decisions(7, 100_000);
        decisions.retain(|&(_, probability)| (64..65472).contains(&probability));
        let mut cost = Cost::new();
        for &(bit, probability) in &decisions {
            assert_eq!(bit, cost.code(bit, probability));
        }
        let bytes = encode(&decisions).len() as u64;
        let told = cost.total() / 256 / 8;
        assert!(told.abs_diff(bytes) * 100 < bytes, "{told} for {bytes}");
        let mut even = Cost::new();
        even.code(true, 32768);
        assert!(even.total().abs_diff(256) <= 1);
    }
}
