"""Real trees come back as they were."""

import errno
import os
import random
import socket
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from cas.entry import INCONSISTENT, Entry, Kind, Owner
from cas.errors import DamageError, RestoreError
from cas.restore.report import RestoreOptions, RestoreReport
from cas.restore.tree import restore_entries
from tests.restore.trees import directory, facts, file, names_below, symlink, take
from tests.store.build import BuiltStore


@pytest.fixture
def store(tmp_path: Path) -> BuiltStore:
    return BuiltStore(tmp_path / "store", segment_size=64 * 1024, frame_segments=3)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A tree with something of everything that needs no privilege."""
    root = tmp_path / "tree"
    rng = random.Random(1)
    for name in ("a", "a/b", "a/b.d", "empty", "read-only", "deep/" + "/".join("d" * 40)):
        (root / name).mkdir(parents=True, exist_ok=True)
    (root / "a/empty").touch()
    (root / "a/one").write_bytes(b"one chunk")
    (root / "a/b/many").write_bytes(rng.randbytes(300_000))
    (root / "a/b/same").write_bytes((root / "a/b/many").read_bytes())
    (root / "a/b/script").write_bytes(b"#!/bin/sh\n")
    (root / "a/b/script").chmod(0o755)
    (root / "a/link").symlink_to("b/many")
    (root / "a/dangling").symlink_to("/no/such/place")
    (root / "a/b.d/other name").hardlink_to(root / "a/one")
    (root / "read-only/within").write_bytes(b"x")
    bytes_root = os.fsencode(root)
    for odd in (b"not \xff\xfe utf-8", b"new\nline", b"back\\slash", b" ", b"-rf", b"x" * 255):
        with open(os.path.join(bytes_root, odd), "wb") as out:
            out.write(odd)
    sparse(root / "sparse", [(100_000, b"data"), (200_000, bytes(5000))], 500_000)
    sparse(root / "hole", [], 70_000)
    sparse(root / "large", [(0, rng.randbytes(9_000_000)), (20_000_000, b"end")], 20_000_003)
    os.mkfifo(root / "fifo")
    with socket.socket(socket.AF_UNIX) as server:
        here = os.getcwd()
        os.chdir(root)
        server.bind("socket")
        os.chdir(here)
    stamp(root, rng)
    (root / "read-only").chmod(0o555)
    (root / "a/b/same").chmod(0o4710)
    return root


def sparse(path: Path, data: list[tuple[int, bytes]], size: int) -> None:
    with path.open("wb") as out:
        for at, piece in data:
            out.seek(at)
            out.write(piece)
        out.truncate(size)


def stamp(root: Path, rng: random.Random) -> None:
    """Give every name a time of its own, directories last."""
    for path in reversed(names_below(root)):
        when = rng.randrange(10**18, 17 * 10**17)
        os.utime(os.path.join(os.fsencode(root), path), ns=(when, when), follow_symlinks=False)


def restore(
    entries: list[Entry], store: BuiltStore, target: Path, options: RestoreOptions | None = None
) -> RestoreReport:
    return restore_entries(iter(entries), store.reader, target, options)


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_a_tree_comes_back_as_it_was(
    tree: Path, store: BuiltStore, tmp_path: Path, workers: int
) -> None:
    entries = take(tree, store)
    report = restore(entries, store, tmp_path / "out", RestoreOptions(workers=workers))
    assert [] == report.problems
    assert facts(tree) == facts(tmp_path / "out")
    count = {kind: sum(e.kind is kind for e in entries) for kind in Kind}
    assert count[Kind.FILE] == report.files + report.links
    assert count[Kind.DIRECTORY] == report.directories
    assert count[Kind.SYMLINK] == report.symlinks
    assert 1 == report.links
    assert 2 == report.specials
    linked = next(e for e in entries if e.path == b"a/one")
    assert sum(e.size for e in entries) - linked.size == report.bytes


def test_little_memory_changes_nothing(tree: Path, store: BuiltStore, tmp_path: Path) -> None:
    entries = take(tree, store, chunk=1000)
    assert [] == restore(entries, store, tmp_path / "out").problems
    assert facts(tree) == facts(tmp_path / "out")


def test_a_restore_can_be_made_durable(tree: Path, store: BuiltStore, tmp_path: Path) -> None:
    entries = take(tree, store)
    assert [] == restore(entries, store, tmp_path / "out", RestoreOptions(sync=True)).problems
    assert facts(tree) == facts(tmp_path / "out")


def test_a_disk_that_fails_at_the_end_is_told(
    tree: Path, store: BuiltStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_file: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr("cas.restore.directories.sync_file_system", fail)
    entries = take(tree, store)
    assert [] == restore(entries, store, tmp_path / "left to the system").problems
    with pytest.raises(RestoreError, match="disk"):
        restore(entries, store, tmp_path / "out", RestoreOptions(sync=True))


def test_nothing_is_left_in_the_target_beside_the_names(
    tree: Path, store: BuiltStore, tmp_path: Path
) -> None:
    restore(take(tree, store), store, tmp_path / "out")
    assert names_below(tree) == names_below(tmp_path / "out")


def test_progress_adds_up(tree: Path, store: BuiltStore, tmp_path: Path) -> None:
    seen = [0, 0]

    def progress(size: int, files: int) -> None:
        seen[0] += size
        seen[1] += files

    report = restore(take(tree, store), store, tmp_path / "out", RestoreOptions(progress=progress))
    assert [report.bytes, report.files] == seen


def test_missing_parents_are_made(store: BuiltStore, tmp_path: Path) -> None:
    content = store.content(b"x")
    store.flush()
    report = restore([file(b"home/u/llm/x", content)], store, tmp_path / "new" / "out")
    assert [] == report.problems
    assert b"x" == (tmp_path / "new/out/home/u/llm/x").read_bytes()


def test_the_target_itself_may_be_a_symlink(store: BuiltStore, tmp_path: Path) -> None:
    content = store.content(b"x")
    store.flush()
    (tmp_path / "real").mkdir()
    (tmp_path / "out").symlink_to("real")
    assert [] == restore([file(b"x", content)], store, tmp_path / "out").problems
    assert b"x" == (tmp_path / "real/x").read_bytes()


def test_a_target_that_is_a_file_is_refused(store: BuiltStore, tmp_path: Path) -> None:
    (tmp_path / "out").write_bytes(b"")
    with pytest.raises(RestoreError, match="out"):
        restore([], store, tmp_path / "out")


def test_two_tiers_may_overlap(store: BuiltStore, tmp_path: Path) -> None:
    one, two = store.content(b"one"), store.content(b"two")
    store.flush()
    first = [directory(b"d"), file(b"d/a", one), symlink(b"d/s", b"x"), file(b"e", one)]
    second = [directory(b"d"), file(b"d/a", one), file(b"d/b", two), symlink(b"d/s", b"x"),
              file(b"e", two)]  # fmt: skip
    report = restore([*first, *second], store, tmp_path / "out")
    assert [b"e"] == [problem.path for problem in report.problems]
    assert "other content" in report.problems[0].reason
    assert b"one" == (tmp_path / "out/e").read_bytes()
    assert b"two" == (tmp_path / "out/d/b").read_bytes()
    assert 2 == report.kept


def test_names_of_one_file_in_two_tiers_are_linked(store: BuiltStore, tmp_path: Path) -> None:
    content = store.content(b"x" * 10_000)
    store.flush()
    tiers = [file(b"z", content, link=b"7:9"), file(b"a", content, link=b"7:9")]
    report = restore(tiers, store, tmp_path / "out")
    assert [] == report.problems
    assert (tmp_path / "out/a").samefile(tmp_path / "out/z")
    assert (1, 1) == (report.files, report.links)


def test_an_inode_number_that_two_hosts_share_links_nothing(
    store: BuiltStore, tmp_path: Path
) -> None:
    one, two = store.content(b"one"), store.content(b"two")
    store.flush()
    tiers = [file(b"z", one, link=b"7:9"), file(b"a", two, link=b"7:9")]
    assert [] == restore(tiers, store, tmp_path / "out").problems
    assert b"two" == (tmp_path / "out/a").read_bytes()
    assert b"one" == (tmp_path / "out/z").read_bytes()


def test_symlinks_and_fifos_may_have_several_names(store: BuiltStore, tmp_path: Path) -> None:
    entries = [
        Entry(b"f1", Kind.FIFO, Owner(0o600, os.geteuid(), os.getegid()), 5, link=b"1:1"),
        Entry(b"f2", Kind.FIFO, Owner(0o600, os.geteuid(), os.getegid()), 5, link=b"1:1"),
        Entry(b"s1", Kind.SYMLINK, Owner(0o777, os.geteuid(), os.getegid()), 5, target=b"t",
              link=b"1:2"),
        Entry(b"s2", Kind.SYMLINK, Owner(0o777, os.geteuid(), os.getegid()), 5, target=b"t",
              link=b"1:2"),
    ]  # fmt: skip
    assert [] == restore(entries, store, tmp_path / "out").problems
    inodes = [os.lstat(tmp_path / "out" / name).st_ino for name in ("f1", "f2", "s1", "s2")]
    assert inodes[0] == inodes[1]
    assert inodes[2] == inodes[3]


def test_a_file_that_changed_while_it_was_read_comes_with_a_doubt(
    store: BuiltStore, tmp_path: Path
) -> None:
    content = store.content(b"x")
    store.flush()
    report = restore([file(b"x", content, flags=INCONSISTENT)], store, tmp_path / "out")
    assert [(b"x", False)] == [(p.path, p.left_out) for p in report.problems]
    assert b"x" == (tmp_path / "out/x").read_bytes()


def test_what_can_be_read_of_a_tier_is_restored(store: BuiltStore, tmp_path: Path) -> None:
    """A page is damaged: what comes before it is there, whole, and the rest is told."""
    content = store.content(b"x")
    store.flush()

    def entries() -> Iterator[Entry]:
        yield directory(b"d")
        yield file(b"d/a", content, link=b"1:1")
        yield file(b"d/b", content, link=b"1:1")
        raise DamageError("a page is damaged", where="pack 1")

    report = restore_entries(entries(), store.reader, tmp_path / "out")
    assert (tmp_path / "out/d/a").samefile(tmp_path / "out/d/b")
    assert 1_000_000_007 == (tmp_path / "out/d").stat().st_mtime_ns
    assert 0o755 == stat.S_IMODE((tmp_path / "out/d").stat().st_mode)
    (problem,) = report.problems
    assert b"d/b" == problem.path
    assert "a page is damaged" in problem.reason
    assert 1 == report.damaged


def test_an_interrupted_restore_leaves_whole_files_only(store: BuiltStore, tmp_path: Path) -> None:
    large = random.Random(2).randbytes(9_000_000)
    contents = {b"%03d" % n: store.content(large[n:]) for n in range(3)}
    store.flush()

    def interrupt(size: int, files: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        restore([file(name, content) for name, content in contents.items()], store,
                tmp_path / "out", RestoreOptions(progress=interrupt))  # fmt: skip
    assert [] == names_below(tmp_path / "out")


@pytest.mark.root
def test_devices_come_back(store: BuiltStore, tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    os.mknod(tmp_path / "tree/null", stat.S_IFCHR | 0o666, os.makedev(1, 3))
    os.mknod(tmp_path / "tree/loop", stat.S_IFBLK | 0o660, os.makedev(7, 0))
    os.mknod(tmp_path / "tree/whiteout", stat.S_IFCHR, os.makedev(0, 0))
    os.chmod(tmp_path / "tree/null", 0o666)
    os.chown(tmp_path / "tree/loop", 3, 6)
    assert [] == restore(take(tmp_path / "tree", store), store, tmp_path / "out").problems
    assert facts(tmp_path / "tree") == facts(tmp_path / "out")


def test_rsync_finds_no_difference(tree: Path, store: BuiltStore, tmp_path: Path) -> None:
    """A second opinion."""
    restore(take(tree, store), store, tmp_path / "out")
    command = ["rsync", "-aHAXSnic", "--delete", f"{tree}/", f"{tmp_path / 'out'}/"]
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except FileNotFoundError:
        pytest.skip("rsync is not installed")
    changed = [line for line in done.stdout.splitlines() if line.split(" ", 1)[-1] != "./"]
    assert ([], "") == (changed, done.stderr)
