//! The encoders that are about, the likeliest first.

use super::chain::{Rule, Sync};
use super::links::Hash;
use super::{Params, klauspost, libdeflate, miniz, table, zlibng};

/// The numbers of zlib's levels, which its kin have kept: good, lazy, nice, depth, insert.
const LEVELS: [(usize, usize, usize, usize, usize); 9] = [
    (4, 0, 8, 4, 4),
    (4, 0, 16, 8, 5),
    (4, 0, 32, 32, 6),
    (4, 4, 16, 16, 258),
    (8, 16, 32, 32, 258),
    (8, 16, 128, 128, 258),
    (8, 32, 128, 256, 258),
    (32, 128, 258, 1024, 258),
    (32, 258, 258, 4096, 258),
];

/// libdeflate's numbers from level 6 on, then those from level 2: depth, nice, lazy.
const LIBDEFLATE: [(usize, usize, usize); 8] = [
    (35, 65, 1),
    (100, 130, 1),
    (300, 258, 2),
    (600, 258, 2),
    (6, 10, 0),
    (12, 14, 0),
    (16, 30, 0),
    (16, 30, 1),
];

/// zlib at `level`, as GNU gzip and pigz have it too.
#[must_use]
pub fn zlib(level: usize) -> Rule {
    let (good, lazy, nice, depth, insert) = LEVELS[level - 1];
    Rule {
        hash: Hash::Three,
        hash_bits: 15,
        depth,
        good,
        nice,
        lazy,
        insert,
        min: 3,
        near: if lazy == 0 { 32768 } else { 4096 },
        reach: 32768 - 262,
        shortest: 3,
        sync: Sync::Keep,
    }
}

/// Go's compress/flate at `level`, 2 or more.
#[must_use]
pub fn go(level: usize) -> Rule {
    let base = zlib(level);
    Rule {
        hash: Hash::Go,
        hash_bits: 17,
        good: 0,
        min: 4,
        near: 4096,
        reach: 32768,
        shortest: 4,
        ..base
    }
}

fn chromium(level: usize) -> Rule {
    Rule {
        hash: Hash::Portable,
        ..zlib(level)
    }
}

/// Every encoder worth a try.
#[must_use]
pub fn menu() -> Vec<Params> {
    let kept = |rule| Params::Chain(rule);
    let with = |level, sync| Params::Chain(Rule { sync, ..zlib(level) });
    let mut menu = klauspost_menu();
    menu.extend([6, 9].map(zlib).map(kept));
    menu.extend([6, 9].map(chromium).map(kept));
    menu.extend([6, 9].map(go).map(kept));
    menu.push(Params::GoFastest);
    menu.extend(tables());
    menu.extend(zlibng());
    menu.extend(miniz());
    menu.extend(LIBDEFLATE.map(libdeflate));
    menu.extend([1, 5, 8, 7, 4, 3, 2].map(zlib).map(kept));
    menu.extend([1, 2, 3].map(|level| with(level, Sync::Prime)));
    menu.extend([6, 9, 1, 5, 8, 7, 4, 3, 2].map(|level| with(level, Sync::Forget)));
    menu.extend([5, 8, 7, 4, 3, 2].map(go).map(kept));
    menu.extend([1, 5, 8, 7, 4, 3, 2].map(chromium).map(kept));
    menu.extend([6, 9].map(|level| {
        Params::Chain(Rule {
            hash: Hash::Crc,
            ..zlib(level)
        })
    }));
    menu.extend([0, 1].map(|reach| kept(near_only(reach))));
    menu
}

/// zlib's strategies without matches (`reach` 0), as other encoders have it too, and for runs alone (1).
fn near_only(reach: usize) -> Rule {
    Rule {
        depth: 1,
        nice: 258,
        insert: 258,
        reach,
        ..zlib(1)
    }
}

fn klauspost_menu() -> Vec<Params> {
    let mut menu = Vec::new();
    for level in [5, 1, 6, 3, 2, 4] {
        for (old, pieces) in [(false, true), (false, false), (true, true), (true, false)] {
            // What level 3 was before is not known here.
            if !(old && level == 3) {
                menu.push(Params::Klauspost(klauspost::Rule { level, old, pieces }));
            }
        }
    }
    menu
}

/// The smallest windows of zlib's, and how far back matches are in them.
fn windows() -> impl Iterator<Item = usize> {
    (9..15).map(|bits| (1 << bits) - 262)
}

/// What is worth a try beside the menu if no match is further back than `furthest`: zlib with a window just so large.
#[must_use]
pub fn narrow(furthest: usize) -> Vec<Params> {
    let levels = [6, 9, 1, 5, 8, 7, 4, 3, 2].map(zlib).into_iter();
    match windows().find(|&reach| furthest <= reach) {
        Some(reach) if furthest > 1 => levels.map(|rule| Params::Chain(Rule { reach, ..rule })).collect(),
        _ => Vec::new(),
    }
}

/// What `params` may be in detail, once it is known to be the nearest of the menu: other sizes of zlib's
/// tables, its smaller windows, and what else changes little. `furthest` is the longest distance seen.
#[must_use]
pub fn variants(params: &Params, furthest: usize) -> Vec<Params> {
    let Params::Chain(rule) = params else {
        return Vec::new();
    };
    let mut all = Vec::new();
    if rule.hash == Hash::Three {
        all.extend([14, 13, 12, 11, 10, 9, 8, 16].map(|hash_bits| Rule { hash_bits, ..*rule }));
        all.push(Rule { shortest: 6, ..*rule });
        let windows = windows().filter(|&reach| furthest <= reach);
        all.extend(windows.map(|reach| Rule { reach, ..*rule }));
    }
    all.into_iter().map(Params::Chain).collect()
}

fn tables() -> Vec<Params> {
    let isal = |bits| table::Rule::Isal(table::Isal { bits });
    [
        table::Rule::Libdeflate,
        table::Rule::Quick,
        table::Rule::Miniz,
        isal(13),
        isal(15),
    ]
    .map(Params::Table)
    .to_vec()
}

fn libdeflate((depth, nice, lazy): (usize, usize, usize)) -> Params {
    Params::Libdeflate(libdeflate::Rule { depth, nice, lazy })
}

/// zlib-ng and zlib-rs at levels 6 to 2, then where they do as zlib does but for the hash.
fn zlibng() -> Vec<Params> {
    let quick = [(24, 32, 192), (6, 16, 96), (4, 8, 4)];
    let rule = |(depth, nice, insert), fizzle: bool, restart| {
        Params::ZlibNg(zlibng::Rule {
            depth,
            nice,
            insert,
            hasty: !fizzle,
            fizzle,
            restart,
        })
    };
    let slow = |level| Rule {
        hash: Hash::Knuth,
        hash_bits: 16,
        near: 32768,
        ..zlib(level)
    };
    let mut menu = Vec::new();
    for numbers in [(128, 128, 256), (32, 32, 256)] {
        menu.extend([false, true].map(|restart| rule(numbers, true, restart)));
    }
    menu.extend(quick.map(|numbers| rule(numbers, false, false)));
    menu.extend([7, 8].map(slow).map(Params::Chain));
    menu
}

/// miniz at levels 6, 9, 5, 7, 8, 10, 4, 3 and 2.
fn miniz() -> Vec<Params> {
    let rule = |probes, greedy| Params::Miniz(miniz::Rule { probes, greedy });
    let mut menu = [128, 768, 32, 256, 512, 1500, 16]
        .map(|probes| rule(probes, false))
        .to_vec();
    menu.extend([32, 6].map(|probes| rule(probes, true)));
    menu
}
