"""A restored tree is compared with its entries; a manifest lets anybody do it."""

import os
import random
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from cas.entry import HOLE_DIGEST, Entry, Problem
from cas.errors import RestoreError
from cas.ids import digest_of
from cas.manifest import manifest
from cas.restore.tree import restore_entries
from cas.verify.tree import VerifyOptions, VerifyReport, verify_tree
from tests.restore.test_tree import tree as whole_tree
from tests.restore.trees import directory, file, symlink, take
from tests.store.build import BuiltStore

tree = whole_tree  # a fixture
ALL = VerifyOptions(metadata=True, owners=True)


@pytest.fixture
def store(tmp_path: Path) -> BuiltStore:
    return BuiltStore(tmp_path / "store")


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out"


@pytest.fixture
def entries(tree: Path, store: BuiltStore, out: Path) -> list[Entry]:
    """The entries of a tree, restored."""
    taken = take(tree, store)
    assert [] == restore_entries(taken, store.reader, out).problems
    return taken


def paths(problems: list[Problem]) -> list[bytes]:
    return sorted({problem.path for problem in problems})


def found(report: VerifyReport) -> list[list[bytes]]:
    return [paths(p) for p in (report.missing, report.differing, report.metadata)]


@pytest.mark.parametrize("workers", [1, 3])
def test_what_was_restored_is_as_it_was(entries: list[Entry], out: Path, workers: int) -> None:
    report = verify_tree(entries, out, None, replace(ALL, workers=workers))
    assert [[], [], []] == found(report)
    assert report.ok
    assert (len(entries), sum(e.size for e in entries)) == (report.names, report.bytes)


def test_what_is_missing_is_told(entries: list[Entry], out: Path) -> None:
    (out / "a/empty").unlink()
    (out / "a/link").unlink()
    (out / "fifo").unlink()
    os.rename(out / "a/b", out / "elsewhere")
    below = [entry.path for entry in entries if entry.path.startswith(b"a/b/")]
    report = verify_tree(entries, out)
    assert sorted([b"a/empty", b"a/link", b"fifo", b"a/b", *below]) == paths(report.missing)
    assert [] == report.differing
    assert not report.ok


