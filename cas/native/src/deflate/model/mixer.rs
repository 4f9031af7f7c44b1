//! One probability out of those of several contexts.
//!
//! Each context of a decision has a counter. Their probabilities p are stretched, ln(p/(1 - p)), weighted,
//! added, and squashed back, x -> 1/(1 + e^-x); then each weight moves by what its input had to do with the
//! error (logistic mixing, as in the PAQ compressors). Weights are sums of two, each chosen by a further small
//! context, so that each kind of situation learns which contexts to believe.
//!
//! All in integers: stretched values in 1/256, weights in 1/65536, both functions as tables that are worked
//! out at compile time.

use super::super::coder::Coder;
use super::super::counter::{Counter, SLOW};

const SLOT_BITS: u32 = 14;
const SLOTS: usize = 1 << SLOT_BITS;
/// Inputs of a mixer, the bias among them, at most.
const LANES: usize = 12;
/// The input that is always there.
const BIAS: i32 = 256;
const FIRST_WEIGHT: i32 = 9000;
/// The first steps of weights are 1/2^13 of input times error, later ones smaller.
const FIRST_RATE: u32 = 13;
const LAST_RATE: u32 = 17;
/// Probabilities that a mixer gives lie so far from 0 and 1, in 1/65536.
const MARGIN: i32 = 8;

/// Mixes `N` contexts, at most 11.
#[derive(Debug)]
pub struct Mixer<const N: usize> {
    counters: Vec<[Counter; SLOTS]>,
    weights: [Vec<Weights>; 2],
}

impl<const N: usize> Mixer<N> {
    /// `sets` is how many sets of weights there are to choose from, twice.
    #[must_use]
    #[allow(clippy::large_stack_arrays)] // it is copied from one that is constant
    pub fn new(sets: [usize; 2]) -> Self {
        assert!(N < LANES);
        Self {
            counters: vec![[Counter::new(); SLOTS]; N],
            weights: sets.map(|sets| vec![Weights::NEW; sets]),
        }
    }

    /// Codes one decision. `contexts` are any numbers: equal ones share a counter. The weights of two sets are
    /// added.
    #[inline]
    pub fn code<C: Coder>(&mut self, coder: &mut C, bit: bool, contexts: [u32; N], sets: [u32; 2]) -> bool {
        let slots = contexts.map(slot);
        let mut inputs = [0; LANES];
        for ((row, &slot), input) in self.counters.iter().zip(&slots).zip(&mut inputs) {
            *input = stretch(row[slot].p());
        }
        inputs[N] = BIAS;
        let [one, other] = &mut self.weights;
        let (one, other) = (&mut one[sets[0] as usize], &mut other[sets[1] as usize]);
        let weights = one
            .values
            .iter()
            .zip(&other.values)
            .map(|(&a, &b)| i64::from(a + b));
        let sum: i64 = inputs.iter().zip(weights).map(|(&i, w)| i64::from(i) * w).sum();
        let p = squash((sum >> 16) as i32);
        let bit = coder.code(bit, p as u16);
        let error = (i32::from(bit) << 16) - p;
        one.learn(&inputs, error);
        other.learn(&inputs, error);
        for (row, &slot) in self.counters.iter_mut().zip(&slots) {
            row[slot].update(bit, SLOW);
        }
        bit
    }
}

/// Greatest weight: 16.
const WIDEST: i32 = 1 << 20;

/// A set of weights.
#[derive(Clone, Copy, Debug)]
struct Weights {
    values: [i32; LANES],
    uses: u32,
}

impl Weights {
    const NEW: Self = Self {
        values: [FIRST_WEIGHT; LANES],
        uses: 1,
    };

    #[inline]
    fn learn(&mut self, inputs: &[i32; LANES], error: i32) {
        let rate = (FIRST_RATE + self.uses.ilog2().saturating_sub(3) / 3).min(LAST_RATE);
        self.uses = self.uses.saturating_add(1);
        for (input, weight) in inputs.iter().zip(&mut self.values) {
            let step = (input * error + (1 << (rate - 1))) >> rate;
            *weight = (*weight + step).clamp(-WIDEST, WIDEST);
        }
    }
}

#[inline]
fn slot(context: u32) -> usize {
    (context.wrapping_mul(0x9E37_79B1) >> (32 - SLOT_BITS)) as usize
}

/// Packs fields, each of a value and its width in bits, into one number.
#[inline]
pub fn pack<const K: usize>(fields: [(u32, u32); K]) -> u32 {
    fields.iter().fold(0, |packed, &(value, bits)| {
        debug_assert!(value < 1 << bits, "{value} in {bits} bits");
        packed << bits | value
    })
}

/// ln(p/(1 - p)) in 1/256, for p in 1/65536 above 0. Fine near the ends, where it is steep.
#[inline]
fn stretch(p: u16) -> i32 {
    const FINE: u16 = 4096;
    if p < FINE {
        i32::from(STRETCH_LOW[usize::from(p)])
    } else if p > FINE.wrapping_neg() {
        -i32::from(STRETCH_LOW[usize::from(p.wrapping_neg())])
    } else {
        i32::from(STRETCH[usize::from(p >> 4)])
    }
}

