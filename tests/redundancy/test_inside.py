"""Members of archives as files of their own, and that nothing is lost or counted twice by it."""

from __future__ import annotations

import random
import tarfile
from pathlib import Path

import pytest

from cas.interfaces import Changes
from cas.redundancy.count import count
from cas.redundancy.inside import Inside
from cas.redundancy.places import find_places
from cas.redundancy.tally import ARCHIVE, FILE, REST, Count
from cas.store.store import Store
from tests.pull.world import World

NAMES = ["plain", "packed"]


@pytest.fixture
def world(tmp_path: Path) -> World:
    """A tree, and an archive of it with an archive of a part of it inside."""
    world = World(tmp_path)
    rng = random.Random(9)
    for name in ("sub/b.so", "sub/c.c", "a.txt"):
        path = world.source / "plain" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(rng.randbytes(150_000 if name == "sub/b.so" else 9000))
    (world.source / "packed").mkdir()
    inner = world.source / "inner.tar"
    with tarfile.open(inner, "w") as archive:
        archive.add(world.source / "plain" / "sub", "sub")
    with tarfile.open(world.source / "packed" / "all.tgz", "w:gz") as archive:
        archive.add(world.source / "plain", "plain")
        archive.add(inner, "inner.tar")
    inner.unlink()
    world.sync(*(world.tier(name, name) for name in NAMES))
    return world


def _count(store: Store, inside: Inside | None) -> Count:
    return count(store, [store.latest(name)[1] for name in NAMES], inside=inside, at_once=7)


def _names(counted: Count, prefix: bytes) -> dict[bytes, tuple[int, int, int]]:
    rows = zip(counted.paths, counted.sorts, counted.unpacked, counted.repeated, strict=True)
    return {path.partition(prefix)[2]: tuple(row) for path, *row in rows}  # type: ignore[misc]


def test_members_are_files(world: World) -> None:
    counted = _count(world.open(), Inside(world.open()))
    rows = _names(counted, b"/packed/all.tgz!/")
    assert (FILE, 150_000, 150_000) == rows[b"plain/sub/b.so"] == rows[b"inner.tar!/sub/b.so"]
    assert (FILE, 9000, 9000) == rows[b"plain/a.txt"]
    assert [3, 6] == [tier.rows for tier in counted.tiers]
    assert [3, 1] == [tier.files for tier in counted.tiers]
    rest = [row for row in rows.values() if row[0] == REST]
    assert 1 == len(rest)
    assert 0 < rest[0][1] < 100_000


def test_sums_are_the_same_as_from_outside(world: World) -> None:
    store = world.open()
    outside, inside = _count(store, None), _count(store, Inside(store))
    assert outside.by_set() == inside.by_set()
    assert sum(outside.unpacked) == sum(inside.unpacked)
    assert sum(outside.repeated) == sum(inside.repeated)
    assert sum(outside.shared) == sum(inside.shared)
    of_archive = [find_places(each, most=9).archives for each in (outside, inside)]
    fields = [(p.name, p.unpacked, p.repeated, p.shared, p.partners) for [p] in of_archive]
    assert fields[0] == fields[1]


def test_kinds_and_directories_are_those_of_members(world: World) -> None:
    store = world.open()
    places = find_places(_count(store, Inside(store)), most=9)
    kinds = {kind.name: kind.repeated for kind in places.kinds}
    assert 300_000 == kinds[b"so"]
    assert {b"plain/sub/b.so"} <= {p.name.partition(b"/source/")[2] for p in places.files}
    outside = find_places(_count(store, None), most=9)
    assert [b"tgz"] == [kind.name for kind in outside.kinds]


def test_without_headers_an_archive_is_one_file(world: World) -> None:
    store = world.open()
    _, snapshot = store.latest("packed")
    entry = next(entry for entry in store.entries(snapshot) if entry.path.endswith(b".tgz"))
    assert entry.content is not None
    recipe = store.recipe(entry.content.parts[0])
    world.index.commit(Changes(forgotten_chunks=list(recipe.ids)))
    store = world.open()
    inside = Inside(store)
    counted = _count(store, inside)
    assert 1 == inside.closed
    assert ARCHIVE == counted.sorts[-1]
    assert counted.by_set() == _count(store, None).by_set()
