//! What SHA-256 does with a block, for two states at a time.

/// Bytes that SHA-256 takes in at a time.
pub const BLOCK: usize = 64;

pub type State = [u32; 8];

/// FIPS 180-4, 5.3.3.
#[rustfmt::skip]
pub const START: State = [
    0x6a09_e667, 0xbb67_ae85, 0x3c6e_f372, 0xa54f_f53a, 0x510e_527f, 0x9b05_688c, 0x1f83_d9ab, 0x5be0_cd19,
];

/// FIPS 180-4, 4.2.2.
#[rustfmt::skip]
const ROUNDS: [u32; 64] = [
    0x428a_2f98, 0x7137_4491, 0xb5c0_fbcf, 0xe9b5_dba5, 0x3956_c25b, 0x59f1_11f1, 0x923f_82a4, 0xab1c_5ed5,
    0xd807_aa98, 0x1283_5b01, 0x2431_85be, 0x550c_7dc3, 0x72be_5d74, 0x80de_b1fe, 0x9bdc_06a7, 0xc19b_f174,
    0xe49b_69c1, 0xefbe_4786, 0x0fc1_9dc6, 0x240c_a1cc, 0x2de9_2c6f, 0x4a74_84aa, 0x5cb0_a9dc, 0x76f9_88da,
    0x983e_5152, 0xa831_c66d, 0xb003_27c8, 0xbf59_7fc7, 0xc6e0_0bf3, 0xd5a7_9147, 0x06ca_6351, 0x1429_2967,
    0x27b7_0a85, 0x2e1b_2138, 0x4d2c_6dfc, 0x5338_0d13, 0x650a_7354, 0x766a_0abb, 0x81c2_c92e, 0x9272_2c85,
    0xa2bf_e8a1, 0xa81a_664b, 0xc24b_8b70, 0xc76c_51a3, 0xd192_e819, 0xd699_0624, 0xf40e_3585, 0x106a_a070,
    0x19a4_c116, 0x1e37_6c08, 0x2748_774c, 0x34b0_bcb5, 0x391c_0cb3, 0x4ed8_aa4a, 0x5b9c_ca4f, 0x682e_6ff3,
    0x748f_82ee, 0x78a5_636f, 0x84c8_7814, 0x8cc7_0208, 0x90be_fffa, 0xa450_6ceb, 0xbef9_a3f7, 0xc671_78f2,
];

/// Whether two states are worked on at a time here.
#[must_use]
pub fn is_fast() -> bool {
    #[cfg(target_arch = "x86_64")]
    let there = x86::is_there();
    #[cfg(not(target_arch = "x86_64"))]
    let there = false;
    there
}

/// Takes into each state its blocks, as many for one as for the other.
pub fn compress(states: &mut [State; 2], blocks: [&[u8]; 2]) {
    #[cfg(target_arch = "x86_64")]
    if x86::is_there() {
        return x86::compress(states, blocks);
    }
    for (state, blocks) in states.iter_mut().zip(blocks) {
        blocks
            .chunks_exact(BLOCK)
            .for_each(|block| by_definition(state, block));
    }
}

/// FIPS 180-4, 6.2.2.
#[allow(clippy::many_single_char_names)] // the standard's own
pub fn by_definition(state: &mut State, block: &[u8]) {
    let mut words = [0_u32; 64];
    for (word, bytes) in words.iter_mut().zip(block.chunks_exact(4)) {
        *word = u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    }
    for at in 16..64 {
        let (early, late) = (words[at - 15], words[at - 2]);
        let small0 = early.rotate_right(7) ^ early.rotate_right(18) ^ (early >> 3);
        let small1 = late.rotate_right(17) ^ late.rotate_right(19) ^ (late >> 10);
        words[at] = words[at - 16]
            .wrapping_add(small0)
            .wrapping_add(words[at - 7])
            .wrapping_add(small1);
    }
    let mut now = *state;
    for (word, round) in words.into_iter().zip(ROUNDS) {
        let [a, b, c, d, e, f, g, h] = now;
        let large1 = e.rotate_right(6) ^ e.rotate_right(11) ^ e.rotate_right(25);
        let choice = (e & f) ^ (!e & g);
        let first = [large1, choice, round, word]
            .into_iter()
            .fold(h, u32::wrapping_add);
        let large0 = a.rotate_right(2) ^ a.rotate_right(13) ^ a.rotate_right(22);
        let majority = (a & b) ^ (a & c) ^ (b & c);
        now = [
            first.wrapping_add(large0).wrapping_add(majority),
            a,
            b,
            c,
            d.wrapping_add(first),
            e,
            f,
            g,
        ];
    }
    for (word, more) in state.iter_mut().zip(now) {
        *word = word.wrapping_add(more);
    }
}

