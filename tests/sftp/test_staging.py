"""Staged files: what a kill, a power cut or a change leaves of them."""

from __future__ import annotations

import errno
import os
import random
from pathlib import Path

import pytest

from cas.errors import StoreError
from cas.sftp.staging import Staging, staged_key
from cas.transport.sftp import PIECE, Attributes

SIZE = 5 * PIECE + 123
DATA = random.Random(7).randbytes(SIZE)
SEEN = Attributes(0o100644, SIZE, 0, 0, 1000)
KEY = staged_key(b"host", b"/a/file", SEEN)


def piece(number: int) -> bytes:
    return DATA[number * PIECE : (number + 1) * PIECE]


def missing(staging: Staging, key: bytes = KEY) -> list[int]:
    found = staging.lacking(key, SIZE)
    numbers = list(staging.missing(key, SIZE))
    assert found == sum(len(piece(number)) for number in numbers)
    return numbers


def staged(directory: Path, *numbers: int) -> Staging:
    staging = Staging(directory)
    assert [0, 1, 2, 3, 4, 5] == missing(staging)
    for number in numbers:
        staging.write(KEY, number, piece(number))
    return staging


def content(staging: Staging) -> bytes:
    fd = staging.open(KEY)
    try:
        return os.pread(fd, 2 * SIZE, 0)
    finally:
        os.close(fd)


def test_pieces_come_in_any_order(tmp_path: Path) -> None:
    staging = staged(tmp_path, 5, 0, 3)
    assert [1, 2, 4] == missing(staging)
    assert 2 * PIECE + 123 == staging.used
    for number in (4, 2, 1):
        staging.write(KEY, number, piece(number))
    assert [] == missing(staging)
    assert DATA == content(staging)
    staging.drop(KEY)
    assert 0 == staging.used
    staging.close()
    assert not tmp_path.exists()


def test_what_came_is_there_after_a_kill(tmp_path: Path) -> None:
    staged(tmp_path, 0, 5, 2)  # and nobody closes it
    again = Staging(tmp_path)
    assert 2 * PIECE + 123 == again.used
    assert [1, 3, 4] == missing(again)
    third = Staging(tmp_path)
    third.write(KEY, 1, piece(1))
    assert [3, 4] == missing(Staging(tmp_path))


def test_a_journal_cut_at_any_byte_costs_pieces_only(tmp_path: Path) -> None:
    staged(tmp_path, 0, 1, 2)
    journal = tmp_path / "journal"
    whole = journal.read_bytes()
    assert 3 * 40 == len(whole)
    for end in range(len(whole)):
        journal.write_bytes(whole[:end])
        (tmp_path / KEY.hex()).write_bytes(DATA)
        found = missing(Staging(tmp_path))
        assert list(range(end // 40, 6)) == found


def test_a_piece_whose_bytes_were_lost_is_not_believed(tmp_path: Path) -> None:
    staged(tmp_path, 0, 1, 2, 5)
    with (tmp_path / KEY.hex()).open("r+b") as file:
        file.seek(PIECE + 1000)
        file.write(bytes(10))
        file.truncate(3 * PIECE - 1)
    again = Staging(tmp_path)
    assert [1, 2, 3, 4, 5] == missing(again)
    assert PIECE == again.used


def test_what_is_left_of_another_version_goes(tmp_path: Path) -> None:
    staging = staged(tmp_path, 0, 1)
    newer = staged_key(b"host", b"/a/file", Attributes(0o100644, SIZE, 0, 0, 1001))
    other = staged_key(b"host", b"/a/other", SEEN)
    staging.write(other, 0, piece(0))
    assert 6 == len(missing(staging, newer))
    assert not (tmp_path / KEY.hex()).exists()
    assert PIECE == staging.used
    again = Staging(tmp_path)
    again.drop_others({other})
    assert PIECE == again.used
    again.drop_others(set())
    assert 0 == again.used


def test_keys_tell_hosts_paths_sizes_and_times_apart() -> None:
    others = [
        staged_key(b"other", b"/a/file", SEEN),
        staged_key(b"host", b"/a/fil", SEEN),
        staged_key(b"host", b"/a/file", Attributes(0o100644, SIZE + 1, 0, 0, 1000)),
        staged_key(b"host", b"/a/file", Attributes(0o100644, SIZE, 0, 0, 1001)),
    ]
    assert 5 == len({KEY, *others})
    assert KEY == staged_key(b"host", b"/a/file", Attributes(0o100600, SIZE, 7, 7, 1000))


def test_strange_files_are_cleared_away(tmp_path: Path) -> None:
    staged(tmp_path, 0)
    (tmp_path / "journal.new").write_bytes(b"x")
    (tmp_path / ("0" * 32)).write_bytes(b"x")
    again = Staging(tmp_path)
    assert {"journal", KEY.hex()} == {path.name for path in tmp_path.iterdir()}
    assert [1, 2, 3, 4, 5] == missing(again)


def test_a_full_disk_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    staging = staged(tmp_path, 0)

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "pwrite", full)
    with pytest.raises(StoreError, match="No space left"):
        staging.write(KEY, 1, piece(1))
    monkeypatch.undo()
    assert [1, 2, 3, 4, 5] == missing(staging)
