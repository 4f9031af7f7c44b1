//! CRC-32C (Castagnoli), the checksum of the records of a pack.
//!
//! Reflected polynomial `0x82F63B78`, initial value and final XOR all ones, as in RFC 3720 and in the
//! `crc32` instruction of SSE 4.2 and of 64-bit ARM, which the `crc32c` crate uses where there is one.

/// The checksum of `data`, going on from `value`, the checksum of what came before (0 at the start).
#[must_use]
pub fn crc32c(value: u32, data: &[u8]) -> u32 {
    ::crc32c::crc32c_append(value, data)
}

#[cfg(test)]
mod tests {
    use super::crc32c;

    /// The definition itself, a bit at a time, to compare the table and hardware ways with.
    fn by_bits(value: u32, data: &[u8]) -> u32 {
        let mut crc = !value;
        for &byte in data {
            crc ^= u32::from(byte);
            for _ in 0..8 {
                crc = (crc >> 1) ^ (0x82F6_3B78 * (crc & 1));
            }
        }
        !crc
    }

    #[test]
    fn known_answers() {
        assert_eq!(0, crc32c(0, b""));
        assert_eq!(0xE306_9283, crc32c(0, b"123456789"));
    }

    /// RFC 3720, B.4. It prints the bytes in the order of the wire, lowest first.
    #[test]
    fn rfc_3720() {
        let up: Vec<u8> = (0..32).collect();
        let down: Vec<u8> = (0..32).rev().collect();
        let mut read_command = [0_u8; 48];
        for (at, byte) in [
            (0, 0x01),
            (1, 0xC0),
            (16, 0x14),
            (22, 0x04),
            (27, 0x14),
            (31, 0x18),
        ] {
            read_command[at] = byte;
        }
        for (at, byte) in [(32, 0x28), (40, 0x02)] {
            read_command[at] = byte;
        }
        assert_eq!(0x8A91_36AA, crc32c(0, &[0; 32]));
        assert_eq!(0x62A8_AB43, crc32c(0, &[0xFF; 32]));
        assert_eq!(0x46DD_794E, crc32c(0, &up));
        assert_eq!(0x113F_DB5C, crc32c(0, &down));
        assert_eq!(0xD996_3A56, crc32c(0, &read_command));
    }

    /// Every length past the widest unrolled loop of the crate, at every alignment, whole and in two parts.
    #[test]
    fn agrees_with_the_definition() {
        let data: Vec<u8> = (0..40_000_u32).map(|i| ((i * i) >> 7).to_le_bytes()[0]).collect();
        for length in (0..300).chain([768, 769, 8191, 8192, 24_576, 24_577, 39_000]) {
            for start in 0..8 {
                let part = &data[start..start + length];
                let (head, tail) = part.split_at(length / 3);
                let expected = by_bits(0, part);
                assert_eq!(expected, crc32c(0, part), "{length} bytes from {start}");
                assert_eq!(expected, crc32c(crc32c(0, head), tail), "{length} in two");
            }
        }
    }
}
