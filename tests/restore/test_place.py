"""The native calls that make small files and dress directories, seen from Python."""

import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from cas._native import dress_directories, place_files, sync_file_system

OURS = (os.geteuid(), os.getegid())
TIMES = [0, 1, -1, -1_500_000_000, 1_600_000_000_123_456_789, 4_000_000_000_000_000_000]

Plain = tuple[int, tuple[int, int] | None, int | None]


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[int]:
    fd = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
    yield fd
    os.close(fd)


def place(
    directory: int, name: bytes, data: bytes = b"data", plain: Plain = (0o644, None, 0)
) -> int:
    [done] = place_files(data, [(directory, name, len(data), plain)])
    return done


@pytest.mark.parametrize("data", [b"", b"x", bytes(70_000), os.urandom(2**20)], ids=len)
def test_a_file_has_its_bytes(directory: int, tmp_path: Path, data: bytes) -> None:
    assert 0 == place(directory, b"f", data)
    assert data == (tmp_path / "f").read_bytes()
    assert ["f"] == os.listdir(tmp_path)


@pytest.mark.parametrize("mode", [0, 0o400, 0o600, 0o644, 0o777, 0o1777, 0o4755, 0o6711])
@pytest.mark.parametrize("umask", [0, 0o022, 0o777])
def test_a_file_has_its_mode_whatever_the_umask(
    directory: int, tmp_path: Path, mode: int, umask: int
) -> None:
    before = os.umask(umask)
    try:
        assert 0 == place(directory, b"f", plain=(mode, OURS, 0))
    finally:
        os.umask(before)
    assert mode == stat.S_IMODE((tmp_path / "f").stat().st_mode)


@pytest.mark.parametrize("mtime_ns", TIMES)
def test_times_are_exact(directory: int, tmp_path: Path, mtime_ns: int) -> None:
    os.mkdir(tmp_path / "d")
    assert 0 == place(directory, b"f", plain=(0o644, None, mtime_ns))
    assert [0] == dress_directories([(directory, b"d", (0o700, None, mtime_ns))])
    for name in ("f", "d"):
        assert mtime_ns == (tmp_path / name).stat().st_mtime_ns


def test_what_is_none_stays(directory: int, tmp_path: Path) -> None:
    os.mkdir(tmp_path / "d")
    os.utime(tmp_path / "d", ns=(5, 5))
    assert [0] == dress_directories([(directory, b"d", (0o750, None, None))])
    found = (tmp_path / "d").stat()
    assert (0o750, 5, OURS) == (stat.S_IMODE(found.st_mode), found.st_mtime_ns,
                                (found.st_uid, found.st_gid))  # fmt: skip


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_setuid_outlives_the_change_of_owner(directory: int, tmp_path: Path) -> None:
    os.mkdir(tmp_path / "d")
    assert 0 == place(directory, b"f", plain=(0o6755, (1234, 5678), 0))
    assert [0] == dress_directories([(directory, b"d", (0o2755, (1234, 5678), 0))])
    for name, mode in (("f", 0o6755), ("d", 0o2755)):
        found = (tmp_path / name).stat()
        assert (mode, 1234, 5678) == (stat.S_IMODE(found.st_mode), found.st_uid, found.st_gid)


def test_contents_lie_end_to_end(directory: int, tmp_path: Path) -> None:
    lengths = {b"a": 3, b"b": 0, b"c": 4}
    files = [(directory, name, length, (0o600, None, 0)) for name, length in lengths.items()]
    assert [0, 0, 0] == place_files(b"onetwo!...", files)
    assert [b"one", b"", b"two!"] == [(tmp_path / name).read_bytes() for name in "abc"]


def test_contents_that_end_early_make_nothing(directory: int, tmp_path: Path) -> None:
    for length in (2, 2**63):
        files = [(directory, b"a", 3, (0o600, None, 0)), (directory, b"b", length, (0, None, 0))]
        with pytest.raises(ValueError, match="more than there is"):
            place_files(b"1234", files)
    assert [] == os.listdir(tmp_path)


@pytest.mark.parametrize("make", [
    lambda path: path.write_bytes(b"kept"),
    lambda path: path.mkdir(),
    lambda path: path.symlink_to("nowhere"),
    os.mkfifo,
], ids=["file", "directory", "dangling symlink", "fifo"])  # fmt: skip
def test_a_name_that_is_taken_stays(directory: int, tmp_path: Path, make: object) -> None:
    assert callable(make)
    make(tmp_path / "f")
    before = os.lstat(tmp_path / "f")
    assert errno.EEXIST == place(directory, b"f")
    after = os.lstat(tmp_path / "f")
    assert (before.st_ino, before.st_mtime_ns, before.st_size) == (
        after.st_ino, after.st_mtime_ns, after.st_size)  # fmt: skip
    assert ["f"] == os.listdir(tmp_path)


@pytest.mark.parametrize("name", [b"", b".", b"..", b"a/b", b"../f", b"/f", b"a\0b"])
def test_what_is_no_name_is_refused(directory: int, tmp_path: Path, name: bytes) -> None:
    (tmp_path / "a").mkdir()
    assert errno.EINVAL == place(directory, name)
    assert [errno.EINVAL] == dress_directories([(directory, name, (0o700, None, 0))])
    assert ["a"] == os.listdir(tmp_path)


def test_one_that_fails_does_not_keep_the_others(directory: int, tmp_path: Path) -> None:
    names = (b"a", b"a", b"b")
    files = [(directory, name, 1, (0o600, None, 0)) for name in names]
    assert [0, errno.EEXIST, 0] == place_files(b"123", files)
    assert [b"1", b"3"] == [(tmp_path / name).read_bytes() for name in "ab"]


def test_a_symlink_is_not_dressed_as_a_directory(directory: int, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir(mode=0o755)
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "file").write_bytes(b"")
    for name in (b"link", b"file"):
        [done] = dress_directories([(directory, name, (0o700, None, 0))])
        assert done in (errno.ENOTDIR, errno.ELOOP)
    assert 0o755 == stat.S_IMODE((tmp_path / "real").stat().st_mode)


def test_no_descriptor_is_left_open(directory: int, tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    before = os.listdir("/proc/self/fd")
    assert [0, errno.EEXIST] == [place(directory, b"f") for _ in range(2)]
    dress_directories([(directory, b"d", (0o700, None, 0)), (directory, b"f", (0o700, None, 0))])
    assert before == os.listdir("/proc/self/fd")


def test_a_file_system_is_synced_by_what_is_open_on_it(directory: int) -> None:
    sync_file_system(directory)
    with pytest.raises(OSError, match="Errno 9"):
        sync_file_system(-1)