/// The one place with `unsafe` in it: instructions that must be there before they are used.
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
mod x86 {
    use super::{BLOCK, ROUNDS, State};
    use std::arch::x86_64::{
        __m128i, _mm_add_epi32, _mm_alignr_epi8, _mm_blend_epi16, _mm_loadu_si128, _mm_set_epi64x,
        _mm_setzero_si128, _mm_sha256msg1_epu32, _mm_sha256msg2_epu32, _mm_sha256rnds2_epu32,
        _mm_shuffle_epi8, _mm_shuffle_epi32, _mm_storeu_si128,
    };

    pub fn is_there() -> bool {
        is_x86_feature_detected!("sha")
            && is_x86_feature_detected!("ssse3")
            && is_x86_feature_detected!("sse4.1")
    }

    pub fn compress(states: &mut [State; 2], blocks: [&[u8]; 2]) {
        assert!(is_there() && blocks[0].len() == blocks[1].len());
        // SAFETY: the processor has the instructions.
        unsafe { pair(states, blocks) }
    }

    /// Four rounds from `$round` on, of both lanes.
    macro_rules! four {
        ($now:ident, $words:expr, $rounds:expr) => {
            let rounds = _mm_loadu_si128($rounds.as_ptr().cast());
            let one = _mm_add_epi32($words[0], rounds);
            let other = _mm_add_epi32($words[1], rounds);
            $now[0][1] = _mm_sha256rnds2_epu32($now[0][1], $now[0][0], one);
            $now[1][1] = _mm_sha256rnds2_epu32($now[1][1], $now[1][0], other);
            $now[0][0] = _mm_sha256rnds2_epu32($now[0][0], $now[0][1], _mm_shuffle_epi32(one, 0x0e));
            $now[1][0] = _mm_sha256rnds2_epu32($now[1][0], $now[1][1], _mm_shuffle_epi32(other, 0x0e));
        };
    }

    /// The four words that follow sixteen, of both lanes.
    macro_rules! later {
        ($w0:ident, $w1:ident, $w2:ident, $w3:ident) => {{
            let one = _mm_add_epi32(
                _mm_sha256msg1_epu32($w0[0], $w1[0]),
                _mm_alignr_epi8($w3[0], $w2[0], 4),
            );
            let other = _mm_add_epi32(
                _mm_sha256msg1_epu32($w0[1], $w1[1]),
                _mm_alignr_epi8($w3[1], $w2[1], 4),
            );
            [
                _mm_sha256msg2_epu32(one, $w3[0]),
                _mm_sha256msg2_epu32(other, $w3[1]),
            ]
        }};
    }

