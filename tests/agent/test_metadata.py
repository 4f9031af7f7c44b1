import os
import pwd
import shutil
import socket
import subprocess
from pathlib import Path

import pytest

from cas._native import Status, look
from cas.agent.mounts import Mounts
from cas.agent.pages import signature
from cas.entry import Entry, Kind
from tests.agent.trees import scan


def entry_of(path: Path) -> Entry:
    done = scan(path.parent)
    assert [] == done.problems
    return done.below(path.parent)[os.fsencode(path.name)]


def run(*command: str | Path) -> None:
    """Run a tool that sets attributes; skip where it or the file system cannot."""
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is missing")
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"{command[0]}: {done.stderr.strip()}")


def test_kinds(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "f").touch()
    (tmp_path / "l").symlink_to(os.fsdecode(b"\xff/x"))
    os.mkfifo(tmp_path / "p")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(os.fspath(tmp_path / "s"))
    found = scan(tmp_path).below(tmp_path)
    kinds = [Kind.DIRECTORY, Kind.FILE, Kind.SYMLINK, Kind.FIFO, Kind.SOCKET]
    assert kinds == [found[name].kind for name in (b"d", b"f", b"l", b"p", b"s")]
    assert b"\xff/x" == found[b"l"].target


@pytest.mark.root
def test_devices_and_whiteouts(tmp_path: Path) -> None:
    os.mknod(tmp_path / "whiteout", 0o600 | 0o020000, os.makedev(0, 0))
    os.mknod(tmp_path / "null", 0o666 | 0o020000, os.makedev(1, 3))
    os.mknod(tmp_path / "disk", 0o660 | 0o060000, os.makedev(259, 70000))
    found = scan(tmp_path).below(tmp_path)
    assert (Kind.CHARACTER_DEVICE, (0, 0)) == (found[b"whiteout"].kind, found[b"whiteout"].device)
    assert (Kind.CHARACTER_DEVICE, (1, 3)) == (found[b"null"].kind, found[b"null"].device)
    assert (Kind.BLOCK_DEVICE, (259, 70000)) == (found[b"disk"].kind, found[b"disk"].device)


