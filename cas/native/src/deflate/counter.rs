//! Adaptive probabilities, and values of several bits made of them.

use super::Error;
use super::coder::Coder;

/// A probability that follows what was coded: 22 bits of it and, below them, 10 of how often.
///
/// The n-th bit moves it by 1/(n + 1.6) of the difference, so that the first counts most; n grows to a limit,
/// which makes it forget.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Counter(u32);

/// Greatest n: the counter forgets slowest.
pub const SLOW: u32 = 1023;
/// The usual limit of n.
pub const USUAL: u32 = 255;

const COUNT_BITS: u32 = 10;
const COUNT_MASK: u32 = (1 << COUNT_BITS) - 1;

/// The probability that is as good as one.
const MAX: i64 = (1 << 22) - 1;

/// 65536/(n + 1.6).
static RATES: [u32; 1 << COUNT_BITS] = {
    let mut rates = [0; 1 << COUNT_BITS];
    let mut n = 0;
    while n < rates.len() {
        rates[n] = 655_360 / (10 * n as u32 + 16);
        n += 1;
    }
    rates
};

impl Default for Counter {
    fn default() -> Self {
        Self::new()
    }
}

impl Counter {
    /// Both bits equally likely.
    #[must_use]
    pub const fn new() -> Self {
        Self(1 << 31)
    }

    /// One that begins with `probability` of a 1, as if after `count` bits.
    #[must_use]
    pub fn biased(probability: u16, count: u32) -> Self {
        Self(u32::from(probability) << 16 | count.min(COUNT_MASK))
    }

    /// Probability of a 1, in 1/65536, from 1 to 65535.
    #[inline]
    #[must_use]
    pub fn p(self) -> u16 {
        ((self.0 >> 16) as u16).max(1)
    }

    /// Moves towards `bit`; `limit` is at most `SLOW`.
    #[inline]
    pub fn update(&mut self, bit: bool, limit: u32) {
        let count = self.0 & COUNT_MASK;
        let rate = i64::from(RATES[count as usize]);
        let p = i64::from(self.0 >> COUNT_BITS);
        // Rounded away from zero, so that both ends are reached.
        let step = if bit {
            -(((p - MAX) * rate) >> 16)
        } else {
            (-p * rate) >> 16
        };
        let count = count + u32::from(count < limit);
        self.0 = ((p + step) as u32) << COUNT_BITS | count;
    }

    #[inline]
    pub fn code<C: Coder>(&mut self, coder: &mut C, bit: bool) -> bool {
        self.code_limited(coder, bit, USUAL)
    }

    #[inline]
    pub fn code_limited<C: Coder>(&mut self, coder: &mut C, bit: bool, limit: u32) -> bool {
        let bit = coder.code(bit, self.p());
        self.update(bit, limit);
        bit
    }
}

/// Values of a fixed number of bits, from the highest down, each bit with a counter for what came before it.
#[derive(Clone, Debug)]
pub struct Tree {
    counters: Vec<Counter>,
    bits: u32,
}

impl Tree {
    /// For values of `bits` bits, at most 16.
    #[must_use]
    pub fn new(bits: u32) -> Self {
        debug_assert!(bits <= 16);
        Self {
            counters: vec![Counter::new(); 1 << bits],
            bits,
        }
    }

    pub fn code<C: Coder>(&mut self, coder: &mut C, value: usize) -> usize {
        let mut node = 1;
        for at in (0..self.bits).rev() {
            let bit = self.counters[node].code(coder, value >> at & 1 != 0);
            node = node << 1 | usize::from(bit);
        }
        node - (1 << self.bits)
    }
}

/// Numbers of any size, small ones in few bits: how many bits follow the leading one, in unary, and those.
#[derive(Clone, Debug)]
pub struct Number {
    widths: [Counter; 32],
    /// The two bits below the leading one, by width.
    upper: [[Counter; 4]; 32],
}

impl Default for Number {
    fn default() -> Self {
        Self::new()
    }
}

impl Number {
    #[must_use]
    pub fn new() -> Self {
        Self {
            widths: [Counter::new(); 32],
            upper: [[Counter::new(); 4]; 32],
        }
    }

