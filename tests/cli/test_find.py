"""`cas find` as a user meets it: names of all tiers, and of the archives in them."""

import gzip
import hashlib
import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from cas.ids import Digest
from cas.interfaces import Changes
from cli import wiring
from tests.cli.conftest import Place, make_place
from tests.inside.test_inside import some_files, tar_of, zip_of

JSON = os.urandom(3000).hex().encode()


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """Two tiers, an archive with an archive in it in the first."""
    place = make_place(tmp_path_factory.mktemp("found"))
    zipped = zip_of({"deep/name.json": JSON, "x": os.urandom(3000)})
    files = {**some_files(), "in.zip": zipped, "big": os.urandom(400_000)}
    packed = gzip.compress(tar_of(files), mtime=0)
    (place.source / "first" / "all.tar.gz").write_bytes(packed)
    (place.source / "second" / "name.json").write_bytes(b"[]")
    (place.source / "second" / "big copy").write_bytes(files["big"])
    assert 0 == place.cas("sync").returncode
    return place


def found(place: Place, *words: str) -> list[str]:
    """What is found, below the source."""
    done = place.cas("find", *words)
    assert (0, b"") == (done.returncode, done.stderr)
    return [line.replace(f"{place.source}/", "") for line in done.stdout.decode().splitlines()]


def test_names_in_tiers_and_archives(store: Place) -> None:
    inner = "first:first/all.tar.gz!/in.zip!/deep/name.json"
    assert [inner, "second:second/name.json"] == found(store, "name.json")
    assert [inner] == found(store, "first", "name.json") == found(store, "/deep/*.json")
    assert ["second:second/name.json"] == found(store, "--no-archives", "*.json")
    assert ["second:second/name.json"] == found(
        store, "--tier", "second", "--regex", r"\.JSON$", "-i"
    )
    assert [inner] == found(store, f"first:{store.source}/first/all.tar.gz", "*.json")
    everything = found(store)
    assert "first:first/all.tar.gz!/big" in everything
    assert everything == found(store, "first", "") + found(store, "second", "")
    assert [] == found(store, "no such name")


def test_a_name_that_is_found_can_be_read(store: Place) -> None:
    done = store.cas("find", "name.json")
    for line in done.stdout.decode().splitlines():
        assert store.cas("cat", line).stdout in (JSON, b"[]")


def test_sizes_kinds_and_digests(store: Place) -> None:
    assert ["first:first/all.tar.gz!/big", "second:second/big copy"] == found(
        store, "--size", "+390k", "--size", "-500k", "big*"
    )
    assert ["first:first/pipe"] == found(store, "--kind", "fifo")
    kinds = found(store, "--kind", "fifo", "--kind", "symlink")
    assert ["first:first/link", "first:first/pipe"] == kinds
    big = hashlib.sha256((store.source / "second" / "big copy").read_bytes()).hexdigest()
    both = ["first:first/all.tar.gz!/big", "second:second/big copy"]
    assert both == found(store, "--digest", big)
    assert both[1:] == found(store, "--digest", big[:20])  # of several chunks: all digits
    text = hashlib.sha256(JSON).hexdigest()
    assert ["first:first/all.tar.gz!/in.zip!/deep/name.json"] == found(store, "--digest", text[:12])
    assert [] == found(store, "--digest", "0" * 64)


def test_what_came_from_a_tier(store: Place) -> None:
    from_first = found(store, "second", "--origin", "first", "")
    assert ["second:second/again", "second:second/big copy"] == from_first
    assert ["second:second/more", "second:second/name.json"] == found(store, "--origin", "second")


def test_the_columns_are_those_of_ls(store: Place) -> None:
    name = f"{store.source}/second/name.json"
    listed = store.cas("ls", "--long", f"second:{name}").stdout.decode()
    assert f"second  {listed}" == store.cas("find", "-l", "second", "name.json").stdout.decode()
    fields = json.loads(store.cas("ls", "--json", f"second:{name}").stdout)
    hits = [
        json.loads(line) for line in store.cas("find", "--json", "name.json").stdout.splitlines()
    ]
    assert {"tier": "second", **fields} == hits[1]
    assert ("first", len(JSON)) == (hits[0]["tier"], hits[0]["size"])
    odd = json.loads(store.cas("find", "--json", "first", "latin*").stdout)
    assert "path_b64" in odd


def test_an_archive_that_cannot_be_looked_into_is_listed(store: Place, tmp_path: Path) -> None:
    copy = tmp_path / "store"
    shutil.copytree(store.store, copy)
    lines = store.cas("audit", "--json", f"first:{store.source}/first/all.tar.gz").stdout
    events: list[dict[str, Any]] = [json.loads(line) for line in lines.splitlines()]
    skeletons = [Digest(bytes.fromhex(one["chunk"])) for one in events if one.get("skeleton")]
    with wiring.writing(copy) as (opened, _):
        opened.index.commit(Changes(forgotten_chunks=skeletons))
    done = store.cas("find", "--store", copy, "*.json")
    assert 3 == done.returncode
    assert f"second:{store.source}/second/name.json\n" == done.stdout.decode()
    assert b"cannot be looked into" in done.stderr


def test_what_makes_no_sense_is_refused(store: Place) -> None:
    for words in (["["], ["--regex", "("], ["--size", "much"], ["--digest", "xyz"],
                  ["--kind", "nothing"]):  # fmt: skip
        done = store.cas("find", *words)
        assert (2, b"") == (done.returncode, done.stdout), words
        assert 1 == done.stderr.count(b"\n")
    for words in (["frist", "x"], ["--origin", "frist"]):
        done = store.cas("find", *words)
        assert (1, True) == (done.returncode, b"did you mean" in done.stderr)
