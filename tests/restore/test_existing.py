"""What becomes of names that are in the target already."""

import os
from pathlib import Path

import pytest

from cas.entry import HOLE_DIGEST, Entry, Kind
from cas.ids import digest_of
from cas.restore.report import Existing, RestoreOptions, RestoreReport
from cas.restore.tree import restore_entries
from tests.restore.trees import MINE, directory, facts, file, names_below, symlink
from tests.store.build import BuiltStore

REFUSE, KEEP, OVERWRITE = (RestoreOptions(existing) for existing in Existing)


@pytest.fixture
def store(tmp_path: Path) -> BuiltStore:
    return BuiltStore(tmp_path / "store")


@pytest.fixture
def entries(store: BuiltStore) -> list[Entry]:
    made = [
        directory(b"d"),
        file(b"d/file", store.content(b"new" * 5000)),
        file(b"d/link", store.content(b"linked"), link=b"1:1"),
        file(b"d/link2", store.content(b"linked"), link=b"1:1"),
        symlink(b"d/symlink", b"new"),
        Entry(b"fifo", Kind.FIFO, MINE, 5),
        file(b"large", store.content(os.urandom(9_000_000))),
    ]
    store.flush()
    return made


def restore(
    entries: list[Entry], store: BuiltStore, target: Path, options: RestoreOptions
) -> RestoreReport:
    return restore_entries(entries, store.reader, target, options)


def left_out(report: RestoreReport) -> list[bytes]:
    return sorted(problem.path for problem in report.problems if problem.left_out)


NAMES = [b"d/file", b"d/link", b"d/link2", b"d/symlink", b"fifo", b"large"]


def test_by_default_what_is_there_is_refused(
    store: BuiltStore, entries: list[Entry], tmp_path: Path
) -> None:
    restore(entries, store, tmp_path / "out", REFUSE)
    before = facts(tmp_path / "out")
    report = restore(entries, store, tmp_path / "out", REFUSE)
    assert NAMES == left_out(report)
    assert before == facts(tmp_path / "out")


def test_an_interrupted_restore_goes_on(
    store: BuiltStore, entries: list[Entry], tmp_path: Path
) -> None:
    """What is there and the same is kept, and what is missing made; links find each other."""
    restore(entries, store, tmp_path / "whole", KEEP)
    restore(entries, store, tmp_path / "out", KEEP)
    for name in ("d/link2", "d/symlink", "large"):
        (tmp_path / "out" / name).unlink()
    report = restore(entries, store, tmp_path / "out", KEEP)
    assert [] == report.problems
    assert (1, 1, 1, 3) == (report.files, report.links, report.symlinks, report.kept)
    assert facts(tmp_path / "whole") == facts(tmp_path / "out")


@pytest.mark.parametrize("name", ["d/file", "d/link", "d/link2", "d/symlink", "fifo", "large"])
@pytest.mark.parametrize("there", ["content", "size", "symlink", "fifo"])
def test_what_differs_is_kept_and_told_or_replaced(
    store: BuiltStore, entries: list[Entry], tmp_path: Path, name: str, there: str
) -> None:
    restore(entries, store, tmp_path / "whole", KEEP)
    restore(entries, store, tmp_path / "out", KEEP)
    path = tmp_path / "out" / name
    size = path.lstat().st_size
    path.unlink()
    if there == "symlink":
        path.symlink_to("elsewhere")
    elif there == "fifo":
        os.mkfifo(path)
    else:
        path.write_bytes(b"!" * (size if there == "content" else size + 1))
    os.utime(tmp_path / "out/d", ns=(5, 1_000_000_007))
    before = facts(tmp_path / "out")
    report = restore(entries, store, tmp_path / "out", KEEP)
    if not (name == "fifo" and there == "fifo"):
        assert [os.fsencode(name)] == left_out(report)
        assert before == facts(tmp_path / "out")
    assert [] == restore(entries, store, tmp_path / "out", OVERWRITE).problems
    assert facts(tmp_path / "whole") == facts(tmp_path / "out")


def test_overwriting_leaves_nothing_else(
    store: BuiltStore, entries: list[Entry], tmp_path: Path
) -> None:
    for _ in range(3):
        report = restore(entries, store, tmp_path / "out", OVERWRITE)
        assert [] == report.problems
    assert sorted(entry.path for entry in entries) == sorted(names_below(tmp_path / "out"))


def test_an_open_file_keeps_what_it_had(
    store: BuiltStore, entries: list[Entry], tmp_path: Path
) -> None:
    (tmp_path / "out/d").mkdir(parents=True)
    (tmp_path / "out/d/file").write_bytes(b"old")
    with (tmp_path / "out/d/file").open("rb") as old:
        restore(entries, store, tmp_path / "out", OVERWRITE)
        assert b"old" == old.read()
    assert b"new" * 5000 == (tmp_path / "out/d/file").read_bytes()


def test_a_directory_gets_the_metadata_also_if_it_was_there(
    store: BuiltStore, entries: list[Entry], tmp_path: Path
) -> None:
    (tmp_path / "out/d").mkdir(parents=True)
    (tmp_path / "out/d").chmod(0o511)
    report = restore(entries, store, tmp_path / "out", KEEP)
    assert [] == report.problems
    found = (tmp_path / "out/d").stat()
    assert (0o40755, 1_000_000_007) == (found.st_mode, found.st_mtime_ns)


def test_a_file_without_a_digest_of_its_bytes_is_compared_by_its_recipe(
    store: BuiltStore, tmp_path: Path
) -> None:
    pieces: list[bytes | int] = [b"a" * 10_000, 100_000, b"b" * 5000, 50_000]
    content = store.sparse(pieces, chunk=4096)
    store.flush()
    recipe = store.reader.object(content.parts[0])
    odd = file(b"f", content, flags=HOLE_DIGEST)
    odd_content = type(content)(content.size, digest_of(recipe), content.chunk_count, content.parts)
    odd = file(b"f", odd_content, flags=HOLE_DIGEST)
    assert [] == restore([odd], store, tmp_path / "out", KEEP).problems
    assert 1 == restore([odd], store, tmp_path / "out", KEEP).kept
    with (tmp_path / "out/f").open("r+b") as out:
        out.seek(10_000)
        out.write(bytes(100_000))  # the same bytes, if not the same holes
    assert 1 == restore([odd], store, tmp_path / "out", KEEP).kept
    for at in (0, 9_999, 10_000, 100_000, 112_000, 164_999):
        with (tmp_path / "out/f").open("r+b") as out:
            out.seek(at)
            old = out.read(1)
            out.seek(at)
            out.write(b"!")
            out.flush()
            assert [b"f"] == left_out(restore([odd], store, tmp_path / "out", KEEP))
            out.seek(at)
            out.write(old)
    assert 1 == restore([odd], store, tmp_path / "out", KEEP).kept