    /// Codes `value`, which is below `u32::MAX`.
    ///
    /// # Errors
    ///
    /// `Error::Side` if what is read is over `most`.
    pub fn code<C: Coder>(&mut self, coder: &mut C, value: u32, most: u32) -> Result<u32, Error> {
        let width = self.width(coder, (value + 1).ilog2());
        let mut read = 1_u64;
        for at in (0..width).rev() {
            let bit = (value + 1) >> at & 1 != 0;
            let bit = match width - at {
                1 => self.upper[width as usize][1].code(coder, bit),
                2 => self.upper[width as usize][2 + (read as usize & 1)].code(coder, bit),
                _ => coder.code(bit, 1 << 15),
            };
            read = read << 1 | u64::from(bit);
        }
        match u32::try_from(read - 1) {
            Ok(value) if value <= most => Ok(value),
            _ => Err(Error::Side("a number is too large")),
        }
    }

    fn width<C: Coder>(&mut self, coder: &mut C, width: u32) -> u32 {
        for (at, counter) in (0..31).zip(&mut self.widths) {
            if !counter.code(coder, at < width) {
                return at;
            }
        }
        31
    }
}

/// `count` bits of no known likelihood, at most 32.
pub fn code_raw<C: Coder>(coder: &mut C, value: u32, count: u32) -> u32 {
    let mut read = 0;
    for at in (0..count).rev() {
        read = read << 1 | u32::from(coder.code(value >> at & 1 != 0, 1 << 15));
    }
    read
}

#[cfg(test)]
mod tests {
    use super::{Counter, Number, SLOW, Tree, USUAL, code_raw};
    use crate::deflate::coder::{Coder, Decoder, Encoder};

    /// Codes what `value` gives with a step's number and gets it back.
    fn both_ways<S: Clone>(
        state: &S,
        count: u32,
        step: impl Fn(&mut S, &mut dyn FnMut(bool, u16) -> bool, u32),
    ) {
        let mut encoder = Encoder::new();
        let mut encoding = state.clone();
        for at in 0..count {
            step(&mut encoding, &mut |bit, p| encoder.code(bit, p), at);
        }
        let bytes = encoder.finish();
        let mut decoder = Decoder::new(&bytes);
        let mut decoding = state.clone();
        for at in 0..count {
            step(&mut decoding, &mut |_, p| decoder.code(false, p), at);
        }
        decoder.finish().unwrap();
    }

    /// A coder that is a function, so that one test serves both directions.
    struct By<'a>(&'a mut dyn FnMut(bool, u16) -> bool);

    impl Coder for By<'_> {
        fn code(&mut self, bit: bool, probability: u16) -> bool {
            (self.0)(bit, probability)
        }
    }

    #[test]
    fn values_of_all_kinds_come_back() {
        both_ways(&Tree::new(8), 3000, |tree, code, at| {
            let value = (at * at % 251) as usize;
            assert_eq!(value, tree.code(&mut By(code), value));
        });
        both_ways(&Number::new(), 3000, |number, code, at| {
            let value = at.wrapping_mul(0x9E37_79B9) >> (at % 32) & 0x7FFF_FFFF;
            assert_eq!(Ok(value), number.code(&mut By(code), value, u32::MAX));
        });
        both_ways(&(), 300, |(), code, at| {
            let value = at.wrapping_mul(0x9E37_79B9);
            assert_eq!(value, code_raw(&mut By(code), value, 32));
        });
    }

    #[test]
    fn the_greatest_numbers_come_back_and_those_over_a_limit_do_not() {
        both_ways(&Number::new(), 2, |number, code, at| {
            let value = u32::MAX - 1 - at;
            assert_eq!(Ok(value), number.code(&mut By(code), value, u32::MAX));
        });
        let mut encoder = Encoder::new();
        assert!(Number::new().code(&mut encoder, 100, 99).is_err());
    }

    #[test]
    fn a_counter_follows_and_never_is_sure() {
        for limit in [USUAL, SLOW] {
            for bit in [false, true] {
                let mut counter = Counter::new();
                for _ in 0..1_000_000 {
                    counter.update(bit, limit);
                    assert!(counter.p() > 0);
                }
                assert_eq!(if bit { 65535 } else { 1 }, counter.p());
            }
        }
    }
}
