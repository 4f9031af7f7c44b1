"""Owners, modes, attributes and times, for root and for anybody else."""

import errno
import grp
import os
import pwd
import stat
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from cas.entry import Entry, Kind, Owner
from cas.restore.report import RestoreOptions, RestoreReport
from cas.restore.tree import restore_entries
from tests.restore.child import in_child
from tests.restore.trees import MINE, facts, file, take
from tests.store.build import BuiltStore

NOBODY = 65534
# One capability (CAP_NET_BIND_SERVICE) in the kernel's own form, version 2 (capability.h).
CAPABILITY = bytes.fromhex("0100000200040000000000000000000000000000")


@pytest.fixture
def store(tmp_path: Path) -> BuiltStore:
    return BuiltStore(tmp_path / "store")


def restore(
    entries: list[Entry], store: BuiltStore, target: Path, options: RestoreOptions | None = None
) -> RestoreReport:
    store.flush()
    return restore_entries(entries, store.reader, target, options)


def every_kind(store: BuiltStore, owner: Owner) -> list[Entry]:
    content = store.content(b"x")
    return [
        Entry(b"d", Kind.DIRECTORY, owner, 11),
        Entry(b"d/f", Kind.FILE, owner, 12, 1, content),
        Entry(b"p", Kind.FIFO, owner, 13),
        Entry(b"s", Kind.SYMLINK, Owner(0o777, owner.uid, owner.gid), 14, target=b"d/f"),
        Entry(b"u", Kind.SOCKET, owner, 15),
    ]


@pytest.mark.root
@pytest.mark.parametrize("mode", [0o6755, 0o1777, 0o000, 0o4711])
def test_root_restores_owner_and_mode(store: BuiltStore, tmp_path: Path, mode: int) -> None:
    entries = every_kind(store, Owner(mode, 1234, 2345))
    assert [] == restore(entries, store, tmp_path / "out").problems
    for entry in entries:
        found = os.lstat(os.path.join(os.fsencode(tmp_path / "out"), entry.path))
        assert (1234, 2345, entry.mtime_ns) == (found.st_uid, found.st_gid, found.st_mtime_ns)
        if entry.kind is not Kind.SYMLINK:
            assert mode == stat.S_IMODE(found.st_mode)


@pytest.mark.root
def test_owners_by_name_and_by_number(store: BuiltStore, tmp_path: Path) -> None:
    known = Owner(0o644, 4000, 4001, b"nobody", grp.getgrgid(0).gr_name.encode())
    unknown = Owner(0o644, 4000, 4001, b"no such user", b"no\xffgroup")
    unnamed = Owner(0o644, 4000, 4001)
    content = store.content(b"x")
    entries = [
        Entry(name, Kind.FILE, owner, 5, 1, content)
        for name, owner in ((b"a", known), (b"b", unknown), (b"c", unnamed))
    ]
    restore(entries, store, tmp_path / "names", RestoreOptions(by_name=True))
    restore(entries, store, tmp_path / "numbers")
    nobody = pwd.getpwnam("nobody").pw_uid

    def owners(where: str) -> list[tuple[int, int]]:
        found = [(tmp_path / where / name).stat() for name in ("a", "b", "c")]
        return [(one.st_uid, one.st_gid) for one in found]

    assert [(nobody, 0), (4000, 4001), (4000, 4001)] == owners("names")
    assert [(4000, 4001)] * 3 == owners("numbers")


def test_attributes_come_back_also_where_the_mode_forbids_writing(
    store: BuiltStore, tmp_path: Path
) -> None:
    root = tmp_path / "tree"
    (root / "d").mkdir(parents=True)
    (root / "d/f").write_bytes(b"x")
    try:
        os.setxattr(root / "d/f", "user.name", b"\0value\xff")
    except OSError as error:
        pytest.skip(f"no attributes here: {error}")
    os.setxattr(root / "d/f", b"user.\xff", b"")
    os.setxattr(root / "d", "user.of-a-directory", b"v" * 1000)
    (root / "d/f").chmod(0o400)
    (root / "d").chmod(0o500)
    report = restore(take(root, store), store, tmp_path / "out")
    assert [] == report.problems
    assert facts(root) == facts(tmp_path / "out")


@pytest.mark.root
def test_capabilities_are_set_after_the_owner(store: BuiltStore, tmp_path: Path) -> None:
    content = store.content(b"x")
    entry = Entry(b"f", Kind.FILE, Owner(0o755, 1000, 1000), 5, 1, content,
                  xattrs=((b"security.capability", CAPABILITY),))  # fmt: skip
    assert [] == restore([entry], store, tmp_path / "out").problems
    assert CAPABILITY == os.getxattr(tmp_path / "out/f", "security.capability")


@pytest.mark.root
def test_trusted_attributes_come_back_also_of_symlinks_and_fifos(
    store: BuiltStore, tmp_path: Path
) -> None:
    root = tmp_path / "tree"
    root.mkdir()
    os.mkfifo(root / "p")
    (root / "s").symlink_to("nowhere")
    try:
        for name in ("p", "s"):
            os.setxattr(root / name, "trusted.x", name.encode(), follow_symlinks=False)
    except OSError as error:
        pytest.skip(f"no trusted attributes here: {error}")
    assert [] == restore(take(root, store), store, tmp_path / "out").problems
    assert facts(root) == facts(tmp_path / "out")


