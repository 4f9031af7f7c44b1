//! Finding the parameters of an encoder nobody knows, from the beginning of its stream.
//!
//! Tables first, with no regard to chains: how well tables of some hash foretell the tokens can be told much
//! faster than by coding them. Start with all positions inserted, leave out or take in one class after the
//! other where that foretells more, then try all sizes and hashes of as many bytes. A second table is looked
//! for in the same way beside the first. Then the chain, by coding a part with the whole model, each
//! parameter in turn; and last whether it is better with the tables or without.

use super::params::{Classes, MAX_DEPTH, MAX_TABLES, ModelParams, TableParams};
use super::sample::{Placed, Sample};
use super::table::HASHES;
use super::trail::{BEGINS, CLASSES, ENDS, SHORT, WITHIN};

/// Tokens that tables are tried on, also for how many bytes they hash, and those that are coded.
const FOR_TABLES: usize = 40_000;
const FOR_BYTES: usize = 20_000;
const FOR_CODING: usize = 24_000;

/// The parameters that tokens are best coded with, as far as trying some tells; `data` is all the plain bytes
/// that they are of, with any history before them.
#[must_use]
pub fn discover(tokens: &[Placed], data: &[u8]) -> ModelParams {
    let sample = Sample { data, tokens };
    let tables = find_tables(&sample.middle(FOR_TABLES));
    let coded = sample.middle(FOR_CODING);
    let params = ModelParams::default();
    let mut search = Search {
        sample: &coded,
        cost: coded.cost(&params, u64::MAX),
        params,
    };
    search.try_chains(&tables);
    if !tables.is_empty() && search.attempt(|params| params.tables.clone_from(&tables)) {
        search.try_chains(&tables);
    }
    search.params
}

fn find_tables(sample: &Sample) -> Vec<TableParams> {
    let mut tables = Vec::new();
    let mut cost = sample.table_cost(&[], 0, u64::MAX);
    for _ in 0..MAX_TABLES {
        let Some((table, with_it)) = find_table(sample, &tables) else {
            break;
        };
        if with_it + with_it / 8 > cost {
            break;
        }
        tables.push(table);
        cost = with_it;
    }
    if sample.table_cost(&LONG_AND_SHORT, 0, cost) < cost {
        tables = LONG_AND_SHORT.to_vec();
    }
    tables
}

/// The tables of klauspost's middle levels, which take the two of them together to be recognised.
const LONG_AND_SHORT: [TableParams; 2] = [
    TableParams {
        hash: 0,
        bits: 15,
        ways: 1,
        inserted: 0xF4F9_DFFF_F4F9_DFFF,
    },
    TableParams {
        hash: 5,
        bits: 15,
        ways: 2,
        inserted: 0xEAF4_FEFF_EAF4_FEFF,
    },
];

/// The best further table and the cost with it.
fn find_table(sample: &Sample, others: &[TableParams]) -> Option<(TableParams, u64)> {
    let cost = |sample: &Sample, table: TableParams, most: u64| {
        let tables: Vec<_> = others.iter().copied().chain([table]).collect();
        sample.table_cost(&tables, 0, most)
    };
    let part = sample.middle(FOR_BYTES);
    let mut least = u64::MAX;
    let by_bytes = [0, 3, 4, 5, 6].map(|hash| {
        let table = TableParams {
            hash,
            bits: 15,
            ways: 1,
            inserted: Classes::MAX,
        };
        let first = cost(&part, table, u64::MAX);
        let found = if first / 2 > least {
            (table, first)
        } else {
            climb(table, first, |table, most| cost(&part, table, most))
        };
        least = least.min(found.1);
        found
    });
    let (best, _) = by_bytes.into_iter().min_by_key(|&(_, cost)| cost)?;
    let bytes = HASHES[usize::from(best.hash)].bytes;
    let mut sized = (best, u64::MAX);
    for hash in (0..HASHES.len() as u8).filter(|&hash| HASHES[usize::from(hash)].bytes == bytes) {
        for (ways, bits) in [1, 2]
            .into_iter()
            .flat_map(|ways| (12..=17).map(move |bits| (ways, bits)))
        {
            let table = TableParams {
                hash,
                bits,
                ways,
                ..best
            };
            let most = if ways > sized.0.ways {
                sized.1 - sized.1 / 16
            } else {
                sized.1
            };
            let cost = cost(sample, table, most);
            if cost < most {
                sized = (table, cost);
            }
        }
    }
    Some(climb(sized.0, sized.1, |table, most| cost(sample, table, most)))
}

