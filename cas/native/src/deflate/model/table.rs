//! Tables of the last positions by hash, as fast encoders keep them instead of chains.

use super::super::WINDOW;
use super::chain::{Match, match_len};
use super::params::TableParams;

/// How so many bytes become an index.
#[derive(Clone, Copy, Debug)]
pub struct Hash {
    pub bytes: u32,
    /// The upper bits of the product with this; 0 for the lower bits of the CRC-32C.
    multiplier: u64,
}

/// The hashes encoders are known to use: of 4 bytes zlib-ng's and klauspost's, Go's and libdeflate's, and
/// igzip's; then klauspost's of 5 to 8.
pub static HASHES: [Hash; 7] = [
    Hash {
        bytes: 4,
        multiplier: 0x9E37_79B1,
    },
    Hash {
        bytes: 4,
        multiplier: 0x1E35_A7BD,
    },
    Hash {
        bytes: 4,
        multiplier: 0,
    },
    Hash {
        bytes: 5,
        multiplier: 889_523_592_379,
    },
    Hash {
        bytes: 6,
        multiplier: 227_718_039_650_203,
    },
    Hash {
        bytes: 7,
        multiplier: 58_295_818_150_454_627,
    },
    Hash {
        bytes: 8,
        multiplier: 0xCF1B_BCDC_B7A5_6463,
    },
];

impl Hash {
    /// Index of `bits` bits for the bytes at `pos`; none near the end of the data.
    #[inline]
    #[must_use]
    pub fn of(self, data: &[u8], pos: usize, bits: u32) -> Option<usize> {
        let word = match data.get(pos..pos + 8) {
            Some(eight) => u64::from_le_bytes(eight.try_into().ok()?),
            None => last_word(data.get(pos..pos + self.bytes as usize)?),
        };
        if self.multiplier == 0 {
            return Some((crc_of_4(word as u32) & ((1 << bits) - 1)) as usize);
        }
        let product = (word << (64 - 8 * self.bytes)).wrapping_mul(self.multiplier);
        Some((product >> (64 - bits)) as usize)
    }
}

fn last_word(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .rev()
        .fold(0, |word, &byte| word << 8 | u64::from(byte))
}

/// CRC-32C of 4 bytes, without its usual inversions.
#[inline]
fn crc_of_4(word: u32) -> u32 {
    CRC[3][(word & 255) as usize]
        ^ CRC[2][(word >> 8 & 255) as usize]
        ^ CRC[1][(word >> 16 & 255) as usize]
        ^ CRC[0][(word >> 24) as usize]
}

/// CRC-32C of a byte that so many zeros follow.
static CRC: [[u32; 256]; 4] = {
    let mut tables = [[0; 256]; 4];
    let mut zeros = 0;
    while zeros < 4 {
        let mut byte = 0;
        while byte < 256 {
            tables[zeros][byte] = crc_step(if zeros == 0 {
                byte as u32
            } else {
                tables[zeros - 1][byte]
            });
            byte += 1;
        }
        zeros += 1;
    }
    tables
};

/// The register after a further byte of zeros.
const fn crc_step(register: u32) -> u32 {
    let mut register = register;
    let mut bit = 0;
    while bit < 8 {
        register = register >> 1 ^ if register & 1 == 1 { 0x82F6_3B78 } else { 0 };
        bit += 1;
    }
    register
}

/// Most positions that all tables of a model give: two each.
pub const WAYS: usize = 4;

/// The last one or two positions by hash, plus one; 0 is none.
#[derive(Debug)]
pub struct Table {
    hash: Hash,
    params: TableParams,
    entries: Vec<[u32; 2]>,
}

impl Table {
    #[must_use]
    pub fn new(params: &TableParams) -> Self {
        let hash = HASHES[usize::from(params.hash)];
        Self {
            hash,
            params: *params,
            entries: vec![[0; 2]; 1 << params.bits],
        }
    }

    #[inline]
    #[must_use]
    pub fn params(&self) -> &TableParams {
        &self.params
    }

    /// Bytes that are hashed.
    #[must_use]
    pub fn bytes(&self) -> u32 {
        self.hash.bytes
    }

    #[inline]
    pub fn insert(&mut self, data: &[u8], pos: usize) {
        if let Some(index) = self.hash.of(data, pos, u32::from(self.params.bits)) {
            let entry = &mut self.entries[index];
            *entry = [pos as u32 + 1, if self.params.ways == 2 { entry[0] } else { 0 }];
        }
    }

    /// The positions kept for the bytes at `pos` that are in its window and at least 4 bytes of which agree.
    #[inline]
    #[must_use]
    pub fn find(&self, data: &[u8], pos: usize) -> [Option<usize>; 2] {
        let Some(index) = self.hash.of(data, pos, u32::from(self.params.bits)) else {
            return [None; 2];
        };
        self.entries[index].map(|entry| {
            let old = (entry as usize).wrapping_sub(1);
            let is_in_window = old < pos && pos - old <= WINDOW;
            (is_in_window && data[old..old + 4] == data[pos..pos + 4]).then_some(old)
        })
    }
}

/// What the tables of a model give for a position.
#[derive(Clone, Copy, Debug, Default)]
pub struct Looked {
    /// By table and way; none has length 0.
    pub ways: [Match; WAYS],
    /// Which there are, a bit for each.
    pub valid: u32,
    /// The longest, of those the first.
    pub best: Match,
}

impl Looked {
    /// Looks `pos` up in each table, for matches of at most `max` bytes.
    #[must_use]
    pub fn new(tables: &[Table], data: &[u8], pos: usize, max: usize) -> Self {
        let mut looked = Self::default();
        if max < 4 {
            return looked;
        }
        for (index, table) in tables.iter().enumerate() {
            for (way, old) in table.find(data, pos).into_iter().enumerate() {
                if let Some(old) = old {
                    looked.add(
                        2 * index + way,
                        Match::new(match_len(data, old, pos, max), pos - old),
                    );
                }
            }
        }
        looked
    }

    fn add(&mut self, way: usize, found: Match) {
        self.ways[way] = found;
        self.valid |= 1 << way;
        if found.len > self.best.len {
            self.best = found;
        }
    }

    /// Which ways have this length, a bit for each.
    #[inline]
    #[must_use]
    pub fn ways_of(&self, len: u16) -> u32 {
        self.ways
            .iter()
            .rev()
            .fold(0, |bits, way| bits << 1 | u32::from(way.len == len))
    }

    /// Which ways have this distance, a bit for each.
    #[inline]
    #[must_use]
    pub fn ways_at(&self, dist: u16) -> u32 {
        self.ways
            .iter()
            .rev()
            .fold(0, |bits, way| bits << 1 | u32::from(way.dist == dist && dist > 0))
    }
}
