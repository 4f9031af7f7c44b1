import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import TypeVar, cast

import pytest

from cas._native import Status
from cas.agent.memory import is_settled
from cas.agent.roots import RootGuard
from cas.agent.scan import Scanner
from cas.agent.spool import Spool
from cas.chunker import MAX_SIZE
from cas.entry import UNREADABLE
from cas.errors import SourceError, StoreError
from cas.ids import Digest, digest_of
from cas.ignore import Matcher
from cas.interfaces import CachedFile, ScanCache
from cas.page import Paginator, decode_page, encode_page
from cas.store.memory_index import MemoryScanCache
from indexes.scancache import LmdbScanCache
from tests.agent.trees import (
    Scanned,
    another_user,
    later,
    name_of,
    public_directory,
    rebuilt,
    scan,
)


def fill(top: Path, count: int, *, below: int = 50) -> None:
    for number in range(count):
        directory = top / f"d{number // below:04d}"
        if number % below == 0:
            directory.mkdir(parents=True)
        (directory / f"file-{number:06d}").write_bytes(b"%d\n" % number * (number % 7))


def ids(done: Scanned) -> list[Digest]:
    return [page.id for page in done.pages]


def test_a_scan_gives_what_is_there(tmp_path: Path) -> None:
    data = random.Random(1).randbytes(1_000_000)
    (tmp_path / "large").write_bytes(data)
    (tmp_path / "small").write_bytes(b"small")
    (tmp_path / "empty").touch()
    (tmp_path / "d/e").mkdir(parents=True)
    done = scan(tmp_path)
    found = done.below(tmp_path)
    assert [b"d", b"d/e", b"empty", b"large", b"small"] == list(found)
    assert [] == done.problems
    contents = [entry.content for entry in done.entries if entry.content]
    assert 1_000_005 == sum(page.logical for page in done.pages)
    chunks = sum(page.chunks for page in done.pages)
    assert sum(content.chunk_count for content in contents) == chunks
    for page in done.pages:
        entries = decode_page(page.encoded)
        assert (len(entries), entries[0].path) == (page.entries, page.first)
        assert encode_page(entries) == page.encoded
    large = found[b"large"].content
    assert large is not None
    assert digest_of(data) == large.digest
    assert data == rebuilt(large, done.objects, data)
    progress = done.progress
    assert (len(done.entries), 3, 1_000_005) == (progress.names, progress.files_read, progress.read)


@pytest.fixture(scope="module")
def forest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """20,000 small files."""
    top = tmp_path_factory.mktemp("forest")
    fill(top, 20_000)
    return top


@pytest.mark.parametrize("kind", ["memory", "lmdb"])
def test_a_second_scan_reads_nothing_and_gives_the_same(
    forest: Path, tmp_path: Path, kind: str
) -> None:
    cache: ScanCache = MemoryScanCache() if kind == "memory" else LmdbScanCache(tmp_path)
    first = scan(forest, cache=cache)
    assert 20_000 == first.progress.files_read
    assert len(first.pages) > 10
    second = scan(forest, cache=cache)
    assert (0, 0) == (second.progress.files_read, second.progress.read)
    assert first.progress.names == second.progress.names
    assert ids(first) == ids(second)
    assert first.pages == second.pages
    cache.close()


def test_pages_end_where_the_entries_say(forest: Path) -> None:
    done = scan(forest)
    for page in [page.encoded for page in done.pages[:-1]]:
        entries = decode_page(page)
        paginator = Paginator()
        ends = [paginator.ends_after(entry) for entry in entries]
        assert [*[False] * (len(entries) - 1), True] == ends


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    top = tmp_path / "tree"
    fill(top, 2000)
    return top


def touch_content(path: Path) -> None:
    """Other content of the same size, with the same time of modification."""
    before = path.stat()
    path.write_bytes(bytes(reversed(path.read_bytes())) or b"")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def remove(*trees: Path) -> None:
    for tree in trees:
        shutil.rmtree(tree)


def replace_by_link(path: Path) -> None:
    path.unlink()
    path.symlink_to("x")


