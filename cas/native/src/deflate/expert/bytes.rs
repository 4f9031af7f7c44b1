//! Comparing and loading bytes, fast and without a way out of the slice.

// A call costs more than most of what is done here.
#![allow(clippy::inline_always)]

/// Four bytes at `at`, lowest first; 0 where there are not so many.
#[inline]
pub fn load32(data: &[u8], at: usize) -> u32 {
    match data.get(at..at + 4) {
        Some(four) => u32::from_le_bytes([four[0], four[1], four[2], four[3]]),
        None => 0,
    }
}

/// Eight bytes at `at`, lowest first; 0 in place of those that are not there.
#[inline]
pub fn load64(data: &[u8], at: usize) -> u64 {
    match data.get(at..at + 8) {
        Some(eight) => word(eight),
        None => load_end(data, at),
    }
}

#[cold]
fn load_end(data: &[u8], at: usize) -> u64 {
    let mut eight = [0; 8];
    let rest = data.get(at..).unwrap_or_default();
    eight[..rest.len()].copy_from_slice(rest);
    u64::from_le_bytes(eight)
}

#[inline(always)]
fn word(eight: &[u8]) -> u64 {
    u64::from_le_bytes([
        eight[0], eight[1], eight[2], eight[3], eight[4], eight[5], eight[6], eight[7],
    ])
}

/// How many bytes at `early` and `late` are the same, at most `max`. The runs may overlap.
///
/// Needs `early < late` and `late + max <= data.len()`.
#[inline]
pub fn common(data: &[u8], early: usize, late: usize, max: usize) -> usize {
    let (x, y) = (&data[early..early + max], &data[late..late + max]);
    let mut same = 0;
    for (x, y) in x.chunks_exact(8).zip(y.chunks_exact(8)) {
        let differ = word(x) ^ word(y);
        if differ != 0 {
            return same + (differ.trailing_zeros() / 8) as usize;
        }
        same += 8;
    }
    while same < max && x[same] == y[same] {
        same += 1;
    }
    same
}

/// The same, quicker where runs are as often longer than eight bytes as not.
#[inline(always)]
pub fn common_by_16(data: &[u8], early: usize, late: usize, max: usize) -> usize {
    let (x, y) = (&data[early..early + max], &data[late..late + max]);
    let mut same = 0;
    for (x, y) in x.chunks_exact(16).zip(y.chunks_exact(16)) {
        // How long a run is is hard to foresee: so few branches, for many bytes each.
        let [low, high] = [word(x) ^ word(y), word(&x[8..]) ^ word(&y[8..])];
        let differ = u128::from(high) << 64 | u128::from(low);
        if differ != 0 {
            return same + (differ.trailing_zeros() / 8) as usize;
        }
        same += 16;
    }
    let rest = x[same..].iter().zip(&y[same..]);
    same + rest.take_while(|(x, y)| x == y).count()
}

#[cfg(test)]
mod tests {
    use super::{common, common_by_16, load32, load64};

    #[test]
    fn runs_end_where_bytes_differ_or_at_the_limit() {
        let mut data = vec![7; 100];
        for common in [common, common_by_16] {
            assert_eq!(60, common(&data, 0, 40, 60));
            assert_eq!(13, common(&data, 39, 40, 13));
            for wrong in 40..100 {
                data[wrong] = 8;
                assert_eq!(wrong - 40, common(&data, 0, 40, 60));
                data[wrong] = 7;
            }
        }
    }

    #[test]
    fn loads_stop_at_the_end() {
        let data = [1, 2, 3, 4, 5, 6, 7, 8, 9];
        assert_eq!((0x0403_0201, 0), (load32(&data, 0), load32(&data, 6)));
        assert_eq!(0x0807_0605_0403_0201, load64(&data, 0));
        assert_eq!((0x0908, 0), (load64(&data, 7), load64(&data, 20)));
    }
}
