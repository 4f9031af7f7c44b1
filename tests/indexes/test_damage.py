"""Damaged data files and full disks: a clear error, never a crash, and nothing is made worse.

What might crash runs in a child, whose exit code would be the signal.
"""

import os
import random
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from cas.errors import EXIT_DAMAGE, DamageError, StoreError
from cas.store.memory_index import MemoryIndex
from indexes.index import LmdbIndex
from tests.indexes.child import heard, running
from tests.indexes.disk import BLOCK, fill, small_disk
from tests.indexes.sample import batch, holds

PAGE = 4096
META = 2 * PAGE  # the pages that say where the tables begin


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """The data file of an index of three batches."""
    index = LmdbIndex(tmp_path, create=True)
    for number in range(3):
        index.commit(batch(number))
    index.close()
    return tmp_path / "data.mdb"


def walked(path: Path) -> str:
    """What a child says that uses all of the index; fails when it crashes."""
    with running("walk", path) as child:
        said = heard(child)
        assert child.wait() == 0
    return said


def test_a_sound_index_is_walked(data: Path) -> None:
    assert walked(data.parent) == "0"


@pytest.mark.parametrize(
    "bad",
    [
        lambda _: b"hello",
        lambda _: b"hello" * 10_000,
        lambda good: bytes(len(good)),
        lambda good: bytes(META) + good[META:],
        lambda good: good[:META] + bytes(len(good) - META),
        lambda good: good[:META] + b"\xff" * (len(good) - META),
        lambda good: good[:META],
    ],
    ids=["short", "text", "zeros", "no meta", "no tables", "ones", "cut to meta"],
)
def test_a_damaged_index_says_so_and_how_to_make_it_anew(data: Path, bad: object) -> None:
    assert callable(bad)
    data.write_bytes(bad(data.read_bytes()))
    said = walked(data.parent)
    assert said.startswith(f"{EXIT_DAMAGE} {data.parent}: the index is damaged")
    assert "cas repair --rebuild-index" in said


@pytest.mark.parametrize("seed", range(12))
def test_random_damage_is_an_error_or_is_not_met(data: Path, seed: int) -> None:
    chance = random.Random(seed)
    good = bytearray(data.read_bytes())
    for _ in range(1 + seed % 3):
        at = chance.randrange(META, len(good) - PAGE)
        size = chance.choice([1, 16, 2000])
        good[at : at + size] = chance.randbytes(size)
    data.write_bytes(good)
    assert walked(data.parent).partition(" ")[0] in ("0", str(EXIT_DAMAGE))


@pytest.mark.parametrize("part", [0.1, 0.3, 0.5, 0.7, 0.9, 0.99])
def test_a_cut_off_index_is_no_crash(data: Path, part: float) -> None:
    os.truncate(data, int(data.stat().st_size * part))
    assert walked(data.parent).partition(" ")[0] in ("0", str(EXIT_DAMAGE))


def test_data_of_another_lmdb_is_told_from_damage(data: Path) -> None:
    good = bytearray(data.read_bytes())
    for page in (0, PAGE):
        good[page + 20] ^= 0x08  # the version, after the page's header and the magic
    data.write_bytes(good)
    with pytest.raises(StoreError, match="another version of LMDB") as caught:
        LmdbIndex(data.parent)
    assert not isinstance(caught.value, DamageError)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 4 MiB."""
    with small_disk(tmp_path / "disk") as path:
        yield path


@pytest.mark.root
def test_a_full_disk_is_said_and_nothing_is_lost(disk: Path) -> None:
    ballast = disk / "ballast"
    index = LmdbIndex(disk / "index", create=True)
    index.commit(batch(0))
    fill(ballast)
    for number in (1, 2, 1):
        with pytest.raises(StoreError, match=r"index: the disk is full \(make room"):
            index.commit(batch(number, 5000))
        assert holds(index, 0)
        assert not holds(index, number, 5000)
    ballast.unlink()
    index.commit(batch(1, 5000))
    assert holds(index, 0)
    assert holds(index, 1, 5000)
    index.close()
    assert walked(disk / "index") == "0"


@pytest.mark.root
def test_a_full_disk_between_runs_lets_one_read(disk: Path) -> None:
    index = LmdbIndex(disk / "index", create=True)
    index.commit(batch(0))
    index.close()
    fill(disk / "ballast")
    for readonly in (True, False):
        index = LmdbIndex(disk / "index", readonly=readonly)
        assert holds(index, 0)
        index.close()


@pytest.mark.root
@pytest.mark.parametrize("lock", [True, False], ids=["with its lock", "copied without"])
def test_an_index_on_a_read_only_disk_can_be_read(disk: Path, lock: bool) -> None:
    index = LmdbIndex(disk / "index", create=True)
    index.commit(batch(0))
    index.close()
    if not lock:
        (disk / "index" / "lock.mdb").unlink()
    subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
    index = LmdbIndex(disk / "index", readonly=True)
    assert holds(index, 0)
    index.close()
    with pytest.raises(StoreError, match="Read-only file system"):
        LmdbIndex(disk / "index")


@pytest.mark.root
def test_no_index_is_begun_on_a_full_disk(disk: Path) -> None:
    (disk / "index").mkdir()
    fill(disk / "ballast")
    with running("make", disk / "index") as child:
        assert "the disk is full" in heard(child)
        assert child.wait() == 0
    (disk / "ballast").unlink()
    with running("make", disk / "index") as child:
        assert heard(child) == ""
        assert child.wait() == 0


@pytest.mark.root
def test_every_place_to_run_out_of_room_leaves_a_whole_index(disk: Path) -> None:
    """Fill the disk with one page more room each time, and go on using what is left."""
    ballast = disk / "ballast"
    index = LmdbIndex(disk / "index", create=True, map_size=2**17)
    memory = MemoryIndex()
    failures = []
    for number in range(60):
        fill(ballast)
        os.truncate(ballast, max(0, ballast.stat().st_size - number * BLOCK))
        try:
            index.commit(batch(number, 100))
        except StoreError as error:
            failures.append(error.what)
        else:
            memory.commit(batch(number, 100))
        assert list(memory.chunks()) == list(index.chunks())
        assert memory.snapshots() == index.snapshots()
        ballast.unlink()
    assert 0 < len(failures) < 60
    assert {"the disk is full"} == set(failures)
    index.close()
    assert walked(disk / "index") == "0"