@pytest.mark.parametrize(
    "name", ["a/one", "a/b/many", "large", "sparse", "hole", "read-only/within"]
)
@pytest.mark.parametrize("change", ["flip", "longer", "shorter", "symlink", "directory", "fifo"])
def test_other_content_is_told(entries: list[Entry], out: Path, name: str, change: str) -> None:
    path = out / name
    data = bytearray(path.read_bytes())
    path.parent.chmod(0o755)
    path.unlink()
    if change == "flip":
        data[len(data) // 2] ^= 1
        path.write_bytes(data)
    elif change == "longer":
        path.write_bytes(data + b"\0")
    elif change == "shorter":
        path.write_bytes(data[:-1])
    elif change == "symlink":
        (out / "same").write_bytes(data)
        path.symlink_to(out / "same")
    elif change == "directory":
        path.mkdir()
    else:
        os.mkfifo(path)
    report = verify_tree(entries, out)
    assert [[], [name.encode()], []] == found(report)


def test_nothing_is_followed_out_of_the_target(
    entries: list[Entry], out: Path, tmp_path: Path
) -> None:
    """The same files, but behind a symlink."""
    os.rename(out / "a", tmp_path / "moved")
    (out / "a").symlink_to(tmp_path / "moved")
    below = [e.path for e in entries if e.path.startswith(b"a/")]
    assert [[], sorted([b"a", *below]), []] == found(verify_tree(entries, out))


def test_other_metadata_is_told_if_asked_for(entries: list[Entry], out: Path) -> None:
    (out / "a/b/script").chmod(0o700)
    os.utime(out / "a/link", ns=(1, 1), follow_symlinks=False)
    os.utime(out / "empty", ns=(1, 1))
    changed = [b"a/b/script", b"a/link", b"empty"]
    try:
        os.setxattr(out / "a/one", "user.more", b"")
        changed += [b"a/b.d/other name", b"a/one"]
    except OSError:
        pass  # no attributes here
    assert [[], [], []] == found(verify_tree(entries, out))
    report = verify_tree(entries, out, None, ALL)
    assert [[], [], sorted(changed)] == found(report)
    assert not report.ok


@pytest.mark.root
def test_other_owners_are_told_if_asked_for(entries: list[Entry], out: Path) -> None:
    os.chown(out / "a/one", 5, 6)
    os.chmod(out / "a/one", 0o644)
    os.lchown(out / "a/link", 5, 6)
    assert [[], [], []] == found(verify_tree(entries, out, None, VerifyOptions(metadata=True)))
    names = [b"a/b.d/other name", b"a/link", b"a/one"]
    assert [[], [], names] == found(verify_tree(entries, out, None, ALL))


def test_files_that_were_unreadable_are_not_looked_for(out: Path) -> None:
    out.mkdir()
    assert verify_tree([file(b"a", None)], out).ok


def test_a_path_that_is_none_is_told(out: Path, tmp_path: Path, store: BuiltStore) -> None:
    out.mkdir()
    (tmp_path / "x").write_bytes(b"x")
    entry = file(b"../x", store.content(b"x"))
    assert [[], [b"../x"], []] == found(verify_tree([entry], out))


def test_a_target_that_is_not_there_is_an_error(out: Path) -> None:
    with pytest.raises(RestoreError, match="out"):
        verify_tree([], out)


def test_progress_adds_up(entries: list[Entry], out: Path) -> None:
    seen: list[tuple[int, int]] = []
    options = VerifyOptions(progress=lambda size, names: seen.append((size, names)))
    report = verify_tree(entries, out, None, options)
    assert (report.bytes, report.names) == (sum(s for s, _ in seen), sum(n for _, n in seen))


@pytest.fixture
def hole_digest(store: BuiltStore, out: Path) -> Entry:
    """A restored file whose digest is that of its recipe."""
    content = store.sparse([b"a" * 10_000, 100_000, b"b" * 5000, 50_000], chunk=4096)
    store.flush()
    of_recipe = digest_of(store.reader.object(content.parts[0]))
    entry = file(b"f", replace(content, digest=of_recipe), flags=HOLE_DIGEST)
    restore_entries([entry], store.reader, out)
    return entry


def test_without_a_digest_the_recipe_is_compared(
    hole_digest: Entry, store: BuiltStore, out: Path
) -> None:
    report = verify_tree([hole_digest], out, store.reader)
    assert (True, []) == (report.ok, report.unchecked)
    with (out / "f").open("r+b") as changed:
        changed.seek(60_000)
        changed.write(b"!")
    assert [b"f"] == paths(verify_tree([hole_digest], out, store.reader).differing)
    report = verify_tree([hole_digest], out)  # no one to ask for the recipe
    assert (True, [b"f"]) == (report.ok, paths(report.unchecked))
    assert hole_digest.content is not None
    del store.index.located[hole_digest.content.parts[0]]
    report = verify_tree([hole_digest], out, store.reader)
    assert (True, [b"f"]) == (report.ok, paths(report.unchecked))


def test_sha256sum_agrees_with_the_manifest(
    entries: list[Entry], hole_digest: Entry, store: BuiltStore, out: Path, tmp_path: Path
) -> None:
    odd = [file(name, store.content(name)) for name in (b"cr\rwithin", b"cr\r", b"\\", b"# x")]
    store.flush()
    assert [] == restore_entries(odd, store.reader, out).problems
    listed = [
        *entries,
        *odd,
        hole_digest,
        file(b"gone", None),
        directory(b"d"),
        symlink(b"s", b"x"),
    ]
    sums = tmp_path / "sums"
    sums.write_bytes(b"".join(manifest(listed)))
    checked = check(sums, out)
    assert (0, b"") == (checked.returncode, checked.stderr)
    files = sum(entry.content is not None for entry in [*entries, *odd])
    assert files == checked.stdout.count(b": OK")
    (out / "a/b/many").write_bytes(random.Random(5).randbytes(300_000))
    (out / "a/b/script").unlink()
    checked = check(sums, out)
    assert 1 == checked.returncode
    assert b"a/b/many: FAILED" in checked.stdout
    assert b"a/b/script: FAILED open" in checked.stdout


def check(sums: Path, place: Path) -> subprocess.CompletedProcess[bytes]:
    command = ["sha256sum", "--check", "--strict", str(sums)]
    return subprocess.run(command, cwd=place, capture_output=True, env={"LC_ALL": "C"})