/// Takes each class in or out where that costs less.
fn climb(
    mut table: TableParams,
    mut least: u64,
    cost: impl Fn(TableParams, u64) -> u64,
) -> (TableParams, u64) {
    for class in 0..CLASSES {
        let both = 1 << class | 1 << (class + SHORT);
        let other = TableParams {
            inserted: table.inserted ^ both,
            ..table
        };
        let with_other = cost(other, least);
        if with_other < least {
            (table, least) = (other, with_other);
        }
    }
    (table, least)
}

/// Hashes that chains are known to have, with their bits: zlib's with its
/// usual and more memory, zlib-ng's, libdeflate's, Go's.
const CHAIN_HASHES: [(u8, u8); 5] = [(0, 15), (0, 16), (1, 16), (2, 16), (2, 17)];

/// Longest matches within which all positions are inserted, where that is not so for all.
const SHORTS: [u16; 6] = [0, 4, 5, 6, 16, 32];

/// The best parameters so far and their cost.
struct Search<'a> {
    sample: &'a Sample<'a>,
    params: ModelParams,
    cost: u64,
}

impl Search<'_> {
    /// Tries values of one parameter of the chain after the other.
    fn try_chains(&mut self, tables: &[TableParams]) {
        if tables.iter().any(|table| table.inserted & WITHIN != WITHIN) {
            for (short, long) in SHORTS
                .into_iter()
                .flat_map(|short| [(short, BEGINS), (short, BEGINS | ENDS)])
            {
                self.attempt(|params| {
                    (params.short, params.chain.inserted) = (short, long | Classes::MAX << SHORT);
                });
            }
        }
        self.attempt(|params| (params.chain.hash, params.chain.bits) = (0, 15));
        self.try_depths(&[(4, 1), (2, 1), (1, 32), (1, 8), (1, 2), (3, 2), (3, 4)]);
        for (hash, bits) in CHAIN_HASHES {
            self.attempt(|params| (params.chain.hash, params.chain.bits) = (hash, bits));
        }
        self.try_depths(&[(9, 8), (7, 8), (65, 64), (63, 64)]);
        for nice in [8, 16, 32, 64, 128] {
            self.attempt(|params| params.chain.nice = nice);
        }
        for good in [4, 8, 32] {
            self.attempt(|params| params.chain.good = good);
        }
    }

    /// Goes up or down by factors as long as that helps.
    fn try_depths(&mut self, factors: &[(u32, u32)]) {
        for &(numerator, denominator) in factors {
            let up = if numerator > denominator {
                denominator - 1
            } else {
                0
            };
            let scaled = |depth: u16| {
                ((u32::from(depth) * numerator + up) / denominator).clamp(1, u32::from(MAX_DEPTH))
            };
            while self.attempt(|params| params.chain.depth = scaled(params.chain.depth) as u16) {}
        }
    }

    /// Keeps a change if it is worth it.
    fn attempt(&mut self, change: impl Fn(&mut ModelParams)) -> bool {
        let mut params = self.params.clone();
        change(&mut params);
        let most = self.cost.saturating_sub((self.cost / 128).max(LEAST_GAIN));
        let cost = if params == self.params {
            most
        } else {
            self.sample.cost(&params, most)
        };
        if cost >= most {
            return false;
        }
        (self.params, self.cost) = (params, cost);
        true
    }
}

/// What a change has to save, in 1/256 of a bit.
const LEAST_GAIN: u64 = 64 << 8;
