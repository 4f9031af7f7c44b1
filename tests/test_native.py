"""The compiled part, seen from Python; its arithmetic has tests of its own in cas/native."""

import errno
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib import metadata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import cas
from cas._native import (
    Status,
    cpu_features,
    crc32c,
    describe,
    look,
    look_at_open,
    look_into,
    sort_records,
)

# The check value of the catalogue of CRCs, then RFC 3720, B.4.
VECTORS = [
    (b"", 0x00000000),
    (b"123456789", 0xE3069283),
    (bytes(32), 0x8A9136AA),
    (b"\xff" * 32, 0x62A8AB43),
    (bytes(range(32)), 0x46DD794E),
    (bytes(reversed(range(32))), 0x113FDB5C),
    (
        bytes.fromhex("01c00000 00000000 00000000 00000000 14000000 00000400")
        + bytes.fromhex("00000014 00000018 28000000 00000000 02000000 00000000"),
        0xD9963A56,
    ),
]


@pytest.mark.parametrize(("data", "expected"), VECTORS)
def test_known_answers(data: bytes, expected: int) -> None:
    assert expected == crc32c(data)


@given(st.binary(max_size=200), st.integers(0, 200))
def test_two_parts_give_what_the_whole_gives(data: bytes, cut: int) -> None:
    assert crc32c(data) == crc32c(data[cut:], crc32c(data[:cut]))


@given(st.binary(min_size=1, max_size=200), st.data())
def test_a_flipped_bit_changes_it(data: bytes, draw: st.DataObject) -> None:
    bit = draw.draw(st.integers(0, len(data) * 8 - 1))
    other = bytearray(data)
    other[bit // 8] ^= 1 << bit % 8
    assert crc32c(data) != crc32c(other)


@pytest.mark.parametrize("size", [9, 64 * 1024 - 1, 64 * 1024, 3_000_001])
def test_every_kind_of_buffer(size: int) -> None:
    data = bytes(i * 37 & 0xFF for i in range(251)) * (size // 251 + 1)
    data = data[:size]
    expected = crc32c(data)
    assert expected == crc32c(bytearray(data))
    assert expected == crc32c(memoryview(b"x" + data)[1:])
    assert crc32c(data[::3]) == crc32c(memoryview(data)[::3])


def test_threads_get_what_one_gets() -> None:
    blocks = [bytes([i]) * 1_000_000 for i in range(16)]
    with ThreadPoolExecutor(4) as pool:
        assert [crc32c(block) for block in blocks] == list(pool.map(crc32c, blocks))


@pytest.mark.parametrize("data", ["text", 5, [1, 2], None])
def test_what_has_no_bytes_is_refused(data: object) -> None:
    with pytest.raises(TypeError):
        crc32c(data)  # type: ignore[arg-type]  # the point of the test


@pytest.mark.parametrize("value", [-1, 2**32])
def test_a_value_of_more_than_32_bits_is_refused(value: int) -> None:
    with pytest.raises(OverflowError):
        crc32c(b"", value)


def test_cpu_features_are_named_as_the_kernel_names_them() -> None:
    words = Path("/proc/cpuinfo").read_text().split()
    assert {name: name in words for name in cpu_features()} == cpu_features()


def test_the_version_is_that_of_the_package() -> None:
    """Which is the crate's: Cargo.toml has the other place that says it."""
    assert cas.__version__ == metadata.version("cas-sync")


FIELDS = (
    *("st_mode", "st_uid", "st_gid", "st_nlink", "st_dev", "st_ino", "st_rdev", "st_size"),
    *("st_blocks", "st_mtime_ns", "st_ctime_ns"),
)


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[int]:
    """A descriptor of a directory that has a bit of everything, with names of any bytes."""
    (tmp_path / "d").mkdir()
    (tmp_path / "d/inner").touch()
    (tmp_path / os.fsdecode(b"\xff")).write_bytes(bytes(10_000))
    (tmp_path / "link").symlink_to("d")
    os.mkfifo(tmp_path / "pipe")
    os.utime(tmp_path / "pipe", ns=(0, -1))
    fd = os.open(tmp_path, os.O_RDONLY)
    yield fd
    os.close(fd)


def same(expected: os.stat_result, status: Status) -> bool:
    return all(getattr(expected, name) == getattr(status, name) for name in FIELDS)


def test_statuses_are_those_of_the_system(directory: int) -> None:
    items, stops = look_into(directory, b".", 0, 4, b"at/")
    assert [b"at/d", b"at/link", b"at/pipe", b"at/\xff"] == [path for path, _ in items]
    assert [0] == stops
    for path, status in items:
        assert isinstance(status, Status)
        name = path.removeprefix(b"at/")
        expected = os.stat(name, dir_fd=directory, follow_symlinks=False)
        assert same(expected, status)
        assert same(expected, look(directory, name))
        assert status.identity(True) == look(directory, name).identity(True)
    assert same(os.fstat(directory), look_at_open(directory))
    assert ([(b"inner", None)], [0]) == look_into(directory, b"d", 0, 0, b"")


def test_a_description_is_made_of_paths_and_identities(directory: int) -> None:
    items = [(name, look(directory, name)) for name in (b"d", b"pipe")]
    paths, identities, devices = describe(items)
    assert paths == b"d\0pipe\0"
    assert identities == b"".join(status.identity(True) for _, status in items)
    assert devices == [os.fstat(directory).st_dev]
    assert describe([]) == (b"", b"", [])
    with pytest.raises(TypeError):
        describe([(b"d", 2)])  # type: ignore[list-item]


def errno_of(call: Callable[[], object]) -> int | None:
    try:
        call()
    except OSError as error:
        return error.errno
    return None


def test_what_cannot_be_looked_at_is_an_os_error(directory: int) -> None:
    with pytest.raises(FileNotFoundError):
        look(directory, b"gone")
    with pytest.raises(NotADirectoryError):
        look_into(directory, b"pipe", 0, 10, b"")
    through_link = errno_of(lambda: look_into(directory, b"link", os.O_NOFOLLOW, 10, b""))
    assert through_link in (errno.ENOTDIR, errno.ELOOP)
    assert errno.EBADF == errno_of(lambda: look_at_open(-1))
    assert errno.ENAMETOOLONG == errno_of(lambda: look(directory, b"x" * 256))
    assert errno.EINVAL == errno_of(lambda: look(directory, b"a\0b"))


def test_a_directory_is_open_only_while_it_is_looked_into(directory: int) -> None:
    before = os.listdir("/proc/self/fd")
    for _ in range(10):
        look_into(directory, b"d", os.O_NOFOLLOW, 10, b"")
    assert before == os.listdir("/proc/self/fd")


@given(st.integers(1, 50), st.data())
def test_records_are_sorted_as_lists_of_bytes_are(size: int, draw: st.DataObject) -> None:
    records = draw.draw(st.lists(st.binary(min_size=size, max_size=size), max_size=200))
    joined = b"".join(records)
    for data in (joined, bytearray(joined), memoryview(joined)):
        assert b"".join(sorted(records)) == sort_records(data, size)


def test_what_is_no_whole_records_is_refused() -> None:
    for size in (0, 3):
        with pytest.raises(ValueError, match="even"):
            sort_records(b"abcd", size)
    for size in (-1, 2**64):
        with pytest.raises(OverflowError):
            sort_records(b"abcd", size)


def test_records_are_sorted_while_other_threads_go_on() -> None:
    data = os.urandom(48 * 100_000)
    records = sorted(data[at : at + 48] for at in range(0, len(data), 48))
    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(sort_records, [data] * 4, [48] * 4):
            assert b"".join(records) == found
