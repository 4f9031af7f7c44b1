"""A store with real damage: verify says where it is, repair and a sync mend it."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from cas.frame import Codec
from cas.interfaces import Changes
from cas.pack import HEADER_SIZE, RECORD_SIZE, read_record
from cas.verify.report import StoreReport
from cas.verify.store import repair_store, verify_store
from indexes.index import LmdbIndex
from tests.pull.world import World

MIB = 2**20


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """Two tiers that share a file, in one pack that is sealed and one that is open."""
    monkeypatch.setattr("cas.store.writer.PACK_TARGET", 4 * MIB)
    world = World(tmp_path, LmdbIndex(tmp_path / "index", create=True))
    rng = random.Random(1)
    words = [rng.randbytes(6).hex() for _ in range(3000)]
    for name in ("one", "two"):
        directory = world.source / name
        directory.mkdir()
        (directory / "text").write_text(name + " ".join(rng.choices(words, k=100_000)))
        for number in range(30):
            (directory / f"small{number:02}").write_text(" ".join(rng.choices(words, k=900)))
    for name in ("one", "two"):
        (world.source / name / "shared").write_bytes(random.Random(2).randbytes(3 * MIB))
    (world.source / "one" / "noise").write_bytes(rng.randbytes(8 * MIB))
    _sync(world)
    _sync(world)  # what was full and still open at the end of the first is sealed now
    (world.source / "three").mkdir()
    (world.source / "three" / "late").write_bytes(rng.randbytes(200_000))
    world.sync(world.tier("three", "three"))
    assert _sealed(world) != _open(world)
    return world


def _sync(world: World) -> None:
    names = [name for name in ("one", "two", "three") if (world.source / name).exists()]
    state = world.sync(*(world.tier(name, name) for name in names))
    assert all(tier.complete for tier in state.tiers)


def _verify(world: World) -> StoreReport:
    store = world.open()
    try:
        return verify_store(store, lambda _size, _packs: None)
    finally:
        store.reader.close()


def _repair(world: World, report: StoreReport) -> None:
    repair_store(world.open(), report)


def _affected(report: StoreReport, world: World) -> set[str]:
    """The files that the report calls damaged, by their paths below the source tree."""
    prefix = os.fsencode(world.source)[1:] + b"/"
    names = [problem.path for check in report.snapshots for problem in check.names]
    return {name.removeprefix(prefix).decode() for name in names}


def _sealed(world: World) -> Path:
    return next(p for p in world.layout.packs.iterdir() if not p.name.startswith("open-"))


def _open(world: World) -> Path:
    return next(p for p in world.layout.packs.iterdir() if p.name.startswith("open-"))


def _flip(path: Path, at: int) -> None:
    path.chmod(0o644)
    with path.open("r+b") as file:
        file.seek(at)
        byte = file.read(1)[0]
        file.seek(at)
        file.write(bytes([byte ^ 0x10]))


def _place(world: World, tier: str, name: str, chunk: int = 0) -> tuple[Path, int, int]:
    """Pack and record of a chunk of a file, and where its own bytes begin, or its segment's."""
    store = world.open()
    _, snapshot = store.latest(tier)
    path = os.fsencode(world.source / tier / name)[1:]
    entry = store.find(snapshot, path)
    assert entry is not None
    id_ = [id_ for id_, _ in store.chunks_of(entry)][chunk]
    location = world.index.locate(id_)
    assert location is not None
    place = dict(world.index.segments_of(location.frame))[location.segment]
    row = world.index.packs()[place.pack]
    start = location.offset if place.codec is Codec.PLAIN else 0
    return world.layout.packs / row.name, place.offset, place.payload_offset + start


def _is_mended(world: World) -> None:
    """After a sync everything is as if nothing had been."""
    _sync(world)
    report = _verify(world)
    assert [] == report.packs.damages
    assert not report.damaged
    assert not report.incomplete
    assert all(check.whole for check in report.snapshots)
    assert world.on_disk("one") == world.content("one")
    assert world.on_disk("two") == world.content("two")


def test_a_sound_store_is_called_sound(world: World) -> None:
    told = [0, 0]

    def progress(size: int, packs: int) -> None:
        told[0] += size
        told[1] += packs

    report = verify_store(world.open(), progress)
    assert not report.damaged
    assert not report.incomplete
    assert len(list(world.layout.packs.iterdir())) == report.packs.packs == told[1]
    assert report.packs.bytes == told[0] > 8 * MIB
    assert report.packs.chunks == sum(1 for _ in world.index.chunks())
    assert 0 == report.packs.unindexed == report.unlisted
    assert [33, 32, 1] == [check.files for check in report.snapshots]