def test_mode_owner_and_time(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.touch()
    path.chmod(0o4751)
    os.utime(path, ns=(0, 1_234_567_890_123_456_789))
    entry = entry_of(path)
    owner = entry.owner
    assert (0o4751, os.geteuid(), os.getegid()) == (owner.mode, owner.uid, owner.gid)
    assert pwd.getpwuid(os.geteuid()).pw_name.encode() == owner.user
    assert 1_234_567_890_123_456_789 == entry.mtime_ns


@pytest.mark.root
def test_owners_without_a_name(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.touch()
    os.chown(path, 3_999_999_999, 3_999_999_998)
    owner = entry_of(path).owner
    assert (3_999_999_999, b"") == (owner.uid, owner.user)
    assert (3_999_999_998, b"") == (owner.gid, owner.group)


def test_times_before_1970(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.touch()
    os.utime(path, ns=(0, -1_500_000_001))
    assert -1_500_000_001 == entry_of(path).mtime_ns


def test_names_of_one_inode_share_a_link(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    (tmp_path / "a/x").write_bytes(b"x")
    (tmp_path / "b/y").hardlink_to(tmp_path / "a/x")
    (tmp_path / "b/z").write_bytes(b"x")
    (tmp_path / "a/s").symlink_to("x")
    os.link(tmp_path / "a/s", tmp_path / "b/s", follow_symlinks=False)
    done = scan(tmp_path)
    found = done.below(tmp_path)
    assert found[b"a/x"].link == found[b"b/y"].link != b""
    assert found[b"a/s"].link == found[b"b/s"].link != b""
    assert found[b"a/x"].link != found[b"a/s"].link
    assert b"" == found[b"b/z"].link == found[b"a"].link
    assert found[b"a/x"].content == found[b"b/y"].content
    assert 2 == done.progress.files_read


@pytest.mark.parametrize("kind", ["file", "directory"])
def test_attributes_of_users(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "x"
    if kind == "file":
        path.write_bytes(b"x")
    else:
        path.mkdir()
    pairs = [(b"user.overlay.opaque", b"y"), (b"user.\xff", b"\0\xff"), (b"user.empty", b"")]
    try:
        for name, value in pairs:
            os.setxattr(path, name, value)
    except OSError as error:
        pytest.skip(f"no attributes here: {error}")
    assert tuple(sorted(pairs)) == entry_of(path).xattrs


@pytest.mark.root
def test_attributes_of_links_and_specials(tmp_path: Path) -> None:
    (tmp_path / "l").symlink_to("missing")
    os.mkfifo(tmp_path / "p")
    os.mknod(tmp_path / "w", 0o600 | 0o020000, os.makedev(0, 0))
    for name in ("l", "p", "w"):
        os.setxattr(tmp_path / name, "trusted.overlay.x", name.encode(), follow_symlinks=False)
    found = scan(tmp_path).below(tmp_path)
    for path in (b"l", b"p", b"w"):
        assert ((b"trusted.overlay.x", path),) == found[path].xattrs


def test_access_lists(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "f").touch()
    run("setfacl", "-m", "u:12345:r", tmp_path / "f")
    run("setfacl", "-d", "-m", "u:12345:rx", tmp_path / "d")
    found = scan(tmp_path).below(tmp_path)
    assert [b"system.posix_acl_access"] == [name for name, _ in found[b"f"].xattrs]
    assert [b"system.posix_acl_default"] == [name for name, _ in found[b"d"].xattrs]
    assert os.getxattr(tmp_path / "f", "system.posix_acl_access") == found[b"f"].xattrs[0][1]


@pytest.mark.root
def test_capabilities(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"x")
    run("setcap", "cap_net_raw+ep", path)
    attributes = dict(entry_of(path).xattrs)
    assert os.getxattr(path, "security.capability") == attributes[b"security.capability"]


def status_of(path: Path) -> Status:
    fd = os.open(path.parent, os.O_RDONLY)
    try:
        return look(fd, os.fsencode(path.name))
    finally:
        os.close(fd)


def identity_of(path: Path) -> bytes:
    return Mounts().identity(status_of(path))


def test_identity_tells_what_matters(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"one")
    first, before = identity_of(path), path.stat()
    assert identity_of(path) == first
    # The same size and time of modification, but written in between.
    path.write_bytes(b"two")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert (before.st_size, before.st_mtime_ns) == (path.stat().st_size, path.stat().st_mtime_ns)
    assert identity_of(path) != first


def test_names_of_one_inode_say_which(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.touch()
    alone = identity_of(path)
    (tmp_path / "y").hardlink_to(path)
    one, other = identity_of(path), identity_of(tmp_path / "y")
    assert one == other
    assert len(one) > len(alone)


def test_where_inode_numbers_change_they_are_not_in_identities(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "x").touch()
    items = [(b"x", status_of(tmp_path / "x"))]
    stable, mounts = signature(items, Mounts()), Mounts()
    monkeypatch.setattr(mounts, "type_of", lambda _: "vfat")
    assert mounts.identity(items[0][1]) == items[0][1].identity(False)
    assert signature(items, mounts) != stable == signature(items, Mounts())


def test_times_that_64_bits_do_not_hold_have_an_identity_too(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.touch()
    try:
        os.utime(path, (0, 2.0**34 - 2**31 - 1))
    except OverflowError:
        pytest.skip("no such times here")
    assert identity_of(path) == identity_of(path)
    assert path.stat().st_mtime_ns == status_of(path).st_mtime_ns
    assert min(path.stat().st_mtime_ns, 2**63 - 1) == entry_of(path).mtime_ns
