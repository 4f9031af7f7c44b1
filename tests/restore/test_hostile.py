"""Entries come from a peer that is not trusted, and the target may hold anything: nothing outside
it is touched, whatever they say."""

import contextlib
import itertools
import os
import stat
import threading
from pathlib import Path

import pytest

from cas._native import place_files
from cas.entry import Entry, Kind, Owner
from cas.restore.report import Existing, RestoreOptions, RestoreReport
from cas.restore.tree import restore_entries
from tests.restore.trees import MINE, directory, facts, file, names_below, symlink
from tests.store.build import BuiltStore

EVERY_WAY = [RestoreOptions(existing) for existing in Existing]


@pytest.fixture
def store(tmp_path: Path) -> BuiltStore:
    return BuiltStore(tmp_path / "store")


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """What must stay as it is."""
    place = tmp_path / "outside"
    (place / "sub").mkdir(parents=True)
    (place / "passwd").write_bytes(b"root:x:0:0")
    (place / "sub/file").write_bytes(b"untouched")
    return place


def restore(
    entries: list[Entry], store: BuiltStore, target: Path, options: RestoreOptions | None = None
) -> RestoreReport:
    store.flush()
    return restore_entries(entries, store.reader, target, options)


def left_out(report: RestoreReport) -> set[bytes]:
    return {problem.path for problem in report.problems if problem.left_out}


@pytest.mark.parametrize("options", EVERY_WAY, ids=lambda o: o.existing.value)
@pytest.mark.parametrize(
    "path", [b"../x", b"a/../../x", b"/x", b"a//x", b"./x", b"", b"a/", b"a\0b", b"x" * 256]
)
def test_a_path_that_is_none_is_left_out(
    store: BuiltStore, outside: Path, tmp_path: Path, path: bytes, options: RestoreOptions
) -> None:
    before = facts(outside)
    entries = [file(path, store.content(b"x")), file(b"zz", store.content(b"good"))]
    report = restore(entries, store, tmp_path / "out", options)
    assert {path} == left_out(report)
    assert [b"zz"] == names_below(tmp_path / "out")
    assert before == facts(outside)
    assert sorted([b"out", b"outside", b"store"]) == sorted(os.listdir(os.fsencode(tmp_path)))


@pytest.mark.parametrize("options", EVERY_WAY, ids=lambda o: o.existing.value)
@pytest.mark.parametrize("size", [10, 9_000_000], ids=["small", "large"])
@pytest.mark.parametrize("how", ["absolute", "relative", "chain"])
def test_a_restored_symlink_is_not_gone_through(
    store: BuiltStore, outside: Path, tmp_path: Path, how: str, size: int, options: RestoreOptions
) -> None:
    """The classic: `a -> /etc`, then `a/passwd`."""
    before = facts(outside)
    evil = store.content(os.urandom(size))
    goal = {"absolute": os.fsencode(outside), "relative": b"../outside", "chain": b"b"}[how]
    entries = [
        symlink(b"a", goal),
        file(b"a/passwd", evil),
        directory(b"a/sub"),
        file(b"a/sub/file", evil),
        symlink(b"a/sub/link", b"x"),
        Entry(b"a/sub/pipe", Kind.FIFO, MINE, 5),
        symlink(b"b", os.fsencode(outside)),
    ]
    report = restore([*entries, *entries], store, tmp_path / "out", options)
    assert before == facts(outside)
    assert {b"a/passwd", b"a/sub/file"} & left_out(report) or not (tmp_path / "out/a").is_symlink()


