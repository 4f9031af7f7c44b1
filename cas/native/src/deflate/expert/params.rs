//! Which expert, with which numbers, and how that is written.
//!
//! The written form is the family's number and then each field as a little-endian base-128 number. Of a chain
//! expert, only fields that are not as in a level of zlib: the level, a bit for each field that differs, and
//! those. There is one form of each value: a field outside its range, or written longer than it must be, is an
//! error.

use super::chain::{self, Sync};

use super::links::Hash;
use super::menu::zlib;
use super::{klauspost, libdeflate, miniz, table, zlibng};
use crate::deflate::Error;

/// An expert and its numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Params {
    Chain(chain::Rule),
    Klauspost(klauspost::Rule),
    /// Level 1 of Go's compress/flate.
    GoFastest,
    Table(table::Rule),
    Libdeflate(libdeflate::Rule),
    ZlibNg(zlibng::Rule),
    Miniz(miniz::Rule),
}

const CHAIN: u8 = 1;
const KLAUSPOST: u8 = 2;
const GO_FASTEST: u8 = 3;
const TABLE: u8 = 4;
const LIBDEFLATE: u8 = 5;
const ZLIB_NG: u8 = 6;
const MINIZ: u8 = 7;

impl Params {
    /// Appends the written form to `out`.
    pub fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Chain(rule) => put(out, CHAIN, &chain_form(rule)),
            Self::Klauspost(rule) => {
                put(out, KLAUSPOST, &[rule.level, rule.old.into(), rule.pieces.into()]);
            }
            Self::GoFastest => put(out, GO_FASTEST, &[]),
            Self::Table(rule) => put(out, TABLE, &table_fields(*rule)),
            Self::Miniz(rule) => put(out, MINIZ, &[rule.probes, rule.greedy.into()]),
            Self::ZlibNg(rule) => put(out, ZLIB_NG, &zlibng_fields(rule)),
            Self::Libdeflate(rule) => put(out, LIBDEFLATE, &[rule.depth, rule.nice, rule.lazy]),
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
            MINIZ => {
                let (probes, greedy) = (field(bytes, 1, 2048)?, field(bytes, 0, 1)? == 1);
                Ok(Self::Miniz(miniz::Rule { probes, greedy }))
            }
            ZLIB_NG => read_zlibng(bytes).map(Self::ZlibNg),
            LIBDEFLATE => {
                let (depth, nice) = (field(bytes, 1, 1024)?, field(bytes, 3, 258)?);
                Ok(Self::Libdeflate(libdeflate::Rule {
                    depth,
                    nice,
                    lazy: field(bytes, 0, 2)?,
                }))
            }
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

/// The range of each of them.
const CHAIN_RANGES: [(usize, usize); 12] = [
    (0, HASHES.len() - 1),
    (8, 17),
    (1, 4096),
    (0, 258),
    (3, 258),
    (0, 258),
    (0, 258),
    (3, 4),
    (1, 32768),
    (0, 32768),
    (3, 6),
    (0, SYNCS.len() - 1),
];

/// The level of zlib that is nearest, which fields differ from it, and those.
fn chain_form(rule: &chain::Rule) -> Vec<usize> {
    let fields = chain_fields(rule);
    let differing = |level: usize| {
        let base = chain_fields(&zlib(level));
        (0..fields.len()).filter(move |&at| fields[at] != base[at])
    };
    let level = (1..=9).min_by_key(|&level| differing(level).count()).unwrap_or(1);
    let bits = differing(level).map(|at| 1 << at).sum();
    [level, bits]
        .into_iter()
        .chain(differing(level).map(|at| fields[at]))
        .collect()
}

fn read_chain(bytes: &mut &[u8]) -> Result<chain::Rule, Error> {
    let level = field(bytes, 1, 9)?;
    let bits = field(bytes, 0, (1 << CHAIN_RANGES.len()) - 1)?;
    let mut fields = chain_fields(&zlib(level));
    let mut form = vec![level, bits];
    for (at, &(low, high)) in CHAIN_RANGES.iter().enumerate() {
        if bits >> at & 1 != 0 {
            fields[at] = field(bytes, low, high)?;
            form.push(fields[at]);
        }
    }
    let rule = chain_rule(fields);
    if form == chain_form(&rule) {
        Ok(rule)
    } else {
        Err(Error::Side("a chain expert is not written as it is to be"))
    }
}

fn chain_rule(fields: [usize; 12]) -> chain::Rule {
    let [
        hash,
        hash_bits,
        depth,
        good,
        nice,
        lazy,
        insert,
        min,
        near,
        reach,
        shortest,
        sync,
    ] = fields;
    chain::Rule {
        hash: HASHES[hash],
        hash_bits: hash_bits as u32,
        depth,
        good,
        nice,
        lazy,
        insert,
        min,
        near,
        reach,
        shortest,
        sync: SYNCS[sync],
    }
}

fn table_fields(rule: table::Rule) -> [usize; 2] {
    match rule {
        table::Rule::Libdeflate => [0, 0],
        table::Rule::Quick => [1, 0],
        table::Rule::Isal(table::Isal { bits }) => [2, bits as usize],
        table::Rule::Miniz => [3, 0],
    }
}

fn read_table(bytes: &mut &[u8]) -> Result<table::Rule, Error> {
    let kind = field(bytes, 0, 3)?;
    let bits = if kind == 2 {
        field(bytes, 12, 15)?
    } else {
        field(bytes, 0, 0)?
    };
    Ok(match kind {
        0 => table::Rule::Libdeflate,
        1 => table::Rule::Quick,
        3 => table::Rule::Miniz,
        _ => table::Rule::Isal(table::Isal { bits: bits as u32 }),
    })
}

fn zlibng_fields(rule: &zlibng::Rule) -> [usize; 6] {
    [
        rule.depth,
        rule.nice,
        rule.insert,
        rule.hasty.into(),
        rule.fizzle.into(),
        rule.restart.into(),
    ]
}

fn read_zlibng(bytes: &mut &[u8]) -> Result<zlibng::Rule, Error> {
    Ok(zlibng::Rule {
        depth: field(bytes, 1, 1024)?,
        nice: field(bytes, 3, 258)?,
        insert: field(bytes, 0, 258)?,
        hasty: field(bytes, 0, 1)? == 1,
        fizzle: field(bytes, 0, 1)? == 1,
        restart: field(bytes, 0, 1)? == 1,
    })
}