CHANGES: dict[str, Callable[[Path], object]] = {
    "nothing": Path.stat,
    "a file is new": lambda top: (top / "d0003/new").write_bytes(b"new"),
    "the first file is new": lambda top: (top / "a").write_bytes(b"new"),
    "the last file is new": lambda top: (top / "z").write_bytes(b"new"),
    "a file has gone": lambda top: (top / "d0011/file-000555").unlink(),
    "the last files have gone": lambda top: remove(top / "d0039"),
    "a directory has gone": lambda top: remove(top / "d0007"),
    "only one directory is left": lambda top: remove(*sorted(top.iterdir())[1:]),
    "a file has other bytes": lambda top: touch_content(top / "d0020/file-001004"),
    "a file has another mode": lambda top: (top / "d0021/file-001050").chmod(0o600),
    "a file has an attribute": lambda top: os.setxattr(
        top / "d0022/file-001100", "user.cas.test", b"x"
    ),
    "a directory has another time": lambda top: os.utime(top / "d0023", (1, 1)),
    "a file has become a link": lambda top: replace_by_link(top / "d0024/file-001200"),
    "a file has another name too": lambda top: (top / "other").hardlink_to(
        top / "d0025/file-001250"
    ),
}


@pytest.mark.parametrize("what", CHANGES)
def test_pages_do_not_depend_on_what_the_cache_has(tree: Path, what: str) -> None:
    cache = MemoryScanCache()
    scan(tree, cache=cache)
    CHANGES[what](tree)
    with_cache = scan(tree, cache=cache)
    fresh = scan(tree)
    assert fresh.pages == with_cache.pages
    assert fresh.problems == with_cache.problems == []
    assert with_cache.progress.files_read <= 1


def test_the_same_size_and_time_do_not_hide_a_change(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"before")
    cache = MemoryScanCache()
    scan(tmp_path, cache=cache)
    old = (tmp_path / "x").stat()
    (tmp_path / "x").write_bytes(b"after.")
    os.utime(tmp_path / "x", ns=(old.st_atime_ns, old.st_mtime_ns))
    content = scan(tmp_path, cache=cache).below(tmp_path)[b"x"].content
    assert content is not None
    assert digest_of(b"after.") == content.digest


def test_what_was_modified_just_now_is_read_again(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"x")
    a_second_later = (tmp_path / "x").stat().st_ctime_ns + 10**9
    cache = MemoryScanCache()
    scan(tmp_path, cache=cache, clock=lambda: a_second_later)
    again = scan(tmp_path, cache=cache, clock=later)
    assert 1 == again.progress.files_read
    assert 0 == scan(tmp_path, cache=cache, clock=later).progress.files_read


@pytest.mark.parametrize(
    ("ctime", "mtime", "expected"),
    [
        (-10, -10, True),
        (-1, -10, False),
        (-10, -1, False),
        (10, -10, False),  # a clock that is ahead of ours
        (-10, 100, True),  # set to anything by touch
        (-10, 1, False),
    ],
)
def test_settled(ctime: int, mtime: int, expected: bool) -> None:
    now = 2_000_000_000 * 10**9
    status = SimpleNamespace(st_mtime_ns=now + mtime * 10**9, st_ctime_ns=now + ctime * 10**9)
    assert expected == is_settled(cast(Status, status), now)


def test_a_file_that_changes_is_read_again_next_time(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"x" * 100)
    cache = MemoryScanCache()

    def busy_clock() -> int:
        with (tmp_path / "x").open("ab") as file:
            file.write(b"x")
        return later()

    scan(tmp_path, cache=cache, clock=busy_clock)
    assert 1 == scan(tmp_path, cache=cache).progress.files_read


