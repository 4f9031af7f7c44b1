//! Records of one size that lie end to end, as counting makes them by the million.

/// The records in ascending order of their bytes. Runs that are in order already are found and merged.
///
/// # Panics
///
/// If `size` is 0.
#[must_use]
pub fn sorted(records: &[u8], size: usize) -> Vec<u8> {
    let mut ordered: Vec<(u64, &[u8])> = records
        .chunks_exact(size)
        .map(|record| (beginning(record), record))
        .collect();
    ordered.sort();
    let mut joined = Vec::with_capacity(records.len());
    for (_, record) in ordered {
        joined.extend_from_slice(record);
    }
    joined
}

/// The first eight bytes as a number, which sorts as they do: most comparisons need no more.
fn beginning(record: &[u8]) -> u64 {
    let mut bytes = [0; 8];
    let size = record.len().min(8);
    bytes[..size].copy_from_slice(&record[..size]);
    u64::from_be_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::sorted;

    /// Bytes that look random, with many that are equal.
    fn noise(count: u32, mask: u8) -> Vec<u8> {
        let mut state = 1_u32;
        (0..count)
            .map(|_| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                state.to_be_bytes()[0] & mask
            })
            .collect()
    }

    #[test]
    fn as_the_standard_library_sorts_lists_of_bytes() {
        for size in [1, 2, 7, 8, 9, 48] {
            for mask in [0, 1, 0xFF] {
                let records = noise(48 * 7 * 9 * 8, mask);
                let mut expected: Vec<Vec<u8>> = records.chunks(size).map(Vec::from).collect();
                expected.sort();
                assert_eq!(expected.concat(), sorted(&records, size), "{size} {mask}");
            }
        }
    }

    #[test]
    fn nothing_is_nothing() {
        assert_eq!(Vec::<u8>::new(), sorted(&[], 3));
    }
}