    /// # Safety
    ///
    /// Only where `is_there`.
    #[target_feature(enable = "sha,ssse3,sse4.1")]
    unsafe fn pair(states: &mut [State; 2], blocks: [&[u8]; 2]) {
        // SAFETY: as said; and 16 bytes are read at a time: a quarter of a whole block, four of `ROUNDS`.
        unsafe {
            let swap = _mm_set_epi64x(0x0c0d_0e0f_0809_0a0b, 0x0405_0607_0001_0203);
            // Hidden from the compiler: unrolled, it would put one lane's rounds behind the other's.
            let (first, later) = std::hint::black_box(&ROUNDS[..]).split_at(16);
            let mut now = [to_lanes(&states[0]), to_lanes(&states[1])];
            for (one, other) in blocks[0].chunks_exact(BLOCK).zip(blocks[1].chunks_exact(BLOCK)) {
                let before = now;
                let mut words = [[_mm_setzero_si128(); 2]; 4];
                let quarters = one.chunks_exact(16).zip(other.chunks_exact(16));
                for (words, (one, other)) in words.iter_mut().zip(quarters) {
                    let one = _mm_loadu_si128(one.as_ptr().cast());
                    let other = _mm_loadu_si128(other.as_ptr().cast());
                    *words = [_mm_shuffle_epi8(one, swap), _mm_shuffle_epi8(other, swap)];
                }
                let [mut w0, mut w1, mut w2, mut w3] = words;
                four!(now, w0, first[0..4]);
                four!(now, w1, first[4..8]);
                four!(now, w2, first[8..12]);
                four!(now, w3, first[12..16]);
                for rounds in later.chunks_exact(4) {
                    let next = later!(w0, w1, w2, w3);
                    (w0, w1, w2, w3) = (w1, w2, w3, next);
                    four!(now, next, rounds);
                }
                for lane in 0..2 {
                    now[lane][0] = _mm_add_epi32(now[lane][0], before[lane][0]);
                    now[lane][1] = _mm_add_epi32(now[lane][1], before[lane][1]);
                }
            }
            from_lanes(now[0], &mut states[0]);
            from_lanes(now[1], &mut states[1]);
        }
    }

    /// The order in which the instructions want a state: a b e f and c d g h, the first of them highest.
    ///
    /// # Safety
    ///
    /// Only where `is_there`.
    #[target_feature(enable = "sha,ssse3,sse4.1")]
    unsafe fn to_lanes(state: &State) -> [__m128i; 2] {
        // SAFETY: as said; and half a state is read at a time.
        unsafe {
            let abcd = _mm_shuffle_epi32(_mm_loadu_si128(state[..4].as_ptr().cast()), 0xb1);
            let efgh = _mm_shuffle_epi32(_mm_loadu_si128(state[4..].as_ptr().cast()), 0x1b);
            [_mm_alignr_epi8(abcd, efgh, 8), _mm_blend_epi16(efgh, abcd, 0xf0)]
        }
    }

    /// # Safety
    ///
    /// Only where `is_there`.
    #[target_feature(enable = "sha,ssse3,sse4.1")]
    unsafe fn from_lanes(lanes: [__m128i; 2], state: &mut State) {
        // SAFETY: as said; and half a state is written at a time.
        unsafe {
            let feba = _mm_shuffle_epi32(lanes[0], 0x1b);
            let dchg = _mm_shuffle_epi32(lanes[1], 0xb1);
            _mm_storeu_si128(state[..4].as_mut_ptr().cast(), _mm_blend_epi16(feba, dchg, 0xf0));
            _mm_storeu_si128(state[4..].as_mut_ptr().cast(), _mm_alignr_epi8(dchg, feba, 8));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{BLOCK, START, by_definition, compress};

    #[test]
    fn two_at_a_time_are_each_what_it_is_alone() {
        let data: Vec<u8> = (0..20 * BLOCK).map(|i| ((i * i) >> 3).to_le_bytes()[0]).collect();
        let blocks = data.split_at(10 * BLOCK);
        let mut states = [START, START.map(u32::reverse_bits)];
        let mut expected = states;
        blocks
            .0
            .chunks(BLOCK)
            .for_each(|block| by_definition(&mut expected[0], block));
        blocks
            .1
            .chunks(BLOCK)
            .for_each(|block| by_definition(&mut expected[1], block));
        compress(&mut states, [blocks.0, blocks.1]);
        assert_eq!(expected, states);
    }
}
