//! What a model is told of an encoder: how deep its chain is, which tables it has, what it inserts.
//!
//! Encoded as bytes: the longest short match (2 bytes), the chain (16), how many tables (1), each table (11);
//! numbers are little-endian. Anything out of its range is refused, so that a value has one encoding.

use super::super::Error;
use super::table::HASHES;

/// Hash chains through the window: what zlib and its kin search, and a good guess for any other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ChainParams {
    /// 0 for zlib's hash of 3 bytes, else an index into `table::HASHES`, plus one, of a hash of 4.
    pub hash: u8,
    /// Bits of the hash, 8 to 17.
    pub bits: u8,
    /// Steps along a chain, 1 to 4096, also those to other bytes with the same hash.
    pub depth: u16,
    /// At this length and more the next position is searched to a quarter of the depth only.
    pub good: u16,
    /// At this length and more nothing further is looked for.
    pub nice: u16,
    /// Classes of positions that are inserted.
    pub inserted: Classes,
}

/// A table of the last one or two positions with the same hash.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TableParams {
    /// Index into `table::HASHES`.
    pub hash: u8,
    /// Bits of the hash, 8 to 17.
    pub bits: u8,
    /// Positions kept for a hash: 1 or 2.
    pub ways: u8,
    pub inserted: Classes,
}

/// A set of classes of positions (see `trail`): bit c for class c in a long match, bit 32 + c in a short one.
pub type Classes = u64;

/// All that a model is told.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ModelParams {
    /// Longest match whose positions count as those of a short match (see `Classes`).
    pub short: u16,
    pub chain: ChainParams,
    /// At most `MAX_TABLES`.
    pub tables: Vec<TableParams>,
}

/// An encoder has one table or two.
pub const MAX_TABLES: usize = 2;
/// Longest encoded form.
pub const MAX_ENCODED: usize = 2 + CHAIN_SIZE + 1 + MAX_TABLES * TABLE_SIZE;

const CHAIN_SIZE: usize = 16;
const TABLE_SIZE: usize = 11;
/// Deepest chain.
pub const MAX_DEPTH: u16 = 4096;
const LONGEST: u16 = 258;

impl ChainParams {
    /// Bytes that are hashed.
    #[must_use]
    pub fn bytes(&self) -> u32 {
        if self.hash == 0 {
            3
        } else {
            HASHES[usize::from(self.hash) - 1].bytes
        }
    }
}

impl Default for ModelParams {
    fn default() -> Self {
        let chain = ChainParams {
            hash: 1,
            bits: 16,
            depth: 128,
            good: LONGEST,
            nice: LONGEST,
            inserted: Classes::MAX,
        };
        Self {
            short: LONGEST,
            chain,
            tables: Vec::new(),
        }
    }
}

impl ModelParams {
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let chain = &self.chain;
        let mut bytes = self.short.to_le_bytes().to_vec();
        bytes.extend([chain.hash, chain.bits]);
        for number in [chain.depth, chain.good, chain.nice] {
            bytes.extend(number.to_le_bytes());
        }
        bytes.extend(chain.inserted.to_le_bytes());
        bytes.push(self.tables.len() as u8);
        for table in &self.tables {
            bytes.extend([table.hash, table.bits, table.ways]);
            bytes.extend(table.inserted.to_le_bytes());
        }
        bytes
    }

    /// The value that `bytes` begin with, and how many of them it takes.
    ///
    /// # Errors
    ///
    /// `Error::Side` for anything that `encode` does not give.
    pub fn decode(bytes: &[u8]) -> Result<(Self, usize), Error> {
        let mut reader = Reader { bytes, at: 0 };
        let short = reader.number()?;
        let chain = reader.chain()?;
        let count = usize::from(reader.byte()?);
        if count > MAX_TABLES || short > LONGEST {
            return Err(BAD);
        }
        let tables = (0..count).map(|_| reader.table()).collect::<Result<_, _>>()?;
        Ok((Self { short, chain, tables }, reader.at))
    }
}

const BAD: Error = Error::Side("the parameters of its model are out of range");

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn chain(&mut self) -> Result<ChainParams, Error> {
        let chain = ChainParams {
            hash: self.byte()?,
            bits: self.byte()?,
            depth: self.number()?,
            good: self.number()?,
            nice: self.number()?,
            inserted: self.classes()?,
        };
        let is_short = chain.good <= LONGEST && chain.nice <= LONGEST;
        let is_hash = usize::from(chain.hash) <= HASHES.len() && chain.bytes() <= 4;
        let is_good = is_hash && (8..=17).contains(&chain.bits);
        if is_short && is_good && (1..=MAX_DEPTH).contains(&chain.depth) {
            Ok(chain)
        } else {
            Err(BAD)
        }
    }

    fn table(&mut self) -> Result<TableParams, Error> {
        let table = TableParams {
            hash: self.byte()?,
            bits: self.byte()?,
            ways: self.byte()?,
            inserted: self.classes()?,
        };
        let is_good = usize::from(table.hash) < HASHES.len();
        let is_sized = (8..=17).contains(&table.bits) && matches!(table.ways, 1 | 2);
        if is_good && is_sized { Ok(table) } else { Err(BAD) }
    }

    fn byte(&mut self) -> Result<u8, Error> {
        self.take::<1>().map(|[byte]| byte)
    }

    fn number(&mut self) -> Result<u16, Error> {
        self.take().map(u16::from_le_bytes)
    }

    fn classes(&mut self) -> Result<Classes, Error> {
        self.take().map(Classes::from_le_bytes)
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let (taken, _) = self.bytes[self.at..].split_first_chunk::<N>().ok_or(BAD)?;
        self.at += N;
        Ok(*taken)
    }
}

#[cfg(test)]
mod tests {
    use super::{ModelParams, TableParams};

    #[test]
    fn every_encoding_is_of_one_value() {
        let table = TableParams {
            hash: 2,
            bits: 13,
            ways: 1,
            inserted: 0x1234_5678_9ABC_DEF0,
        };
        let params = ModelParams {
            tables: vec![table, TableParams { ways: 2, ..table }],
            ..Default::default()
        };
        let bytes = params.encode();
        for size in 0..bytes.len() {
            assert!(ModelParams::decode(&bytes[..size]).is_err());
        }
        for at in 0..bytes.len() {
            for flip in 1..=255 {
                let mut other = bytes.clone();
                other[at] ^= flip;
                if let Ok((read, size)) = ModelParams::decode(&other) {
                    assert_eq!((&other[..size], false), (&read.encode()[..], read == params));
                }
            }
        }
        assert_eq!(Ok((params, bytes.len())), ModelParams::decode(&bytes));
    }
}
