"""What goes wrong for one file is told, and is no reason to do without the others."""

import contextlib
import errno
import os
import random
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cas.entry import Content
from cas.errors import RestoreError
from cas.ids import Digest, digest_of
from cas.restore import files
from cas.restore.report import RestoreOptions, RestoreReport
from cas.restore.tree import restore_entries
from cas.store.durable import TEMPORARY_PREFIX
from tests.restore.trees import directory, file, names_below
from tests.store.build import BuiltStore

LARGE = 9_000_000


@pytest.fixture
def store(tmp_path: Path) -> BuiltStore:
    return BuiltStore(tmp_path / "store", segment_size=100_000, frame_segments=4)


def restore(contents: dict[bytes, Content], store: BuiltStore, target: Path) -> RestoreReport:
    store.flush()
    entries = [file(path, content) for path, content in contents.items()]
    return restore_entries(entries, store.reader, target)


def left_out(report: RestoreReport) -> list[bytes]:
    return sorted(problem.path for problem in report.problems if problem.left_out)


def words(seed: int, size: int) -> bytes:
    rng = random.Random(seed)
    return b" ".join(b"%x" % rng.getrandbits(40) for _ in range(size // 8))[:size]


@pytest.mark.parametrize("size", [5_000, 500_000, LARGE], ids=["one chunk", "medium", "large"])
def test_a_damaged_file_is_not_made_and_the_others_are(
    store: BuiltStore, tmp_path: Path, size: int
) -> None:
    contents: dict[bytes, Content] = {}
    data = {}
    for number in range(4):
        path = b"%d" % number
        data[path] = words(number, size)
        contents[path] = store.content(data[path])
        store.end_frame()
    store.flush()
    hurt = digest_of(data[b"2"][:5_000] if size == 5_000 else data[b"2"][: 64 * 1024])
    store.damage(hurt)
    report = restore(contents, store, tmp_path / "out")
    assert ([b"2"], 1) == (left_out(report), report.damaged)
    path_of_pack, place = store.place(hurt)
    reason = report.problems[0].reason
    assert path_of_pack.name in reason
    assert f"offset {place.offset}" in reason
    assert [b"0", b"1", b"3"] == names_below(tmp_path / "out")
    for path in (b"0", b"1", b"3"):
        assert data[path] == (tmp_path / "out" / os.fsdecode(path)).read_bytes()


@pytest.mark.parametrize("size", [5_000, 500_000, LARGE], ids=["one chunk", "medium", "large"])
@pytest.mark.parametrize("what", ["chunk", "recipe"])
def test_a_file_that_is_not_held_is_not_made_and_the_others_are(
    store: BuiltStore, tmp_path: Path, size: int, what: str
) -> None:
    data = words(1, size)
    contents = {b"a": store.content(data), b"b": store.content(b"held")}
    store.flush()
    recipe = contents[b"a"].parts
    gone = recipe[0] if recipe and what == "recipe" else digest_of(data[-(size % 65536) :])
    del store.index.located[gone]
    report = restore(contents, store, tmp_path / "out")
    assert ([b"a"], 1) == (left_out(report), report.missing)
    assert [b"b"] == names_below(tmp_path / "out")


@pytest.mark.parametrize("size", [500_000, LARGE], ids=["medium", "large"])
def test_a_digest_that_is_not_that_of_the_bytes_is_told(
    store: BuiltStore, tmp_path: Path, size: int
) -> None:
    content = store.content(words(1, size))
    wrong = Content(size, digest_of(b"other"), content.chunk_count, content.parts)
    report = restore({b"a": wrong}, store, tmp_path / "out")
    assert [b"a"] == left_out(report)
    assert "something else" in report.problems[0].reason
    assert [] == names_below(tmp_path / "out")


@pytest.mark.parametrize("change", [-1, 1, 2**50])
@pytest.mark.parametrize("size", [5_000, 500_000, LARGE], ids=["one chunk", "medium", "large"])
def test_a_size_that_is_not_that_of_the_bytes_is_told(
    store: BuiltStore, tmp_path: Path, size: int, change: int
) -> None:
    content = store.content(words(1, size))
    wrong = Content(size + change, content.digest, content.chunk_count, content.parts)
    report = restore({b"a": wrong}, store, tmp_path / "out")
    assert [b"a"] == left_out(report)
    assert [] == names_below(tmp_path / "out")


def test_a_chunk_of_another_length_than_its_recipe_says_is_told(
    store: BuiltStore, tmp_path: Path
) -> None:
    from cas.recipe import Recipe, encode_recipe

    one, two = store.chunk(b"1" * 1000), store.chunk(b"2" * 1000)
    recipe = store.chunk(encode_recipe(Recipe(2000, Digest(bytes(32)), (one, two), (999, 1001))))
    content = Content(2000, digest_of(b"1" * 1000 + b"2" * 1000), 2, (recipe,))
    report = restore({b"a": content}, store, tmp_path / "out")
    assert [b"a"] == left_out(report)
    assert "length" in report.problems[0].reason


def test_an_unreadable_file_is_told(store: BuiltStore, tmp_path: Path) -> None:
    report = restore_entries([file(b"a", None)], store.reader, tmp_path / "out")
    assert [b"a"] == left_out(report)
    assert "at the source" in report.problems[0].reason
    assert [] == names_below(tmp_path / "out")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 4 MiB."""
    place = tmp_path / "disk"
    place.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "none", str(place)],
                          capture_output=True, text=True)  # fmt: skip
    if done.returncode:
        pytest.skip(f"no file system can be mounted here: {done.stderr.strip()}")
    yield place
    subprocess.run(["umount", str(place)], check=True)


@pytest.mark.root
@pytest.mark.parametrize("size", [5_000_000, LARGE], ids=["medium", "large"])
def test_a_full_disk_leaves_no_half_file(store: BuiltStore, small_disk: Path, size: int) -> None:
    small = {b"%d" % n: store.content(b"%d" % n * 1000) for n in range(20)}
    contents = {**small, b"b": store.content(words(1, size)), b"c": store.content(b"x")}
    report = restore(contents, store, small_disk)
    lacking = left_out(report)
    assert b"b" in lacking  # and whatever was being written while it took all the room
    assert all(os.strerror(errno.ENOSPC) in problem.reason for problem in report.problems)
    assert sorted(set(contents) - set(lacking)) == names_below(small_disk)
    for name in names_below(small_disk):
        assert contents[name].size == (small_disk / os.fsdecode(name)).stat().st_size


@pytest.mark.parametrize("unnamed", [True, False], ids=["unnamed", "temporary name"])
@pytest.mark.parametrize("call", ["open", "pwrite", "chmod", "utime", "link"])
def test_every_call_may_fail(
    store: BuiltStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, unnamed: bool
) -> None:
    """The n-th call of its kind fails, for every n: what is there then is whole."""
    monkeypatch.setattr(files, "CAN_LINK_UNNAMED", unnamed)
    contents = {b"d/%d" % n: store.content(b"%d" % n * 1000) for n in range(3)}
    contents[b"d/m"] = store.content(words(1, 300_000))
    store.flush()
    real = getattr(os, call)
    for number in range(100):
        left = [number]

        def failing(*a: object, left: list[int] = left, **k: object) -> object:
            left[0] -= 1
            if left[0] == -1:
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            return real(*a, **k)

        monkeypatch.setattr(os, call, failing)
        target = tmp_path / f"out{number}"
        target.mkdir()
        entries = [directory(b"d"), *(file(path, c) for path, c in contents.items())]
        report = None
        with contextlib.suppress(RestoreError):  # it was the target itself
            report = restore_entries(entries, store.reader, target, RestoreOptions(workers=1))
        monkeypatch.setattr(os, call, real)
        if report is None:
            continue
        there = set(names_below(target)) - {b"d"}
        assert set(contents) - set(left_out(report)) == there
        assert {len((target / os.fsdecode(p)).read_bytes()) for p in there} <= {1000, 300_000}
        if left[0] >= 0:
            assert [] == report.problems
            return
    pytest.fail("it never ran through")


@pytest.mark.parametrize("error", [errno.EMLINK, errno.EXDEV, errno.EPERM])
def test_where_no_hard_link_can_be_there_is_a_copy(
    store: BuiltStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: int
) -> None:
    monkeypatch.setattr(files, "CAN_LINK_UNNAMED", False)
    content = store.content(b"x" * 1000)
    store.flush()
    real = os.link

    def link(old: bytes, new: bytes, **how: Any) -> None:
        if not old.startswith(TEMPORARY_PREFIX):
            raise OSError(error, os.strerror(error))
        real(old, new, **how)

    monkeypatch.setattr(os, "link", link)
    entries = [file(b"%d" % n, content, link=b"1:1") for n in range(3)]
    report = restore_entries(entries, store.reader, tmp_path / "out")
    assert [] == left_out(report)
    assert ["copy" in problem.reason for problem in report.problems] == [True]
    assert "1 more" in report.problems[0].reason
    inodes = {(tmp_path / "out" / str(n)).stat().st_ino for n in range(3)}
    assert 3 == len(inodes)


def test_where_no_links_can_be_a_file_is_renamed_into_place(
    store: BuiltStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on FAT: no files without names, no hard links."""
    monkeypatch.setattr(files, "CAN_LINK_UNNAMED", False)

    def link(*a: object, **k: object) -> None:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "link", link)
    contents = {b"a": store.content(b"a"), b"b": store.content(b"b")}
    (tmp_path / "out").mkdir()
    (tmp_path / "out/b").write_bytes(b"old")
    report = restore(contents, store, tmp_path / "out")
    assert [b"b"] == left_out(report)
    assert b"a" == (tmp_path / "out/a").read_bytes()
    assert b"old" == (tmp_path / "out/b").read_bytes()
    assert [b"a", b"b"] == names_below(tmp_path / "out")