def test_access_control_lists_come_back(store: BuiltStore, tmp_path: Path) -> None:
    root = tmp_path / "tree"
    (root / "d").mkdir(parents=True)
    (root / "d/f").write_bytes(b"x")
    try:
        subprocess.run(["setfacl", "-m", "u:12345:rw,g:54321:r", root / "d/f"], check=True,
                       stderr=subprocess.DEVNULL)  # fmt: skip
        subprocess.run(["setfacl", "-m", "u:12345:rwx,d:u:12345:r", root / "d"], check=True,
                       stderr=subprocess.DEVNULL)  # fmt: skip
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"no access control lists here: {error}")
    assert [] == restore(take(root, store), store, tmp_path / "out").problems
    assert facts(root) == facts(tmp_path / "out")

    def lists(place: Path) -> bytes:
        command = ["getfacl", "-n", "-R", "."]
        return subprocess.run(command, cwd=place, capture_output=True, check=True).stdout

    assert lists(root) == lists(tmp_path / "out")


@pytest.mark.parametrize(
    "name", [b"user.\0", b"nonsense", b"system.nonsense", b"user." + b"x" * 300]
)
def test_an_attribute_that_cannot_be_is_told_and_costs_nothing_else(
    store: BuiltStore, tmp_path: Path, name: bytes
) -> None:
    content = store.content(b"x")
    entries = [file(b"%d" % n, content, xattrs=((name, b"v"),)) for n in range(3)]
    report = restore(entries, store, tmp_path / "out")
    assert 3 == report.files
    assert report.problems
    assert not any(problem.left_out for problem in report.problems)
    assert all("attribute" in problem.reason for problem in report.problems)


def test_what_may_be_so_of_very_many_is_told_once(
    store: BuiltStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def setxattr(*a: object, **k: object) -> None:
        raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))

    monkeypatch.setattr(os, "setxattr", setxattr)
    content = store.content(b"x")
    label = ((b"security.selinux", b"label"), (b"user.a", b"v"))
    entries = [file(b"%02d" % n, content, xattrs=label) for n in range(30)]
    report = restore(entries, store, tmp_path / "out")
    assert 30 == report.files
    assert ["29 more" in problem.reason for problem in report.problems] == [True, True]


@pytest.mark.parametrize("mtime_ns", [0, -1, -(10**18), 1, 4 * 10**18, 2**63 - 1, -(2**63)])
def test_any_time_is_taken(store: BuiltStore, tmp_path: Path, mtime_ns: int) -> None:
    """As near as the file system can: what it cannot express it clips."""
    content = store.content(b"x")
    entries = [Entry(b"f", Kind.FILE, MINE, mtime_ns, 1, content)]
    assert 1 == restore(entries, store, tmp_path / "out").files
    if abs(mtime_ns) < 10**18:
        assert mtime_ns == (tmp_path / "out/f").stat().st_mtime_ns


def as_nobody(work: Callable[[], None]) -> None:
    """Do `work` in a process without privileges."""

    def unprivileged() -> str:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
        work()
        return ""

    in_child(unprivileged)


@pytest.fixture
def open_place(tmp_path: Path) -> Path:
    """Where nobody may write, and get to."""
    for place in (tmp_path, *tmp_path.parents):
        if Path(tempfile.gettempdir()) in place.parents:
            place.chmod(0o755)
    place = tmp_path / "open"
    place.mkdir()
    os.chown(place, NOBODY, NOBODY)
    return place


@pytest.mark.root
def test_without_privileges_everything_but_ownership_comes_back(
    store: BuiltStore, open_place: Path
) -> None:
    entries = every_kind(store, Owner(0o4755, 0, 0))
    store.flush()

    def work() -> None:
        report = restore_entries(entries, store.reader, open_place / "out")
        assert (1, 1, 1, 2) == (report.files, report.directories, report.symlinks, report.specials)
        (problem,) = report.problems
        assert not problem.left_out
        assert "only root" in problem.reason
        assert "4 more" in problem.reason
        found = (open_place / "out/d/f").stat()
        # What ran as its owner must not run as us.
        assert (NOBODY, NOBODY, 0o100755) == (found.st_uid, found.st_gid, found.st_mode)

    as_nobody(work)


@pytest.mark.root
def test_without_privileges_ones_own_files_come_back_whole(
    store: BuiltStore, open_place: Path
) -> None:
    entries = every_kind(store, Owner(0o6555, NOBODY, NOBODY))
    store.flush()

    def work() -> None:
        assert [] == restore_entries(entries, store.reader, open_place / "out").problems
        found = (open_place / "out/d/f").stat()
        assert (NOBODY, 0o106555, 12) == (found.st_uid, found.st_mode, found.st_mtime_ns)
        (open_place / "out/d").chmod(0o755)
        os.unlink(open_place / "out/d/f")
        (open_place / "out/d").chmod(0o555)
        # Into a directory that cannot be written to.
        report = restore_entries(entries, store.reader, open_place / "out")
        assert 1 == report.files
        assert 0o40555 | stat.S_ISUID | stat.S_ISGID == (open_place / "out/d").stat().st_mode

    as_nobody(work)


@pytest.mark.root
def test_without_privileges_devices_are_told(store: BuiltStore, open_place: Path) -> None:
    owner = Owner(0o600, NOBODY, NOBODY)
    entries = [
        Entry(b"c", Kind.CHARACTER_DEVICE, owner, 5, device=(1, 3)),
        *every_kind(store, owner),
    ]
    store.flush()

    def work() -> None:
        report = restore_entries(entries, store.reader, open_place / "out")
        assert [b"c"] == [problem.path for problem in report.problems if problem.left_out]
        assert 1 == report.files

    as_nobody(work)
