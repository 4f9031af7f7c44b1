"""The chunks of a tier: all of them, in order, by the names that origins use, whatever is held."""

from __future__ import annotations

import random
import tarfile
from pathlib import Path

import pytest

from cas.errors import DamageError
from cas.interfaces import Changes
from cas.pack import Record, read_records
from cas.redundancy.chunks import Part, tier_chunks
from cas.store.layout import Layout
from cas.store.memory_index import MemoryIndex
from cas.store.store import Store
from tests.pull.world import World
from tests.redundancy.made import MadeStore, chunk_id, copy_scans


@pytest.fixture
def world(tmp_path: Path) -> World:
    """A tier with files of no, of one and of many chunks, and the archive of some of them."""
    world = World(tmp_path)
    tree = world.source / "tree"
    tree.mkdir()
    rng = random.Random(7)
    (tree / "empty").touch()
    (tree / "small").write_bytes(rng.randbytes(3000))
    (tree / "large").write_bytes(rng.randbytes(900_000))
    (tree / "again").write_bytes((tree / "large").read_bytes())
    with tarfile.open(tree / "both.tar.gz", "w:gz") as archive:
        for name in ("small", "large"):
            archive.add(tree / name, name)
    world.sync(world.tier("tree", "tree"))
    return world


def _records(path: Path) -> list[Record]:
    data = path.read_bytes()
    return list(read_records(lambda size, at: data[at : at + size], len(data)))


def _parts(store: Store) -> list[Part]:
    return list(tier_chunks(store, store.latest("tree")[1]))


def _by_name(parts: list[Part]) -> dict[bytes, Part]:
    return {part.entry.path.rpartition(b"/")[2]: part for part in parts}


def test_chunks_make_the_files(world: World) -> None:
    store = world.open()
    held = {path.rpartition(b"/")[2]: data for path, data in world.content("tree").items()}
    for name, part in _by_name(_parts(store)).items():
        if name != b"both.tar.gz":
            assert held[name] == b"".join(map(store.reader.chunk, part.ids))
        assert [len(store.reader.chunk(id_)) for id_ in part.ids] == list(part.lengths)


def test_an_archives_chunks_are_those_of_what_is_in_it(world: World) -> None:
    parts = _by_name(_parts(world.open()))
    archive = parts[b"both.tar.gz"]
    assert archive.skeleton > 0
    assert archive.ids[archive.skeleton :] == parts[b"small"].ids + parts[b"large"].ids
    assert b"empty" not in parts


def test_chunks_are_named_as_origins_name_them(world: World) -> None:
    named = {
        (part.page, part.first + at): id_
        for part in _parts(world.open())
        for at, id_ in enumerate(part.ids)
    }
    seen = 0
    for path in world.layout.packs.iterdir():
        for record in _records(path):
            if record.segment is not None and not record.segment.meta:
                places = [
                    (run.page, run.first + at)
                    for run in record.segment.origin.runs
                    for at in range(run.count)
                ]
                assert list(record.segment.ids) == [named[place] for place in places]
                seen += len(places)
    assert seen == len(set(named.values()))


def test_a_tier_that_was_only_scanned_has_the_same(world: World, tmp_path: Path) -> None:
    layout, index = Layout(tmp_path / "scanned"), MemoryIndex()
    layout.create()
    copy_scans(world.open(), layout, index)
    scanned = Store(layout.root, index)
    assert _parts(world.open()) == _parts(scanned)
    assert scanned.held(scanned.latest("tree")[1]).missing > 0


def test_a_file_whose_recipe_is_lost_is_one_chunk_that_is_not_known(tmp_path: Path) -> None:
    made = MadeStore(tmp_path / "made")
    made.tier("tree", {"a": [(1, 10)], "b": [(2, 20), (3, 30)], "c": [(4, 40)]})
    store = made.open()
    part = _by_name(_parts(store))[b"b"]
    assert part.is_known
    made.index.commit(Changes(forgotten_chunks=list(part.content.parts)))
    found = _by_name(_parts(made.open()))
    assert ((part.content.digest,), (50,)) == (found[b"b"].ids, found[b"b"].lengths)
    assert not found[b"b"].is_known
    assert (3, (chunk_id(4),)) == (found[b"c"].first, found[b"c"].ids)


def test_a_recipe_that_is_damaged_is_told(tmp_path: Path) -> None:
    made = MadeStore(tmp_path / "made")
    made.tier("tree", {"a": [(1, 10), (2, 20)], "b": [(3, 30), (4, 40)]})
    store = made.open()
    one, other = (part.content.parts[0] for part in _parts(store))
    place = store.index.locate(other)
    assert place is not None
    swapped = Changes(forgotten_chunks=[one], chunks=[(one, place)])
    made.index.commit(swapped)
    with pytest.raises(DamageError, match=one.hex()):
        _parts(made.open())
