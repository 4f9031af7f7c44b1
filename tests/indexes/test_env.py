"""What LMDB must be told, and must not be let do: maps, readers, processes, versions."""

import threading
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path

import lmdb
import pytest

from cas.errors import DamageError, StoreError
from cas.interfaces import Changes
from indexes.index import LmdbIndex
from tests.indexes.child import SMALL, heard, running, tell
from tests.indexes.sample import batch, digest, holds


def filled(path: Path, *numbers: int) -> None:
    """Make an index that has these batches."""
    index = LmdbIndex(path, create=True)
    for number in numbers:
        index.commit(batch(number))
    index.close()


def map_size(index: LmdbIndex) -> int:
    return index._env.map_size


def test_a_full_map_grows(tmp_path: Path) -> None:
    index = LmdbIndex(tmp_path, create=True, map_size=SMALL)
    index.commit(batch(0, 50_000))
    for number in range(1, 5):
        index.commit(batch(number))
    assert holds(index, 0, 50_000)
    assert all(holds(index, number) for number in range(1, 5))
    assert map_size(index) > 50_000 * 60
    index.close()


def test_a_map_grows_to_its_limit_and_no_further(tmp_path: Path) -> None:
    index = LmdbIndex(tmp_path, create=True, map_size=SMALL, map_limit=8 * SMALL)
    index.commit(batch(0))
    with pytest.raises(StoreError, match="over its limit"):
        index.commit(batch(1, 50_000))
    assert 8 * SMALL == map_size(index)
    assert holds(index, 0)
    assert not holds(index, 1, 50_000)
    index.commit(batch(2))
    assert holds(index, 2)
    index.close()
    again = LmdbIndex(tmp_path)
    again.commit(batch(1, 50_000))
    assert holds(again, 1, 50_000)
    again.close()


def test_an_index_larger_than_the_first_map_opens(tmp_path: Path) -> None:
    filled(tmp_path, *range(20))
    index = LmdbIndex(tmp_path, map_size=SMALL)
    assert all(holds(index, number) for number in range(20))
    index.close()


def test_threads_read_and_write_while_the_map_grows(tmp_path: Path) -> None:
    index = LmdbIndex(tmp_path, create=True, map_size=SMALL)
    index.commit(batch(0))
    done = threading.Event()

    def write(first: int) -> None:
        for number in range(first, first + 20):
            index.commit(batch(number, 1000))

    def read() -> None:
        while not done.is_set():
            assert holds(index, 0)
            assert 400 <= sum(1 for _ in index.chunks())

    with ThreadPoolExecutor(4) as pool:
        readers = [pool.submit(read) for _ in range(2)]
        writers = [pool.submit(write, first) for first in (1, 21)]
        wait(writers)
        done.set()
    for task in (*readers, *writers):
        task.result()
    assert all(holds(index, number, 1000) for number in range(1, 41))
    index.close()


def test_another_process_reads_while_this_one_writes_and_grows_the_map(tmp_path: Path) -> None:
    index = LmdbIndex(tmp_path, create=True, map_size=SMALL)
    with running("read", tmp_path) as reader:
        assert heard(reader) == "ready"
        for number in range(30):
            tell(reader, str(number))
            assert heard(reader) == "False"
            index.commit(batch(number))
            tell(reader, str(number))
            assert heard(reader) == "True"
    assert map_size(index) > SMALL
    index.close()


def test_a_writer_takes_over_a_map_that_another_process_has_grown(tmp_path: Path) -> None:
    index = LmdbIndex(tmp_path, create=True, map_size=SMALL)
    before = map_size(index)
    with running("write", tmp_path) as writer:
        while heard(writer) != "20":
            pass
        writer.kill()
        writer.wait()
    index.commit(batch(1000))
    assert all(holds(index, number) for number in (*range(21), 1000))
    assert map_size(index) > before
    index.close()