@pytest.mark.parametrize("options", EVERY_WAY, ids=lambda o: o.existing.value)
def test_a_symlink_that_was_there_is_not_gone_through(
    store: BuiltStore, outside: Path, tmp_path: Path, options: RestoreOptions
) -> None:
    before = facts(outside)
    target = tmp_path / "out"
    (target / "d").mkdir(parents=True)
    (target / "a").symlink_to(outside)
    (target / "d/passwd").symlink_to(outside / "passwd")
    (target / "d/new").symlink_to(outside / "new")
    content = store.content(b"evil")
    entries = [
        directory(b"a"),
        file(b"a/passwd", content),
        file(b"a/sub/file", content),
        directory(b"d"),
        file(b"d/new", content),
        file(b"d/passwd", content),
        Entry(b"d/pipe", Kind.FIFO, MINE, 5),
    ]
    report = restore(entries, store, target, options)
    assert before == facts(outside)
    assert {b"a", b"a/passwd", b"a/sub/file"} <= left_out(report)
    assert (target / "a").is_symlink()
    replaced = options.existing is Existing.OVERWRITE
    assert replaced == stat.S_ISREG(os.lstat(target / "d/passwd").st_mode)
    assert replaced == stat.S_ISREG(os.lstat(target / "d/new").st_mode)


@pytest.mark.parametrize("options", EVERY_WAY, ids=lambda o: o.existing.value)
def test_a_hard_link_to_a_name_that_is_a_symlink_leads_nowhere(
    store: BuiltStore, outside: Path, tmp_path: Path, options: RestoreOptions
) -> None:
    """One name is taken by a symlink; the other must not become a link to what that points to."""
    before = facts(outside)
    target = tmp_path / "out"
    target.mkdir()
    (target / "first").symlink_to(outside / "passwd")
    content = store.content(b"evil")
    names = [file(b"first", content, link=b"1:1"), file(b"second", content, link=b"1:1")]
    restore(names, store, target, options)
    assert before == facts(outside)
    assert 1 == os.stat(outside / "passwd").st_nlink
    assert b"evil" == (target / "second").read_bytes()


def test_a_hard_link_whose_first_name_lies_behind_a_symlink(
    store: BuiltStore, outside: Path, tmp_path: Path
) -> None:
    target = tmp_path / "out"
    target.mkdir()
    (target / "a").symlink_to(outside)
    content = store.content(b"evil")
    names = [file(b"a/passwd", content, link=b"1:1"), file(b"second", content, link=b"1:1")]
    report = restore(names, store, target)
    assert {b"a/passwd"} == left_out(report)
    assert b"evil" == (target / "second").read_bytes()
    assert b"root:x:0:0" == (outside / "passwd").read_bytes()


def test_metadata_is_not_put_through_a_symlink(
    store: BuiltStore, outside: Path, tmp_path: Path
) -> None:
    before = facts(outside)
    entries = [
        Entry(b"l", Kind.SYMLINK, Owner(0o7777, 1, 1), 5, target=os.fsencode(outside / "passwd")),
        Entry(b"s", Kind.SYMLINK, Owner(0o7777, 1, 1), 5, target=os.fsencode(outside / "sub")),
    ]
    restore(entries, store, tmp_path / "out")
    assert before == facts(outside)


def test_a_target_of_a_symlink_may_be_anything(store: BuiltStore, tmp_path: Path) -> None:
    entries = [symlink(b"a", b"x\0y"), symlink(b"b", b""), symlink(b"c", b"y" * 5000),
               symlink(b"d", b"../../\xff")]  # fmt: skip
    report = restore(entries, store, tmp_path / "out")
    assert {b"a", b"b", b"c"} == left_out(report)
    assert b"../../\xff" == os.readlink(os.fsencode(tmp_path / "out/d"))


def test_a_device_number_may_be_anything(store: BuiltStore, tmp_path: Path) -> None:
    device = (2**32 - 1, 2**32 - 1)
    entries = [Entry(b"a", Kind.BLOCK_DEVICE, MINE, 5, device=device), directory(b"b")]
    report = restore(entries, store, tmp_path / "out")
    assert left_out(report) <= {b"a"}
    assert (tmp_path / "out/b").is_dir()