def test_a_flipped_payload(world: World) -> None:
    pack, record, payload = _place(world, "one", "noise", 40)
    _flip(pack, payload + 12345)
    report = _verify(world)
    assert report.damaged
    assert {"one/noise"} == _affected(report, world)
    name, place = report.packs.damages
    assert (f"pack {pack.name}", 0) == (name.where, name.chunks)
    assert f"pack {pack.name}, offset {record}" == place.where
    assert place.chunks == len(report.packs.lost) > 0
    assert [(1, 0), (0, 0), (0, 0)] == [(c.damaged, c.missing) for c in report.snapshots]
    _repair(world, report)
    between = _verify(world)
    assert not between.packs.damages
    assert not between.damaged
    assert between.incomplete
    assert {"one/noise"} == _affected(between, world)
    _is_mended(world)


def test_a_flipped_payload_that_others_are_compressed_with(world: World) -> None:
    pack, record, payload = _place(world, "one", "text")
    _flip(pack, payload + 1000)
    report = _verify(world)
    assert report.snapshots[0].damaged > len(report.snapshots[0].names) == 20
    assert {"one/small00", "one/small19"} <= _affected(report, world)
    assert f"pack {pack.name}, offset {record}" in [d.where for d in report.packs.damages]
    assert len(report.packs.lost) == sum(damage.chunks for damage in report.packs.damages)
    _repair(world, report)
    _is_mended(world)


def test_a_shared_file_is_named_in_both_tiers(world: World) -> None:
    pack, _, payload = _place(world, "two", "shared", 3)
    _flip(pack, payload + 7)
    report = _verify(world)
    assert {"one/shared", "two/shared"} == _affected(report, world)
    _repair(world, report)
    _is_mended(world)


@pytest.mark.parametrize(("name", "lost"), [("noise", False), ("text", True)])
def test_a_flipped_table(world: World, name: str, lost: bool) -> None:
    """What is plain can be read without it, what is compressed is not decoded then."""
    pack, record, _ = _place(world, "one", name)
    _flip(pack, record + RECORD_SIZE + 20)
    report = _verify(world)
    assert report.damaged
    assert lost == bool(report.packs.lost) == bool(_affected(report, world))
    _repair(world, report)
    _is_mended(world)


def test_a_flipped_pack_header(world: World) -> None:
    pack = _sealed(world)
    _flip(pack, HEADER_SIZE - 1)
    report = _verify(world)
    assert [f"pack {pack.name}"] == [damage.where for damage in report.packs.damages]
    assert report.packs.lost
    _repair(world, report)
    _is_mended(world)


def test_a_flipped_seal_concerns_no_file(world: World) -> None:
    pack = _sealed(world)
    _flip(pack, pack.stat().st_size - 1)
    report = _verify(world)
    assert [f"pack {pack.name}"] == [damage.where for damage in report.packs.damages]
    assert set() == _affected(report, world)
    _repair(world, report)
    assert not _verify(world).damaged
    _is_mended(world)


