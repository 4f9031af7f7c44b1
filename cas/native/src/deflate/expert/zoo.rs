//! Every expert on streams that its encoder made: the small zoo of the tests.

use std::path::Path;

use super::chain::{Rule, Sync};
use super::links::Hash;
use super::menu::{go, zlib};
use super::table::{self, Isal};
use super::{Params, klauspost, menu, miniz, score};
use crate::deflate::inflate;

/// The deflate stream in a gzip file.
fn body(file: &[u8]) -> &[u8] {
    let (flags, mut at) = (file[3], 10);
    if flags & 4 != 0 {
        at += 2 + usize::from(file[10]) + 256 * usize::from(file[11]);
    }
    for text in [8, 16] {
        if flags & text != 0 {
            at += file[at..].iter().position(|&byte| byte == 0).expect("it ends") + 1;
        }
    }
    &file[at..]
}

/// Tokens of the stream `name` that the expert of `params` does not foretell, and how many there are.
fn misses(name: &str, params: &Params) -> (usize, usize) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/zoo/streams");
    let file = std::fs::read(folder.join(format!("{name}.gz"))).expect("a stream of the zoo");
    let whole = inflate::tokens(body(&file)).expect("a stream");
    let score = score(
        params,
        (&whole.plain, 0),
        (&whole.tokens, &whole.blocks),
        (usize::MAX, usize::MAX),
    );
    (score.wrong, score.tokens)
}

fn check(name: &str, params: &Params, most: usize) {
    let (misses, tokens) = misses(name, params);
    assert!(misses <= most, "{misses} of {tokens} in {name}: {params:?}");
    assert!(tokens > 10_000, "{name}");
}

fn klauspost(level: usize, old: bool, pieces: bool) -> Params {
    Params::Klauspost(klauspost::Rule { level, old, pieces })
}

#[test]
fn zlib_and_its_kin() {
    for level in 1..=9 {
        check(&format!("gzip-{level}"), &Params::Chain(zlib(level)), 0);
        check(&format!("zlib-{level}"), &Params::Chain(zlib(level)), 0);
    }
    let with = |level, sync| Params::Chain(Rule { sync, ..zlib(level) });
    check("pigz-1", &with(1, Sync::Prime), 0);
    check("pigz-6", &with(6, Sync::Keep), 0);
    check("pigz-i", &with(6, Sync::Forget), 0);
    check("zlib-6-full-flush", &with(6, Sync::Forget), 0);
    check("zlib-6-sync-flush", &with(6, Sync::Keep), 0);
    for level in [1, 6, 9] {
        let rule = Rule {
            hash: Hash::Portable,
            ..zlib(level)
        };
        check(&format!("node-{level}"), &Params::Chain(rule), 0);
    }
}

#[test]
fn go_and_klauspost() {
    check("go-1", &Params::GoFastest, 0);
    check("go-default", &Params::Chain(go(6)), 0);
    check("go-9", &Params::Chain(go(9)), 0);
    for level in 1..=6 {
        check(
            &format!("klauspost-{level}-v1.15.12"),
            &klauspost(level, false, false),
            1,
        );
    }
    for level in [1, 5, 6] {
        check(
            &format!("klauspost-{level}-v1.14.4"),
            &klauspost(level, true, false),
            0,
        );
        check(
            &format!("klauspost-{level}-v1.20.4"),
            &klauspost(level, false, false),
            0,
        );
    }
    check("pgzip-default-v1.15.12", &klauspost(5, false, true), 0);
    check("pgzip-default-blocks64k", &klauspost(5, false, true), 0);
    check("pgzip-default-v1.14.4", &klauspost(5, true, true), 0);
    check("pgzip-1-v1.18.4", &klauspost(1, false, true), 0);
}

#[test]
fn others() {
    check("libdeflate-1", &Params::Table(table::Rule::Libdeflate), 2);
    check("miniz-oxide-1", &Params::Table(table::Rule::Miniz), 60);
    check("zlibng-1", &Params::Table(table::Rule::Quick), 4);
    check(
        "igzip-1",
        &Params::Table(table::Rule::Isal(Isal { bits: 13 })),
        190,
    );
    check(
        "igzip-2",
        &Params::Table(table::Rule::Isal(Isal { bits: 15 })),
        70,
    );
    check(
        "miniz-oxide-6",
        &Params::Miniz(miniz::Rule {
            probes: 128,
            greedy: false,
        }),
        20,
    );
    for (name, most) in [("libdeflate-6", 1), ("libdeflate-9", 1)] {
        assert!(best(name) <= most, "{name}");
    }
    for (name, most) in [
        ("zlibng-2", 0),
        ("zlibng-3", 0),
        ("zlibng-6", 2),
        ("zlib-rs-6", 5),
    ] {
        assert!(best(name) <= most, "{name}");
    }
}

/// Misses of the best of the menu.
fn best(name: &str) -> usize {
    let tried = menu()
        .into_iter()
        .filter(|p| matches!(p, Params::Libdeflate(_) | Params::ZlibNg(_)));
    tried
        .map(|params| misses(name, &params).0)
        .min()
        .expect("there are some")
}
