"""The agent's scan cache, in memory and over LMDB, and what may happen to one on a disk."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cas.errors import StoreError
from cas.interfaces import CachedFile, ScanCache
from cas.store.memory_index import MemoryScanCache
from indexes.scancache import LmdbScanCache, open_scan_cache
from tests.indexes.child import heard, page, running
from tests.indexes.disk import fill, small_disk
from tests.indexes.sample import digest

Open = Callable[[int], ScanCache]
LIMIT = 2**20
LONG = b"/".join([b"d" * 40] * 25)


@pytest.fixture(params=["memory", "lmdb"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Open:
    """Makes a cache of a limit."""
    if request.param == "memory":
        return MemoryScanCache
    return lambda limit: LmdbScanCache(tmp_path / "cache", limit=limit)


@pytest.fixture
def cache(opened: Open) -> Iterator[ScanCache]:
    found = opened(LIMIT)
    yield found
    found.close()


def test_an_empty_cache_has_nothing(cache: ScanCache) -> None:
    assert cache.page(b"scope", b"first") is None
    assert [] == cache.files([])
    assert [None, None] == cache.files([b"", b"a"])
    assert cache.recipe(digest(1)) is None


def test_what_was_put_is_there(cache: ScanCache) -> None:
    one, other, empty = CachedFile(b"s1", b"entry 1"), CachedFile(b"s2", b""), CachedFile(b"", b"")
    cache.put(
        pages=[(b"a", b"first", b"page 1"), (b"b", b"first", b"page 2"), (b"a", b"", b"")],
        files=[(b"x", one), (b"x/y", other), (b"", empty)],
        recipes=[(digest(1), b"recipe"), (digest(2), b"")],
    )
    assert cache.page(b"a", b"first") == b"page 1"
    assert cache.page(b"b", b"first") == b"page 2"
    assert cache.page(b"a", b"") == b""
    assert cache.page(b"c", b"first") is None
    assert [other, None, empty, one] == cache.files([b"x/y", b"y", b"", b"x"])
    assert cache.recipe(digest(1)) == b"recipe"
    assert cache.recipe(digest(2)) == b""
    cache.put()
    assert cache.page(b"a", b"first") == b"page 1"


def test_what_was_put_last_stays(cache: ScanCache) -> None:
    for n in range(3):
        cache.put(
            pages=[(b"a", b"first", b"page %d" % n)],
            files=[(b"x", CachedFile(b"%d" % n, b"entry"))],
        )
    assert cache.page(b"a", b"first") == b"page 2"
    assert [CachedFile(b"2", b"entry")] == cache.files([b"x"])


def test_long_paths_and_scopes_are_told_apart(cache: ScanCache) -> None:
    paths = [
        LONG[:size] + end for size in (400, 478, 494, 495, 510, 511, 1000) for end in b"xyz".split()
    ]
    paths = [*dict.fromkeys(paths), LONG, LONG + b"a"]
    cache.put(
        pages=[(LONG + b"s", path, b"p" + path) for path in paths],
        files=[(path, CachedFile(b"s", path)) for path in paths],
    )
    assert [b"p" + path for path in paths] == [cache.page(LONG + b"s", path) for path in paths]
    assert [CachedFile(b"s", path) for path in paths] == cache.files(paths)
    assert cache.page(LONG + b"t", paths[0]) is None


def test_past_its_limit_a_cache_begins_anew(cache: ScanCache) -> None:
    value = bytes(20_000)
    for n in range(400):
        cache.put(pages=[(b"a", b"%d" % n, value)])
        assert value == cache.page(b"a", b"%d" % n)
    remembered = sum(cache.page(b"a", b"%d" % n) is not None for n in range(400))
    assert 0 < remembered < 2 * LIMIT / 20_000


def test_a_cache_on_disk_keeps_to_its_limit_and_outlives_its_process(tmp_path: Path) -> None:
    cache = LmdbScanCache(tmp_path, limit=LIMIT)
    for n in range(400):
        cache.put(recipes=[(digest(n), bytes(20_000))])
    size = sum(path.stat().st_size for path in tmp_path.rglob("*") if path.is_file())
    assert size < 2 * LIMIT
    cache.close()
    again = LmdbScanCache(tmp_path, limit=LIMIT)
    assert again.recipe(digest(399)) == bytes(20_000)
    again.close()


def test_what_was_put_survives_a_kill(tmp_path: Path) -> None:
    number = 0
    for acknowledged in (5, 20, 40):
        with running("remember", tmp_path, number) as child:
            while number < acknowledged:
                assert str(number) == heard(child)
                number += 1
            child.kill()
            child.wait()
        cache = LmdbScanCache(tmp_path)
        assert [page(n) for n in range(number)] == [
            cache.page(b"scope", b"%d" % n) for n in range(number)
        ]
        cache.close()


def test_two_processes_and_some_threads_use_one_cache(tmp_path: Path) -> None:
    cache = LmdbScanCache(tmp_path)

    def put(first: int) -> None:
        for n in range(first, first + 50):
            cache.put(files=[(b"%d" % n, CachedFile(b"s", b"%d" % n))])

    with running("remember", tmp_path, 0) as child, running("remember", tmp_path, 10_000) as other:
        assert heard(child) == "0"
        threads = [threading.Thread(target=put, args=(first,)) for first in (0, 50)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        while heard(child) != "50":
            pass
        while heard(other) != "10050":
            pass
    assert [CachedFile(b"s", b"%d" % n) for n in range(100)] == cache.files(
        [b"%d" % n for n in range(100)]
    )
    for n in (*range(51), *range(10_000, 10_051)):
        assert page(n) == cache.page(b"scope", b"%d" % n)
    cache.close()


@pytest.mark.parametrize("bad", [b"hello" * 5000, bytes(50_000), b"\xff" * 50_000])
def test_a_damaged_cache_is_begun_anew(tmp_path: Path, bad: bytes) -> None:
    cache = LmdbScanCache(tmp_path)
    cache.put(recipes=[(digest(1), b"recipe")])
    cache.close()
    next(tmp_path.rglob("data.mdb")).write_bytes(bad)
    again = LmdbScanCache(tmp_path)
    assert again.recipe(digest(1)) is None
    again.put(recipes=[(digest(1), b"recipe")])
    assert again.recipe(digest(1)) == b"recipe"
    again.close()


@pytest.mark.parametrize("first", ["page", "files", "recipe", "put"])
def test_damage_that_is_met_later_begins_the_cache_anew(tmp_path: Path, first: str) -> None:
    cache = LmdbScanCache(tmp_path)
    row = CachedFile(b"s", b"e")
    everything = {
        "pages": [(b"a", b"%d" % n, b"page") for n in range(100)],
        "files": [(b"%d" % n, row) for n in range(100)],
        "recipes": [(digest(n), b"recipe") for n in range(100)],
    }
    cache.put(**everything)  # type: ignore[arg-type]  # each by its name
    data = next(tmp_path.rglob("data.mdb"))
    with data.open("r+b") as file:
        file.seek(2 * 4096)
        file.write(b"\xff" * (data.stat().st_size - 2 * 4096))
    if first == "page":
        assert cache.page(b"a", b"1") is None
    elif first == "files":
        assert [None, None] == cache.files([b"1", b"2"])
    elif first == "recipe":
        assert cache.recipe(digest(1)) is None
    cache.put(**everything)  # type: ignore[arg-type]  # each by its name
    assert cache.page(b"a", b"1") == b"page"
    assert [row] == cache.files([b"1"])
    assert cache.recipe(digest(1)) == b"recipe"
    cache.close()


def test_a_cache_dropped_by_another_is_still_usable(tmp_path: Path) -> None:
    with running("remember", tmp_path, 0) as child:
        assert heard(child) == "0"
        small = LmdbScanCache(tmp_path, limit=2**15)  # over its limit already, or soon
        for n in range(50):
            small.put(recipes=[(digest(n), bytes(2000))])
        for n in range(1, 50):
            assert str(n) == heard(child)
    assert small.recipe(digest(49)) == bytes(2000)
    small.close()


def test_where_no_cache_can_be_kept_it_is_kept_in_memory(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    def refuse(path: Path) -> None:
        raise StoreError("a network file system", where=str(path))

    for directory, check in (
        (tmp_path / "file", lambda _: None),
        (tmp_path / "file" / "below", lambda _: None),
        (Path("/proc/nowhere"), lambda _: None),
        (tmp_path / "network", refuse),
    ):
        cache = open_scan_cache(directory, check=check, memory=MemoryScanCache)
        assert isinstance(cache, MemoryScanCache)
        assert not (tmp_path / "network").exists()


def test_where_a_cache_can_be_kept_it_is_on_disk(tmp_path: Path) -> None:
    cache = open_scan_cache(tmp_path / "a" / "b", check=lambda _: None, memory=MemoryScanCache)
    cache.put(recipes=[(digest(1), b"recipe")])
    cache.close()
    again = open_scan_cache(tmp_path / "a" / "b", check=lambda _: None, memory=MemoryScanCache)
    assert again.recipe(digest(1)) == b"recipe"
    again.close()
    again.close()
    assert again.recipe(digest(1)) is None
    with pytest.raises(StoreError, match="any more"):
        again.put(recipes=[(digest(1), b"recipe")])


@pytest.mark.root
def test_on_a_full_disk_the_cache_keeps_what_it_has(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk") as disk:
        cache = LmdbScanCache(disk / "cache")
        cache.put(recipes=[(digest(1), b"recipe")])
        fill(disk / "ballast")
        with pytest.raises(StoreError, match="the disk is full"):
            cache.put(recipes=[(digest(2), bytes(100_000))])
        assert cache.recipe(digest(1)) == b"recipe"
        assert cache.recipe(digest(2)) is None
        (disk / "ballast").unlink()
        cache.put(recipes=[(digest(2), bytes(100_000))])
        assert cache.recipe(digest(2)) == bytes(100_000)
        cache.close()
