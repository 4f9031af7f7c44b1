//! Which expert, with which numbers, and how that is written.
//!
//! The written form is the family's number and then each field as a little-endian base-128 number. There is
//! one form of each value: a field outside its range, or written longer than it must be, is an error.

use super::chain::{self, Sync};

use super::links::Hash;
use super::{klauspost, table};
use crate::deflate::Error;

/// An expert and its numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Params {
    Chain(chain::Rule),
    Klauspost(klauspost::Rule),
    /// Level 1 of Go's compress/flate.
    GoFastest,
    Table(table::Rule),
}

const CHAIN: u8 = 1;
const KLAUSPOST: u8 = 2;
const GO_FASTEST: u8 = 3;
const TABLE: u8 = 4;

impl Params {
    /// Appends the written form to `out`.
    pub fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Chain(rule) => put(out, CHAIN, &chain_fields(rule)),
            Self::Klauspost(rule) => {
                put(out, KLAUSPOST, &[rule.level, rule.old.into(), rule.pieces.into()]);
            }
            Self::GoFastest => put(out, GO_FASTEST, &[]),
            Self::Table(rule) => put(out, TABLE, &table_fields(*rule)),
        }
    }

    /// Takes a written form off the front of `bytes`.
    ///
    /// # Errors
    /// `Error::Side` if there is none that `write` could have made.
    pub fn read(bytes: &mut &[u8]) -> Result<Self, Error> {
        let (&family, rest) = bytes.split_first().ok_or(Error::Side("no expert"))?;
        *bytes = rest;
        match family {
            CHAIN => read_chain(bytes).map(Self::Chain),
            KLAUSPOST => {
                let level = field(bytes, 1, 6)?;
                let [old, pieces] = [field(bytes, 0, 1)? == 1, field(bytes, 0, 1)? == 1];
                Ok(Self::Klauspost(klauspost::Rule { level, old, pieces }))
            }
            GO_FASTEST => Ok(Self::GoFastest),
            TABLE => read_table(bytes).map(Self::Table),
            _ => Err(Error::Side("an unknown expert")),
        }
    }
}

fn put(out: &mut Vec<u8>, family: u8, fields: &[usize]) {
    out.push(family);
    for &field in fields {
        let mut left = field;
        while left >= 0x80 {
            out.push(left as u8 | 0x80);
            left >>= 7;
        }
        out.push(left as u8);
    }
}

/// A number between `low` and `high`, which is less than 2^21.
fn field(bytes: &mut &[u8], low: usize, high: usize) -> Result<usize, Error> {
    const WRONG: Error = Error::Side("a number of an expert");
    let mut value = 0;
    for shift in [0, 7, 14] {
        let (&byte, rest) = bytes.split_first().ok_or(WRONG)?;
        *bytes = rest;
        value |= usize::from(byte & 0x7F) << shift;
        if byte < 0x80 {
            let shortest = byte != 0 || shift == 0;
            return if shortest && (low..=high).contains(&value) {
                Ok(value)
            } else {
                Err(WRONG)
            };
        }
    }
    Err(WRONG)
}

const HASHES: [Hash; 5] = [Hash::Three, Hash::Crc, Hash::Go, Hash::Portable, Hash::Knuth];
const SYNCS: [Sync; 3] = [Sync::Keep, Sync::Forget, Sync::Prime];

fn chain_fields(rule: &chain::Rule) -> [usize; 12] {
    [
        rule.hash as usize,
        rule.hash_bits as usize,
        rule.depth,
        rule.good,
        rule.nice,
        rule.lazy,
        rule.insert,
        rule.min,
        rule.near,
        rule.reach,
        rule.shortest,
        rule.sync as usize,
    ]
}

fn read_chain(bytes: &mut &[u8]) -> Result<chain::Rule, Error> {
    Ok(chain::Rule {
        hash: HASHES[field(bytes, 0, HASHES.len() - 1)?],
        hash_bits: field(bytes, 8, 17)? as u32,
        depth: field(bytes, 1, 4096)?,
        good: field(bytes, 0, 258)?,
        nice: field(bytes, 3, 258)?,
        lazy: field(bytes, 0, 258)?,
        insert: field(bytes, 0, 258)?,
        min: field(bytes, 3, 4)?,
        near: field(bytes, 1, 32768)?,
        reach: field(bytes, 0, 32768)?,
        shortest: field(bytes, 3, 6)?,
        sync: SYNCS[field(bytes, 0, SYNCS.len() - 1)?],
    })
}

fn table_fields(rule: table::Rule) -> [usize; 2] {
    match rule {
        table::Rule::Libdeflate => [0, 0],
        table::Rule::Quick => [1, 0],
        table::Rule::Isal(table::Isal { bits }) => [2, bits as usize],
    }
}

fn read_table(bytes: &mut &[u8]) -> Result<table::Rule, Error> {
    let kind = field(bytes, 0, 2)?;
    let bits = if kind == 2 {
        field(bytes, 12, 15)?
    } else {
        field(bytes, 0, 0)?
    };
    Ok(match kind {
        0 => table::Rule::Libdeflate,
        1 => table::Rule::Quick,
        _ => table::Rule::Isal(table::Isal { bits: bits as u32 }),
    })
}
