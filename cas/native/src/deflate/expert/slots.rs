//! Tables of earlier positions by the hash of the bytes there.

/// A table with the last `WAYS` positions of each of `SIZE` hashes, a power of two.
///
/// What lies in it is the position plus an offset of at least `FAR`, so that 0, and everything put in before
/// the offset grew, are further back than any match may be.
pub struct Slots<const SIZE: usize, const WAYS: usize> {
    slots: Box<[[u32; WAYS]; SIZE]>,
    offset: u32,
}

const FAR: u32 = 1 << 16;

impl<const SIZE: usize, const WAYS: usize> Slots<SIZE, WAYS> {
    pub fn new() -> Self {
        let slots = vec![[0; WAYS]; SIZE]
            .into_boxed_slice()
            .try_into()
            .expect("as long as made");
        Self { slots, offset: FAR }
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        if self.offset < u32::MAX / 2 {
            self.offset += FAR;
        } else {
            self.slots.fill([0; WAYS]);
            self.offset = FAR;
        }
    }

    /// What is put in for `at`.
    #[inline]
    pub fn entry(&self, at: usize) -> u32 {
        at as u32 + self.offset
    }

    /// Puts in an entry as the latest. Gives how far before it those are that were there.
    #[inline]
    pub fn swap(&mut self, hash: usize, entry: u32) -> [u32; WAYS] {
        let slot = &mut self.slots[hash & (SIZE - 1)];
        let backs = slot.map(|before| entry.wrapping_sub(before));
        slot.copy_within(..WAYS - 1, 1);
        slot[0] = entry;
        backs
    }

    /// How far before `at` the positions with this hash are, latest first. For one that is no match it is nonsense, and
    /// further than any match may be.
    #[inline]
    pub fn back(&self, hash: usize, at: usize) -> [usize; WAYS] {
        let here = self.entry(at);
        self.slots[hash & (SIZE - 1)].map(|entry| here.wrapping_sub(entry) as usize)
    }

    /// Puts in `at` as the latest.
    #[inline]
    pub fn put(&mut self, hash: usize, at: usize) {
        self.swap(hash, self.entry(at));
    }
}