/// 65536/(1 + e^-x), x in 1/256, not nearer to 0 and 65536 than `MARGIN`.
#[inline]
fn squash(x: i32) -> i32 {
    let x = x.clamp(1 - REACH, REACH - 1);
    i32::from(SQUASH[((x + REACH) >> 1) as usize])
}

/// Where squashing ends: 12 in 1/256.
const REACH: i32 = 12 * 256;

/// By p/16.
static STRETCH: [i16; 4096] = stretched(16);
/// By p, below 4096.
static STRETCH_LOW: [i16; 4096] = stretched(1);
/// By (x + REACH)/2.
static SQUASH: [u16; REACH as usize] = squashed();

/// ln(p/(65536 - p)) * 256 for p = (i + 1/2) * step, or i itself where the step is 1 (and 1 for 0).
const fn stretched(step: u64) -> [i16; 4096] {
    let mut table = [0; 4096];
    let mut i = 0;
    while i < table.len() {
        let twice = if step > 1 {
            (2 * i as u64 + 1) * step
        } else {
            2 * (i as u64) + 2 * (i == 0) as u64
        };
        let log = log2(twice) - log2(2 * 65536 - twice);
        table[i] = ((log * LN_2_TIMES_256 + (1 << 39)) >> 40) as i16;
        i += 1;
    }
    table
}

/// ln 2 * 256 in 1/2^16; with a logarithm in 1/2^24 the product is in 1/2^40.
const LN_2_TIMES_256: i64 = 11_629_080;

/// Logarithm of base 2 in 1/2^24, a bit of the fraction for each squaring.
const fn log2(number: u64) -> i64 {
    let whole = number.ilog2();
    let mut mantissa = number << (31 - whole);
    let mut log = (whole as i64) << 24;
    let mut bit = 1 << 23;
    while bit > 0 {
        mantissa = (mantissa * mantissa) >> 31;
        if mantissa >> 32 != 0 {
            mantissa >>= 1;
            log += bit;
        }
        bit >>= 1;
    }
    log
}

/// e^(-1/128) in 1/2^32.
const SHRINK: u64 = 4_261_543_595;

/// 65536/(1 + e^-x) for x = 2 i/256, from the middle outwards, e^-x being a power of `SHRINK`.
const fn squashed() -> [u16; REACH as usize] {
    let mut table = [0; REACH as usize];
    let middle = REACH as usize / 2;
    let mut power = 1_u64 << 32;
    let mut i = 0;
    while i < middle {
        let upper = ((1_u64 << 48) + u64::midpoint(1 << 32, power)) / ((1 << 32) + power);
        let upper = if upper > 65536 - MARGIN as u64 {
            65536 - MARGIN as u64
        } else {
            upper
        };
        table[middle + i] = upper as u16;
        table[middle - i] = (65536 - upper) as u16;
        power = (power * SHRINK) >> 32;
        i += 1;
    }
    table[0] = MARGIN as u16;
    table
}

#[cfg(test)]
#[allow(clippy::cast_precision_loss)]
mod tests {
    use super::{Mixer, REACH, squash, stretch};
    use crate::deflate::coder::{Cost, Decoder, Encoder};

    #[test]
    fn the_tables_are_what_their_formulas_say() {
        for p in 1..=65535_u16 {
            let exact = (f64::from(p) / (65536.0 - f64::from(p))).ln() * 256.0;
            let step = if (4096..=61440).contains(&p) { 17.0 } else { 0.51 };
            assert!(
                (f64::from(stretch(p)) - exact).abs() <= step,
                "{p}: {} for {exact}",
                stretch(p)
            );
        }
        for x in -REACH - 9..REACH + 9 {
            let exact = 65536.0 / (1.0 + (-f64::from(x) / 256.0).exp());
            assert!(
                (f64::from(squash(x)) - exact.clamp(8.0, 65528.0)).abs() <= 66.0,
                "{x}"
            );
            assert!((1..=65535).contains(&squash(x)));
        }
        assert_eq!((0, 32768), (stretch(32768).abs() / 2, squash(0)));
    }

    #[test]
    fn it_learns_which_context_tells_the_decision() {
        let mut cost = Cost::new();
        let mut mixer = Mixer::<3>::new([1, 1]);
        let mut state = 1_u32;
        for _ in 0..20_000 {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let contexts = [state >> 30, state >> 20 & 3, state >> 10 & 3];
            mixer.code(&mut cost, contexts[1] > 1, contexts, [0, 0]);
        }
        assert!(cost.total() / 256 < 300, "{} bits", cost.total() / 256);
    }

    #[test]
    fn both_directions_do_the_same() {
        let decisions: Vec<_> = (0..5000_u32)
            .map(|i| (i * i % 7 < 3, [i % 7, i / 64, i % 3]))
            .collect();
        let mut encoder = Encoder::new();
        let mut mixer = Mixer::new([2, 2]);
        for &(bit, contexts) in &decisions {
            mixer.code(&mut encoder, bit, contexts, [contexts[0] % 2, contexts[1] % 2]);
        }
        let bytes = encoder.finish();
        let mut decoder = Decoder::new(&bytes);
        let mut mixer = Mixer::new([2, 2]);
        for &(bit, contexts) in &decisions {
            assert_eq!(
                bit,
                mixer.code(&mut decoder, false, contexts, [contexts[0] % 2, contexts[1] % 2])
            );
        }
        decoder.finish().unwrap();
    }
}
