//! Bits of a deflate stream, lowest of each byte first.

/// Reads bits out of a slice; 56 or more can be looked at as long as the slice has them.
#[derive(Clone, Debug)]
pub struct BitReader<'a> {
    data: &'a [u8],
    /// Next byte to be loaded.
    next: usize,
    /// Loaded bits. Those above `count` are right as well, or zero.
    buffer: u64,
    count: u32,
}

impl<'a> BitReader<'a> {
    /// Begins at bit `at` of `data`, which is not past its end.
    #[must_use]
    pub fn new(data: &'a [u8], at: usize) -> Self {
        let mut reader = Self {
            data,
            next: at / 8,
            buffer: 0,
            count: 0,
        };
        reader.refill();
        reader.consume((at % 8) as u32);
        reader
    }

    /// Loads what there is room for; afterwards 56 bits or all that are left are there to look at.
    #[inline]
    pub fn refill(&mut self) {
        if let Some(word) = self.data.get(self.next..).and_then(<[u8]>::first_chunk) {
            self.buffer |= u64::from_le_bytes(*word) << self.count;
            self.next += (63 - self.count as usize) / 8;
            self.count |= 0x38;
        } else {
            self.refill_slowly();
        }
    }

    #[cold]
    fn refill_slowly(&mut self) {
        while self.count < 56 {
            let Some(&byte) = self.data.get(self.next) else {
                return;
            };
            self.buffer |= u64::from(byte) << self.count;
            self.next += 1;
            self.count += 8;
        }
    }

    /// Whether 56 bits can be had by a refill for another `times` refills.
    #[inline]
    #[must_use]
    pub fn is_plenty(&self, times: usize) -> bool {
        self.data.len() - self.next >= 8 * times
    }

    /// The bits that are loaded, next one lowest. Those past the end are zero.
    #[inline]
    #[must_use]
    pub fn peek(&self) -> u64 {
        self.buffer
    }

    /// How many bits are loaded.
    #[inline]
    #[must_use]
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Leaves `count` loaded bits behind.
    #[inline]
    pub fn consume(&mut self, count: u32) {
        debug_assert!(count <= self.count);
        self.buffer >>= count;
        self.count -= count;
    }

    /// The next `count` bits, at most 32, or nothing if there are not so many.
    #[inline]
    pub fn take(&mut self, count: u32) -> Option<u32> {
        if self.count < count {
            self.refill();
            if self.count < count {
                return None;
            }
        }
        let value = self.buffer as u32 & ((1_u64 << count) - 1) as u32;
        self.consume(count);
        Some(value)
    }

    /// Number of the next bit, counted from the start of the slice.
    #[inline]
    #[must_use]
    pub fn position(&self) -> usize {
        self.next * 8 - self.count as usize
    }
}

/// Writes bits after one another.
#[derive(Clone, Default, Debug)]
pub struct BitWriter {
    bytes: Vec<u8>,
    buffer: u64,
    count: u32,
}

impl BitWriter {
    /// Begins with `phase` bits, fewer than 8, of zero.
    #[must_use]
    pub fn new(phase: u32) -> Self {
        Self {
            bytes: Vec::new(),
            buffer: 0,
            count: phase,
        }
    }

    /// Adds the lowest `count` bits of `value`, at most 48; the others are zero.
    #[inline]
    pub fn put(&mut self, value: u64, count: u32) {
        debug_assert!(count <= 48 && value >> count == 0);
        self.buffer |= value << self.count;
        self.count += count;
        if self.count >= 16 {
            let whole = self.count / 8;
            let word = self.buffer.to_le_bytes();
            self.bytes.extend_from_slice(&word[..whole as usize]);
            self.buffer = self.buffer.checked_shr(8 * whole).unwrap_or(0);
            self.count -= 8 * whole;
        }
    }

    /// Adds the same as `put` would of each of some values, whose bits go into `ROOM` bytes with 16 left over.
    #[inline]
    pub fn burst<const ROOM: usize>(&mut self, values: impl Iterator<Item = (u64, u32)>) {
        let mut bytes = [0; ROOM];
        let mut at = 0;
        for (value, count) in values {
            self.buffer |= value << self.count;
            self.count += count;
            let word = self.buffer.to_le_bytes();
            bytes[at..at + 8].copy_from_slice(&word);
            at += self.count as usize / 8;
            self.buffer >>= self.count & 0x38;
            self.count &= 7;
        }
        self.bytes.extend_from_slice(&bytes[..at]);
    }

    /// Adds whole bytes. The position is that of a byte.
    pub fn put_bytes(&mut self, bytes: &[u8]) {
        debug_assert!(self.count % 8 == 0);
        while self.count > 0 {
            self.bytes.push(self.buffer as u8);
            self.buffer >>= 8;
            self.count -= 8;
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// Bits so far, those of the phase among them.
    #[must_use]
    pub fn position(&self) -> usize {
        self.bytes.len() * 8 + self.count as usize
    }

    /// The bytes, and how many bits of the last are used: 0 for all of them.
    #[must_use]
    pub fn finish(mut self) -> (Vec<u8>, u32) {
        let used = self.count % 8;
        let word = self.buffer.to_le_bytes();
        self.bytes
            .extend_from_slice(&word[..self.count.div_ceil(8) as usize]);
        (self.bytes, used)
    }
}

#[cfg(test)]
mod tests {
    use super::{BitReader, BitWriter};

    #[test]
    fn what_was_written_is_read_from_any_phase() {
        for phase in 0..8 {
            let mut writer = BitWriter::new(phase);
            let mut position = phase as usize;
            let value = |at: u64| at.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20;
            for at in 0..2000 {
                let count = at as u32 % 33;
                writer.put(value(at) & ((1 << count) - 1), count);
                position += count as usize;
                assert_eq!(position, writer.position());
            }
            let (bytes, used) = writer.finish();
            assert_eq!((position.div_ceil(8), position as u32 % 8), (bytes.len(), used));
            let mut reader = BitReader::new(&bytes, phase as usize);
            for at in 0..2000 {
                let count = at as u32 % 33;
                assert_eq!(Some((value(at) & ((1 << count) - 1)) as u32), reader.take(count));
            }
            assert_eq!(position, reader.position());
            assert_eq!(None, reader.take(8));
        }
    }

    #[test]
    fn values_in_a_burst_are_written_as_one_by_one() {
        let values = |from: u64| {
            (from..from + 50).map(|at| {
                let count = (at * at % 49) as u32;
                (at.wrapping_mul(0x9E37_79B9_7F4A_7C15) & ((1 << count) - 1), count)
            })
        };
        let (mut one, mut other) = (BitWriter::new(3), BitWriter::new(3));
        for from in 0..200 {
            other.burst::<316>(values(from));
            other.put(1, from as u32 % 16 + 1);
            values(from).for_each(|(value, count)| one.put(value, count));
            one.put(1, from as u32 % 16 + 1);
            assert_eq!(one.position(), other.position());
        }
        assert_eq!(one.finish(), other.finish());
    }

    #[test]
    fn widest_values_and_bytes_between_bits() {
        let mut writer = BitWriter::new(1);
        writer.put((1 << 48) - 1, 48);
        writer.put(0, 7);
        writer.put_bytes(b"abc");
        writer.put(5, 3);
        let (bytes, used) = writer.finish();
        assert_eq!(
            (b"\xfe\xff\xff\xff\xff\xff\x01abc\x05".to_vec(), 3),
            (bytes, used)
        );
    }
}