@pytest.mark.parametrize("which", [_sealed, _open])
def test_a_truncated_pack(world: World, which: Callable[[World], Path]) -> None:
    pack = which(world)
    pack.chmod(0o644)
    os.truncate(pack, pack.stat().st_size // 2)
    report = _verify(world)
    assert report.damaged
    assert report.packs.lost
    _repair(world, report)
    _is_mended(world)


def test_a_deleted_pack(world: World) -> None:
    pack = _sealed(world)
    pack.unlink()
    report = _verify(world)
    (damage,) = report.packs.damages
    assert (f"pack {pack.name}", "this pack is missing") == (damage.where, damage.what)
    assert damage.chunks == len(report.packs.lost) > 20
    _repair(world, report)
    _is_mended(world)


def test_all_packs_deleted(world: World) -> None:
    for pack in world.layout.packs.iterdir():
        pack.unlink()
    report = _verify(world)
    assert all(check.pages_lost for check in report.snapshots)
    assert sum(1 for _ in world.index.chunks()) == len(report.packs.lost)
    _repair(world, report)
    assert [] == list(world.index.chunks())
    _is_mended(world)


def test_a_damaged_page(world: World) -> None:
    _, snapshot = world.open().latest("two")
    location = world.index.locate(snapshot.pages[0].id)
    assert location is not None
    place = dict(world.index.segments_of(location.frame))[location.segment]
    _flip(world.layout.packs / world.index.packs()[place.pack].name, place.payload_offset + 60)
    report = _verify(world)
    assert report.snapshots[1].pages_lost
    assert any("cannot be read" in problem.reason for problem in report.snapshots[1].names)
    _repair(world, report)
    _is_mended(world)


def _delete(path: Path) -> None:
    path.unlink()


def _flip_middle(path: Path) -> None:
    _flip(path, path.stat().st_size // 2)


@pytest.mark.parametrize("harm", [_delete, _flip_middle])
def test_a_lost_snapshot(world: World, harm: Callable[[Path], None]) -> None:
    row, _ = world.open().latest("one")
    harm(world.layout.snapshots / row.id.hex())
    report = _verify(world)
    assert report.damaged
    assert [True, False, False] == [check.lost for check in report.snapshots]
    _repair(world, report)
    assert ["two", "three"] == [row.tier for row in world.index.snapshots()]
    assert not _verify(world).damaged
    _is_mended(world)
    assert not any(tier.fetched for tier in world.state.tiers)


def test_rows_that_lie(world: World) -> None:
    """The index names a chunk where another one is."""
    rows = list(world.index.chunks())
    (one, at), (other, _) = rows[0], rows[1]
    world.index.commit(Changes(forgotten_chunks=[other], chunks=[(other, at)]))
    report = _verify(world)
    assert {other} == set(report.packs.lost)
    assert report.packs.lost[other] is not None
    _repair(world, report)
    assert rows == list(world.index.chunks())
    assert not _verify(world).damaged
    assert one != other


def test_records_that_the_index_lacks(world: World) -> None:
    pack = _open(world)
    fd = os.open(pack, os.O_RDONLY)
    record = read_record(lambda size, offset: os.pread(fd, size, offset), HEADER_SIZE)
    data = os.pread(fd, record.end - HEADER_SIZE, HEADER_SIZE)
    os.close(fd)
    with pack.open("ab") as file:
        file.write(data + data[:-5])  # a whole one, known by another place, and a torn one
    report = _verify(world)
    assert 1 == report.packs.unindexed
    assert not report.damaged


def test_what_never_came_is_missing_and_not_damaged(world: World) -> None:
    store = world.open()
    row, snapshot = store.latest("two")
    entry = store.find(snapshot, os.fsencode(world.source / "two" / "text")[1:])
    assert entry is not None
    some = [id_ for id_, _ in store.chunks_of(entry)][:2]
    incomplete = [type(row)(row.id, row.tier, row.finished_ms, complete=False)]
    world.index.commit(Changes(forgotten_chunks=some, snapshots=incomplete))
    report = _verify(world)
    assert not report.damaged
    assert report.incomplete
    assert [(0, 0), (0, 1), (0, 0)] == [(c.damaged, c.missing) for c in report.snapshots]
    _is_mended(world)


def test_what_only_an_old_snapshot_had_stays_lost_and_is_known_to_be(world: World) -> None:
    late = world.source / "three" / "late"
    old = late.read_bytes()
    late.write_bytes(os.urandom(100_000))
    _sync(world)
    pack = _sealed(world)
    for path in world.layout.packs.iterdir():
        at = path.read_bytes().find(old[:1000])
        if at > 0:
            pack = path
            _flip(path, at + 500)
    report = _verify(world)
    assert [f"pack {pack.name}"] == [d.where.split(",")[0] for d in report.packs.damages][:1]
    assert [0, 0, 1, 0] == [check.damaged for check in report.snapshots]
    _repair(world, report)
    after = _verify(world)
    assert not after.damaged
    assert not after.incomplete
    assert [True, True, False, True] == [check.whole for check in after.snapshots]


def test_a_promise_that_is_not_kept_is_damage(world: World) -> None:
    store = world.open()
    entry = store.find(store.latest("one")[1], os.fsencode(world.source / "one" / "noise")[1:])
    assert entry is not None
    some = [id_ for id_, _ in store.chunks_of(entry)][5:9]
    world.index.commit(Changes(forgotten_chunks=some))
    report = _verify(world)
    assert report.damaged
    _repair(world, report)
    assert not _verify(world).damaged
    _is_mended(world)