def test_the_place_of_a_killed_reader_is_cleared(tmp_path: Path) -> None:
    filled(tmp_path, 0)
    # While nobody has it open, LMDB begins a new table of readers by itself.
    with running("read", tmp_path) as other, running("stay", tmp_path) as reader:
        assert heard(other) == "ready"
        assert heard(reader) == "ready"
        reader.kill()
        reader.wait()
        with running("readers", tmp_path) as asked:
            assert str(reader.pid) in heard(asked).split()
        LmdbIndex(tmp_path).close()
        with running("readers", tmp_path) as asked:
            assert str(reader.pid) not in heard(asked).split()


def test_a_reader_does_not_write(tmp_path: Path) -> None:
    filled(tmp_path, 0)
    index = LmdbIndex(tmp_path, readonly=True)
    with pytest.raises(StoreError):
        index.commit(batch(1))
    assert holds(index, 0)
    index.close()


def test_a_second_opening_in_one_process_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "index"
    (tmp_path / "link").symlink_to(path)
    index = LmdbIndex(path, create=True)
    for other in (path, tmp_path / "link"):
        with pytest.raises(StoreError, match="open in this process"):
            LmdbIndex(other)
    index.commit(batch(0))
    index.close()
    index.close()
    again = LmdbIndex(tmp_path / "link")
    assert holds(again, 0)
    again.close()


def test_an_index_is_not_used_after_a_fork(tmp_path: Path) -> None:
    filled(tmp_path)
    with running("fork", tmp_path) as child:
        assert "before a fork" in heard(child)
        assert "before a fork" in heard(child)
        assert heard(child) == ""
        assert child.wait() == 0


def test_a_closed_index_says_so(tmp_path: Path) -> None:
    index = LmdbIndex(tmp_path, create=True)
    rows = index.chunks()
    index.close()
    for use in (lambda: index.held([digest(1)]), lambda: index.commit(batch(1)), lambda: [*rows]):
        with pytest.raises(StoreError, match="closed"):
            use()


@pytest.mark.parametrize("left", ["nothing", "directory", "empty file", "no tables"])
def test_a_lost_index_is_not_taken_for_an_empty_one(tmp_path: Path, left: str) -> None:
    path = tmp_path / "index"
    if left != "nothing":
        path.mkdir()
    if left == "empty file":
        (path / "data.mdb").touch()
    if left == "no tables":
        lmdb.open(str(path)).close()
    for readonly in (False, True):
        with pytest.raises(DamageError, match=r"missing.*rebuild-index"):
            LmdbIndex(path, readonly=readonly)
    LmdbIndex(path, create=True).close()
    LmdbIndex(path).close()


@pytest.mark.parametrize(("schema", "said"), [(2, "newer cas"), (0, "older version")])
def test_another_schema_is_refused_and_left_alone(tmp_path: Path, schema: int, said: str) -> None:
    filled(tmp_path, 0)
    with lmdb.open(str(tmp_path), max_dbs=8) as env, env.begin(write=True) as txn:
        was = txn.replace(b"schema", schema.to_bytes(4, "little"), db=env.open_db(b"meta", txn))
    for create, readonly in ((False, False), (True, False), (False, True)):
        with pytest.raises(StoreError, match=said):
            LmdbIndex(tmp_path, create=create, readonly=readonly)
    with lmdb.open(str(tmp_path), max_dbs=8) as env, env.begin(write=True) as txn:
        txn.put(b"schema", was or b"", db=env.open_db(b"meta", txn))
    index = LmdbIndex(tmp_path)
    assert holds(index, 0)
    index.close()


def test_a_path_that_cannot_be_used_says_why(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(StoreError, match="file"):
        LmdbIndex(tmp_path / "file", create=True)
    with pytest.raises(StoreError, match="Not a directory"):
        LmdbIndex(tmp_path / "file" / "index", create=True)


def test_more_than_a_value_can_hold_changes_nothing(tmp_path: Path) -> None:
    index = LmdbIndex(tmp_path, create=True)
    too_high = Changes(
        recipes=[(digest(1), (digest(2),))],
        packs=[(2**32, next(iter(batch(1).packs))[1])],
    )
    with pytest.raises(Exception, match="format requires"):
        index.commit(too_high)
    assert index.recipes_of(digest(1)) is None
    index.close()
