"""What is staged stays until it is stored, and no longer; and there is room for so much only."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import pytest

from cas.ids import Digest, digest_of
from cas.sftp import shelf as shelves
from cas.sftp.shelf import Opener, Shelf
from cas.sftp.staging import staged_key
from cas.transport.sftp import Attributes
from cli.pulling import Order, pull
from tests.sftp.job import ONLY_SFTP, job_in, settle, sums_below


class World:
    """A shelf with room for 100 bytes, and a store that holds what is in `stored`."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.stored: set[Digest] = set()
        self.shelf = Shelf(directory, self._holds, room=100)

    def _holds(self, chunks: Iterable[Digest]) -> bool:
        return self.stored.issuperset(chunks)

    def put(self, name: bytes, size: int) -> Digest:
        """Have a file on the shelf; its one chunk."""
        assert self.shelf.reserve(size)
        staging = self.shelf.tier("tier")
        key = staged_key(b"host", name, Attributes(0o100644, size, 0, 0, 5))
        staging.write(key, 0, name * size)
        chunk = digest_of(name * size)
        self.shelf.keep(name, staging, key, size, [chunk])
        return chunk

    def read(self, name: bytes) -> bytes:
        """What is staged."""
        with Opener(self.shelf) as opener:
            fd, _ = opener.regular_file(name)
        try:
            return os.read(fd, 1000)
        finally:
            os.close(fd)


def test_what_is_stored_goes(tmp_path: Path) -> None:
    world = World(tmp_path / "staging/far")
    a, b = world.put(b"a", 40), world.put(b"b", 60)
    assert b"a" * 40 == world.read(b"a")
    world.shelf.release()
    assert b"b" * 60 == world.read(b"b")
    world.stored.add(a)
    world.shelf.release()
    with pytest.raises(FileNotFoundError):
        world.read(b"a")
    world.stored.add(b)
    world.shelf.close()
    assert not (tmp_path / "staging").exists()


def test_what_is_not_stored_is_there_the_next_time(tmp_path: Path) -> None:
    world = World(tmp_path / "staging/far")
    world.put(b"a", 40)
    world.shelf.close()
    again = World(tmp_path / "staging/far")
    key = staged_key(b"host", b"a", Attributes(0o100644, 40, 0, 0, 5))
    assert 0 == again.shelf.tier("tier").lacking(key, 40)


def test_there_is_room_for_so_much(tmp_path: Path) -> None:
    world = World(tmp_path)
    a = world.put(b"a", 40)
    assert not world.shelf.reserve(61)
    assert world.shelf.reserve(60)
    world.shelf.give_back(60)
    assert not world.shelf.is_waited_for()
    world.shelf.told()
    assert world.shelf.is_waited_for()
    world.stored.add(a)
    world.shelf.release()
    assert world.shelf.reserve(1000)  # alone, any file has room
    assert not world.shelf.reserve(1)


def test_what_nobody_wants_can_be_thrown_away(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.put(b"a", 40)
    world.shelf.told()
    world.put(b"b", 60)
    world.shelf.drop_oldest()
    world.shelf.drop_oldest()  # the client does not know of b yet
    with pytest.raises(FileNotFoundError):
        world.read(b"a")
    assert b"b" * 60 == world.read(b"b")
    assert world.shelf.reserve(40)


def test_a_second_scan_takes_no_second_room(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.put(b"a", 50)
    world.put(b"a", 50)
    assert world.shelf.reserve(50)


def test_a_tier_larger_than_the_room_comes_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shelves, "ROOM", 3_000_000)
    monkeypatch.setattr(shelves, "RELEASE_SECONDS", 0.0)
    monkeypatch.setattr("cas.page.CONTENT_CUT", 1_000_000)  # pages of two or three files
    source = tmp_path / "source"
    source.mkdir()
    for number in range(60):
        (source / f"f{number:02d}").write_bytes(os.urandom(400_000))
    settle(source)
    most = 0
    reserve = Shelf.reserve

    def watched(self: Shelf, size: int) -> bool:
        nonlocal most
        most = max(most, self._reserved)
        return reserve(self, size)

    monkeypatch.setattr(Shelf, "reserve", watched)
    with job_in(tmp_path / "job", ONLY_SFTP) as job:
        job.plan({"one": source})
        plan = str(job.directory / "plan.toml")
        order = Order((), plan, None, dry_run=False, as_json=True)
        assert 0 == pull(order)
        back = job.restored("one") / str(source)[1:]
        assert sums_below(source) == sums_below(back)
        assert not (job.directory / "store/staging").exists()
    assert 2_400_000 < most < 12_000_000