def test_large_files_are_not_read_again_and_their_recipes_are_there(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(random.Random(1).randbytes(5 * MAX_SIZE))
    cache = MemoryScanCache()
    first = scan(tmp_path, cache=cache)
    second = scan(tmp_path, cache=cache)
    assert 0 == second.progress.files_read
    assert first.objects == second.objects
    (tmp_path / "y").touch()  # the page is made anew, the file is not read
    third = scan(tmp_path, cache=cache)
    assert 1 == third.progress.files_read
    assert set(first.objects) - set(ids(first)) <= set(third.objects)


Call = TypeVar("Call", bound=Callable[..., object])


class Forgetful(MemoryScanCache):
    """A cache that has lost its recipes, as it may, or has others in their place."""

    def __init__(self, instead: bytes | None) -> None:
        super().__init__()
        self._instead = instead

    def recipe(self, recipe_id: Digest) -> bytes | None:
        return self._instead


@pytest.mark.parametrize("instead", [None, b"", b"CASr"])
def test_a_file_whose_recipe_is_lost_is_read_again(tmp_path: Path, instead: bytes | None) -> None:
    (tmp_path / "x").write_bytes(random.Random(1).randbytes(5 * MAX_SIZE))
    cache = Forgetful(instead)
    first = scan(tmp_path, cache=cache)
    second = scan(tmp_path, cache=cache)
    assert 1 == second.progress.files_read
    assert first.objects == second.objects


class Rotten(MemoryScanCache):
    """A cache whose values are not those that were put."""

    def page(self, scope: bytes, first: bytes) -> bytes | None:
        return _spoilt(super().page(scope, first))

    def files(self, paths: Sequence[bytes]) -> list[CachedFile | None]:
        rows = super().files(paths)
        return [row and CachedFile(row.stat, _spoilt(row.entry) or b"") for row in rows]

    def recipe(self, recipe_id: Digest) -> bytes | None:
        return _spoilt(super().recipe(recipe_id))


def _spoilt(value: bytes | None) -> bytes | None:
    return value and value[:-1] + bytes([value[-1] ^ 1])


def test_a_rotten_cache_does_no_harm(tree: Path) -> None:
    (tree / "large").write_bytes(random.Random(1).randbytes(5 * MAX_SIZE))
    cache = Rotten()
    first = scan(tree, cache=cache)
    second = scan(tree, cache=cache)
    assert first.pages == second.pages
    assert first.objects == second.objects


class Failing:
    """A cache that fails at the n-th call."""

    def __init__(self, calls: int) -> None:
        self.calls = calls
        self._cache = MemoryScanCache()
        self.files = self._counted(self._cache.files)
        self.page = self._counted(self._cache.page)
        self.recipe = self._counted(self._cache.recipe)
        self.put = self._counted(self._cache.put)
        self.close = self._cache.close

    def _counted(self, call: Call) -> Call:
        def counted(*arguments: object, **named: object) -> object:
            self.calls -= 1
            if self.calls == 0:
                raise StoreError("the disk is on fire")
            return call(*arguments, **named)

        return cast("Call", counted)


def test_a_failing_cache_costs_the_cache_only(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(random.Random(1).randbytes(5 * MAX_SIZE))
    (tmp_path / "y").write_bytes(b"y")
    expected = scan(tmp_path)
    for call in range(1, 10):
        cache = Failing(call)
        results = [scan(tmp_path, cache=cache) for _ in range(2)]
        assert all(expected.pages == done.pages for done in results)
        assert all(expected.objects == done.objects for done in results)
        problems = [problem for done in results for problem in done.problems]
        assert (0 if cache.calls > 0 else 1) == len(problems)
        if cache.calls > 0:
            return
        assert "on fire" in problems[0].reason
        assert not problems[0].left_out
    pytest.fail("the cache is called without end")


def test_hardlinks_are_read_once_wherever_they_lie(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "z").mkdir()
    (tmp_path / "a/x").write_bytes(b"x" * 1000)
    for number in range(10):
        (tmp_path / f"z/{number}").hardlink_to(tmp_path / "a/x")
    cache = MemoryScanCache()
    done = scan(tmp_path, cache=cache)
    assert (1, 1000) == (done.progress.files_read, done.progress.read)
    assert 1 == len({entry.link for entry in done.below(tmp_path).values() if entry.content})
    assert 0 == scan(tmp_path, cache=cache).progress.files_read


@pytest.mark.root
def test_an_unreadable_file_keeps_its_metadata_and_is_tried_again() -> None:
    with public_directory() as top:
        (top / "open").write_bytes(b"open")
        (top / "closed").write_bytes(b"closed")
        (top / "closed").chmod(0o640)
        cache = MemoryScanCache()
        for _ in range(2):
            with another_user():
                done = scan(top, cache=cache)
            closed = done.below(top)[b"closed"]
            assert (UNREADABLE, None, 6, 0o640) == (
                closed.flags,
                closed.content,
                closed.size,
                closed.owner.mode,
            )
            [problem] = done.problems
            assert (name_of(top / "closed"), True) == (problem.path, problem.left_out)
            assert "Permission denied" in problem.reason
        assert 0 == done.progress.files_read
        (top / "closed").chmod(0o644)
        with another_user():
            done = scan(top, cache=cache)
        assert [] == done.problems
        assert 1 == done.progress.files_read


def test_what_lies_above_a_root_has_pages_of_its_own(tmp_path: Path) -> None:
    for name in ("p/a", "p/b", "q/c"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "x").write_bytes(b"x")
    guard = RootGuard([os.fsencode(tmp_path)])
    roots = tmp_path / "p/a", tmp_path / "p/b", tmp_path / "q/c"
    cache = MemoryScanCache()
    first = scan(*roots, guard=guard, cache=cache)
    assert [2, 4, 1, 2] == [page.entries for page in first.pages]
    os.utime(tmp_path, (1, 1))
    os.utime(tmp_path / "q", (1, 1))
    for again in (scan(*roots, guard=guard, cache=cache), scan(*roots, guard=guard)):
        assert ids(first) == ids(again)
    (tmp_path / "q").chmod(0o700)
    for again in (scan(*roots, guard=guard, cache=cache), scan(*roots, guard=guard)):
        same = [page.id in ids(first) for page in again.pages]
        assert [True, True, False, True] == same


def test_tiers_with_roots_in_common_do_not_disturb_each_other(tree: Path) -> None:
    cache = MemoryScanCache()
    rules = Matcher(["*5"])
    some, everything = scan(tree, cache=cache, rules=rules), scan(tree, cache=cache)
    assert ids(some) != ids(everything)
    for _ in range(2):
        done = scan(tree, cache=cache, rules=rules)
        assert (ids(some), 0) == (ids(done), done.progress.files_read)
        done = scan(tree, cache=cache)
        assert (ids(everything), 0) == (ids(done), done.progress.files_read)


def scanner_of(tree: Path, cache: ScanCache, spool: Spool) -> Scanner:
    root = os.fsencode(tree)
    return Scanner([root], Matcher(), cache, spool, guard=RootGuard([root]), clock=later)


def test_a_scan_that_ends_early_has_not_worked_for_nothing(forest: Path) -> None:
    cache = MemoryScanCache()
    with Spool() as spool:
        scanner = scanner_of(forest, cache, spool)
        pages = iter(scanner)
        next(pages)
        read = scanner.progress.files_read
        del pages
    assert 0 < read < 20_000
    assert 20_000 - read == scan(forest, cache=cache).progress.files_read


KILLED = """
import sys, time
from pathlib import Path
from cas.agent import memory
from indexes.scancache import LmdbScanCache
from tests.agent.test_scan import Spool, scanner_of
memory.WRITE_SECONDS = 0.0
with Spool() as spool:
    scanner = scanner_of(Path(sys.argv[1]), LmdbScanCache(Path(sys.argv[2])), spool)
    for page in scanner:
        print(scanner.progress.files_read, flush=True)
        sys.stdin.readline()
"""


def test_a_scan_that_is_killed_has_not_worked_for_nothing(forest: Path, tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", KILLED, forest, tmp_path / "cache"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=Path(__file__).resolve().parents[2],
    ) as killed:
        assert killed.stdout is not None
        read = int(killed.stdout.readline())
        killed.kill()
    cache = LmdbScanCache(tmp_path / "cache")
    assert 0 < read < 20_000
    assert 20_000 - read == scan(forest, cache=cache).progress.files_read
    cache.close()


def test_a_scan_can_be_stopped(forest: Path) -> None:
    with Spool() as spool:
        scanner = scanner_of(forest, MemoryScanCache(), spool)
        pages = iter(scanner)
        next(pages)
        scanner.stop()
        with pytest.raises(SourceError, match="stopped"):
            list(pages)


def test_missing_roots_are_said_and_the_others_scanned(tmp_path: Path) -> None:
    (tmp_path / "x").touch()
    done = scan(tmp_path / "missing", tmp_path / "x")
    assert [b"x"] == list(done.below(tmp_path))
    assert [(name_of(tmp_path / "missing"), True)] == [(p.path, p.left_out) for p in done.problems]
    done = scan(tmp_path / "missing")
    assert [] == done.pages