def test_a_tree_may_be_deeper_than_a_path_may_be_long(store: BuiltStore, tmp_path: Path) -> None:
    content = store.content(b"deep")
    parts = [b"d" * 200] * 120
    entries = [directory(b"/".join(parts[:n])) for n in range(1, 121)]
    entries.append(file(b"/".join([*parts, b"file"]), content))
    before = len(os.listdir("/proc/self/fd"))
    report = restore(entries, store, tmp_path / "out")
    assert [] == report.problems
    assert (120, 1) == (report.directories, report.files)
    assert len(os.listdir("/proc/self/fd")) <= before + 5
    _remove_deep(tmp_path / "out")


def _remove_deep(top: Path) -> None:
    """Flatten what no path reaches, for the cleaning up after the test."""
    os.system(f"rm -rf {top}")


def test_while_another_process_swaps_directories_for_symlinks(
    store: BuiltStore, outside: Path, tmp_path: Path
) -> None:
    """Whatever moment it is: either ours, or refused; never the outside."""
    before = facts(outside)
    target = tmp_path / "out"
    (target / "a").mkdir(parents=True)
    content = store.content(b"evil")
    entries = [e for n in range(300) for e in (file(b"a/%03d/passwd" % n, content),)]
    done = threading.Event()

    def swap() -> None:
        for number in itertools.count():
            if done.is_set():
                return
            # The restore makes `a` anew when it finds none: then the name is taken.
            with contextlib.suppress(OSError):
                os.rename(target / "a", target / f"moved{number}")
                os.symlink(outside, target / "a")
            with contextlib.suppress(OSError):
                os.unlink(target / "a")

    swapping = threading.Thread(target=swap)
    swapping.start()
    try:
        for number in range(0, 300, 10):
            restore(entries[number : number + 10], store, target)
    finally:
        done.set()
        swapping.join()
    assert before == facts(outside)


@pytest.mark.parametrize("options", EVERY_WAY, ids=lambda o: o.existing.value)
def test_a_file_is_not_put_in_place_of_a_directory_nor_the_other_way(
    store: BuiltStore, tmp_path: Path, options: RestoreOptions
) -> None:
    target = tmp_path / "out"
    (target / "d").mkdir(parents=True)
    (target / "d/kept").write_bytes(b"kept")
    (target / "f").write_bytes(b"kept")
    content = store.content(b"x")
    report = restore([file(b"d", content), directory(b"f"), file(b"f/x", content)], store, target,
                     options)  # fmt: skip
    assert {b"d", b"f", b"f/x"} == left_out(report)
    assert b"kept" == (target / "d/kept").read_bytes()
    assert b"kept" == (target / "f").read_bytes()


def test_names_that_are_one_on_this_file_system_are_told(
    store: BuiltStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a disk that knows no upper and lower case: there, mkdir and open find the other."""
    real_open, real_mkdir, real_link, real_place = os.open, os.mkdir, os.link, place_files

    def lower(name: bytes) -> bytes:
        return name if name.startswith(b"/") else name.lower()

    monkeypatch.setattr(os, "open", lambda path, *a, **k: real_open(
        lower(path) if isinstance(path, bytes) else path, *a, **k))  # fmt: skip
    monkeypatch.setattr(os, "mkdir", lambda path, *a, **k: real_mkdir(
        lower(path) if isinstance(path, bytes) else path, *a, **k))  # fmt: skip
    monkeypatch.setattr(os, "link", lambda old, new, **k: real_link(old, lower(new), **k))
    monkeypatch.setattr("cas.restore.small.place_files", lambda data, files: real_place(
        data, [(there, lower(name), *rest) for there, name, *rest in files]))  # fmt: skip
    one, two = store.content(b"one"), store.content(b"two")
    entries = [directory(b"Dir"), file(b"Dir/x", one), file(b"README", one), directory(b"dir"),
               file(b"readme", two)]  # fmt: skip
    report = restore(entries, store, tmp_path / "out")
    assert {b"dir"} <= left_out(report)
    assert 1 == len({b"README", b"readme"} & left_out(report))
    assert [b"dir", b"dir/x", b"readme"] == names_below(tmp_path / "out")
