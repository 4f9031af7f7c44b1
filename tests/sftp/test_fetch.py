"""Fetching a file that holds still, and files that do not."""

from __future__ import annotations

import asyncio
import os
import random
import time
from pathlib import Path
from typing import cast

import pytest

from cas.sftp import fetch as fetching
from cas.sftp.fetch import CHANGED, Fetched, Fetcher
from cas.sftp.pool import Pool
from cas.sftp.staging import Staging
from cas.transport.sftp import PIECE, Attributes
from tests.sftp.fakes import FilePool, OneFile

DATA = random.Random(8).randbytes(9 * PIECE + 77)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetching, "PAUSES", (0.0, 0.0))


def fetched(
    directory: Path, file: OneFile, seen: Attributes | None = None
) -> tuple[Fetched, bytes]:
    """What came of a file, and its staged bytes."""
    staging = Staging(directory)
    came: list[int] = []

    async def run() -> Fetched:
        fetcher = Fetcher(cast(Pool, FilePool(file)), staging, came.append)
        found = await fetcher.fetch(b"/file", seen or file.attributes)
        assert 0 == fetcher.in_transit
        return found

    found = asyncio.run(run())
    if not found.size:
        return found, b""
    fd = staging.open(found.key)
    try:
        return found, os.pread(fd, found.size, 0)
    finally:
        os.close(fd)


def test_a_file_comes_in_pieces_each_once(tmp_path: Path) -> None:
    file = OneFile(DATA)
    found, data = fetched(tmp_path, file)
    assert ("", DATA) == (found.doubt, data)
    assert 10 == len(set(file.reads)) == len(file.reads)
    again, data = fetched(tmp_path, file)
    assert (found, DATA) == (again, data)
    assert 10 == len(file.reads)


@pytest.mark.parametrize("size", [0, 1, PIECE - 1, PIECE, PIECE + 1])
def test_sizes_around_a_piece(tmp_path: Path, size: int) -> None:
    file = OneFile(DATA[:size])
    found, data = fetched(tmp_path, file)
    assert (size, "", DATA[:size]) == (found.size, found.doubt, data)


def test_one_that_changed_since_it_was_seen_is_fetched_as_it_is(tmp_path: Path) -> None:
    for old in (DATA[:100], DATA[: 3 * PIECE]):
        seen = OneFile(old, mtime=900).attributes
        found, data = fetched(tmp_path, OneFile(DATA), seen)
        assert ("", DATA) == (found.doubt, data)


@pytest.mark.parametrize("size", [500, len(DATA)])
def test_one_that_changes_once_meanwhile_begins_again(tmp_path: Path, size: int) -> None:
    file = OneFile(DATA[:size])

    def change(_: int) -> None:
        file.on_read = lambda _: None
        file.data, file.mtime = DATA[:size][::-1], 1001

    file.on_read = change
    found, data = fetched(tmp_path, file)
    assert (size, "", DATA[:size][::-1], 1001) == (found.size, found.doubt, data, found.seen.mtime)


@pytest.mark.parametrize("size", [500, len(DATA) - 1000])
def test_one_that_grows_all_the_time_is_taken_as_far_as_it_went(tmp_path: Path, size: int) -> None:
    file = OneFile(DATA[:size])

    def grow(_: int) -> None:
        file.data = DATA[: len(file.data) + 1]
        file.mtime += 1

    file.on_read = grow
    found, data = fetched(tmp_path, file)
    assert found.doubt == CHANGED
    assert found.size >= size
    assert DATA[: found.size] == data


@pytest.mark.parametrize("size", [5000, len(DATA)])
def test_one_that_shrinks_all_the_time_has_no_gap(tmp_path: Path, size: int) -> None:
    file = OneFile(DATA[:size])

    def shrink(_: int) -> None:
        file.data = file.data[: -len(file.data) // 50]
        file.mtime += 1

    file.on_read = shrink
    found, data = fetched(tmp_path, file)
    assert found.doubt == CHANGED
    assert found.size < size
    assert DATA[: found.size] == data
    assert len(file.reads) < 60


class Boaster(OneFile):
    """Says that there is much more of its file than there is."""

    size = 2**32

    @property
    def attributes(self) -> Attributes:
        return Attributes(0o100644, self.size, 0, 0, 1000)


def test_a_server_that_promises_more_than_there_is(tmp_path: Path) -> None:
    file = Boaster(DATA)
    found, data = fetched(tmp_path, file)
    assert (CHANGED, DATA) == (found.doubt, data)
    assert len(file.reads) < 1000


def test_what_no_disk_has_room_for_is_not_begun(tmp_path: Path) -> None:
    file = Boaster(DATA)
    file.size = 2**60
    with pytest.raises(OSError, match="no room"):
        fetched(tmp_path, file)
    assert [] == file.reads


def test_what_is_no_file_any_more_is_gone(tmp_path: Path) -> None:
    file = OneFile(DATA)

    def replace(_: int) -> None:
        file.is_file = False

    file.on_read = replace
    with pytest.raises(FileNotFoundError):
        fetched(tmp_path, file)


def test_one_that_was_modified_just_now_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetching, "SETTLING_SECONDS", 1.0)
    now = int(time.time())
    file = OneFile(DATA, mtime=now)
    _, data = fetched(tmp_path, file)
    assert time.time() >= now + 1
    assert DATA == data


def test_an_error_ends_all_of_it(tmp_path: Path) -> None:
    file = OneFile(DATA)

    def fail(offset: int) -> None:
        if offset == 3 * PIECE:
            raise PermissionError(13, "no")

    file.on_read = fail
    with pytest.raises(PermissionError):
        fetched(tmp_path, file)
