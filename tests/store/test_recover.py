"""What a writer may find beside a kill: damage, strangers, copies, disks that fail. Nothing that
was acknowledged is lost, nothing is said to be here before it is on the disk."""

from __future__ import annotations

import errno
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cas.errors import CasError, DamageError, FormatError, LimitError, StoreError
from cas.frame import Codec
from cas.ids import digest_of
from cas.interfaces import Changes
from cas.pack import RECORD_SIZE, Origin, Segment, encode_segment, read_records
from cas.store import packfile
from cas.store import writer as writer_module
from cas.store.layout import Layout
from cas.store.memory_index import MemoryIndex
from cas.store.reader import PackReader
from cas.store.writer import Writer

ORIGIN = Origin(b"r" * 16, "source", "tier", 1, 0, 10, ())


class Shelf:
    """A store of plain segments, one chunk and one frame each; `chunks` in order."""

    def __init__(self, root: Path) -> None:
        self.layout = Layout(root / "store")
        self.layout.create()
        self.index = MemoryIndex()
        self.rng = random.Random(5)
        self.chunks: list[bytes] = []

    def writer(self) -> Writer:
        return Writer(self.layout, self.index)

    def add(self, out: Writer, size: int = 3000) -> bytes:
        """One more chunk, not committed."""
        data = self.rng.randbytes(size)
        frame = out.begin_frame()
        segment = Segment(frame, 0, Codec.PLAIN, False, size, (size,), (digest_of(data),), ORIGIN)
        out.add_segment(segment, data)
        out.end_frame(frame)
        self.chunks.append(data)
        return data

    def fill(self, count: int) -> None:
        """A writer's life: `count` chunks, committed."""
        out = self.writer()
        for _ in range(count):
            self.add(out)
        out.close()

    def readable(self) -> list[bool]:
        """For each chunk whether it reads back."""
        reader = PackReader(self.index, self.layout.packs)
        found = [_reads(reader, data) for data in self.chunks]
        reader.close()
        return found

    def pack(self) -> Path:
        """The one pack."""
        (path,) = self.layout.packs.iterdir()
        return path

    def offsets(self) -> list[int]:
        """Where the records of the one pack begin."""
        data = self.pack().read_bytes()
        return [r.offset for r in read_records(lambda n, at: data[at : at + n], len(data))]


def _reads(reader: PackReader, data: bytes) -> bool:
    try:
        return reader.chunk(digest_of(data)) == data
    except CasError:
        return False


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    return Shelf(tmp_path)


@pytest.fixture
def small_packs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer_module, "PACK_TARGET", 20_000)


def _flip(path: Path, offset: int) -> None:
    data = bytearray(path.read_bytes())
    data[offset] ^= 1
    path.write_bytes(data)


def test_a_flipped_bit_in_a_known_record_takes_no_other_with_it(shelf: Shelf) -> None:
    shelf.fill(5)
    _flip(shelf.pack(), shelf.offsets()[1] + 20)
    size = shelf.pack().stat().st_size
    out = shelf.writer()
    assert size == shelf.pack().stat().st_size
    shelf.add(out)
    out.close()
    assert [True] * 6 == shelf.readable()


def test_what_can_be_read_behind_damage_is_not_cut_off(shelf: Shelf) -> None:
    """The index was lost: nothing but the bytes says that it is no torn tail."""
    shelf.fill(5)
    pack, offsets = shelf.pack(), shelf.offsets()
    whole = pack.read_bytes()
    _flip(pack, offsets[2] + 20)
    damaged = pack.read_bytes()
    shelf.index = MemoryIndex()
    shelf.fill(1)
    assert [True, True, False, False, False, True] == shelf.readable()
    assert damaged == pack.read_bytes()
    pack.write_bytes(whole)  # the user finds it in a backup
    shelf.fill(0)
    assert [True] * 6 == shelf.readable()


def test_a_known_pack_that_has_lost_its_end_is_not_written_over(shelf: Shelf) -> None:
    shelf.fill(5)
    pack = shelf.pack()
    whole = pack.read_bytes()
    os.truncate(pack, shelf.offsets()[3])
    shelf.fill(2)
    assert [True, True, True, False, False, True, True] == shelf.readable()
    pack.write_bytes(whole)  # the user finds it in a backup
    assert [True] * 7 == shelf.readable()


def test_an_old_copy_of_a_pack_that_is_sealed_by_now_changes_nothing(
    shelf: Shelf, small_packs: None
) -> None:
    shelf.fill(3)
    old_name, old = shelf.pack().name, shelf.pack().read_bytes()
    shelf.fill(5)
    assert shelf.index.packs()[1].sealed
    # A backup of the store, made twice without deleting what is gone.
    (shelf.layout.packs / old_name).write_bytes(old)
    shelf.fill(2)
    assert [True] * 10 == shelf.readable()


def test_records_of_a_newer_cas_are_not_cut_off(shelf: Shelf) -> None:
    shelf.fill(1)
    pack = shelf.pack()
    data = shelf.rng.randbytes(100)
    segment = Segment(9, 0, Codec.PLAIN, False, 100, (100,), (digest_of(data),), ORIGIN)
    record = bytearray(encode_segment(segment, data))
    record[4] = 3  # a kind that is not known here
    _sign(record)
    with pack.open("ab") as file:
        file.write(record)
    size = pack.stat().st_size
    with pytest.raises(FormatError, match="newer"):
        shelf.writer()
    assert size == pack.stat().st_size


def _sign(record: bytearray) -> None:
    from cas._native import crc32c

    table_size = int.from_bytes(record[24:28], "little")
    table = bytes(record[RECORD_SIZE : RECORD_SIZE + table_size])
    crc = crc32c(table, crc32c(bytes(record[: RECORD_SIZE - 4])))
    record[RECORD_SIZE - 4 : RECORD_SIZE] = crc.to_bytes(4, "little")


def test_other_names_among_the_packs_are_left_alone(shelf: Shelf) -> None:
    shelf.fill(1)
    packs = shelf.layout.packs
    (packs / "lost+found").mkdir()
    (packs / "README").write_text("not a pack")
    (packs / ".nfs0001").write_bytes(b"short")
    (packs / "open-house").write_bytes(b"short")
    shelf.fill(1)
    assert [True, True] == shelf.readable()
    assert b"short" == (packs / "open-house").read_bytes()


def test_a_pack_whose_header_never_reached_the_disk_stops_nobody(shelf: Shelf) -> None:
    shelf.fill(1)
    torn = shelf.layout.packs / f"open-{'0' * 32}"
    torn.write_bytes(bytes(5000))
    shelf.fill(1)
    assert [True, True] == shelf.readable()
    torn.write_bytes(b"CASP\x02" + bytes(5000))
    with pytest.raises(FormatError, match=torn.name):
        shelf.writer()


def test_temporary_files_of_a_killed_writer_are_removed(shelf: Shelf) -> None:
    left = [d / ".cas-0123456789abcdef" for d in (shelf.layout.packs, shelf.layout.snapshots)]
    for path in left:
        path.write_bytes(b"half a file")
    shelf.fill(1)
    assert [False, False] == [path.exists() for path in left]


class Disk:
    """Notes what is flushed and what is committed, and lets calls fail."""

    def __init__(self, shelf: Shelf, patch: pytest.MonkeyPatch) -> None:
        self.done: list[str] = []
        self.failing: set[str] = set()
        self._patch = patch
        for call in ("fsync", "fdatasync"):
            self._wrap(call)
        commit = shelf.index.commit

        def noted(changes: Changes) -> None:
            self.done.append("commit")
            commit(changes)

        patch.setattr(shelf.index, "commit", noted)

    def _wrap(self, call: str) -> None:
        real = getattr(os, call)

        def noted(fd: int) -> None:
            if call in self.failing:
                raise OSError(errno.EIO, "Input/output error")
            real(fd)
            self.done.append(f"flushed {os.path.basename(os.readlink(f'/proc/self/fd/{fd}'))}")

        self._patch.setattr(os, call, noted)


def test_what_is_taken_up_is_flushed_before_the_index_names_it(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = shelf.writer()
    shelf.add(out)  # killed here: the bytes are in the kernel's memory, and nowhere else
    with monkeypatch.context() as patch:
        disk = Disk(shelf, patch)
        again = shelf.writer()
        assert [f"flushed {shelf.pack().name}", "commit"] == disk.done
    again.close()
    assert [True] == shelf.readable()


def test_a_pack_that_ends_in_its_seal_is_flushed_before_it_gets_its_name(
    shelf: Shelf, small_packs: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = shelf.writer()
    for _ in range(7):
        shelf.add(out)
    with monkeypatch.context() as patch:
        patch.setattr(os, "fchmod", _killed)
        with pytest.raises(_Killed):
            out.commit()
    with monkeypatch.context() as patch:
        disk = Disk(shelf, patch)
        name = shelf.pack().name
        again = shelf.writer()
        assert f"flushed {name}" == disk.done[0]
        assert "commit" == disk.done[-1]
    again.close()
    assert [True] * 7 == shelf.readable()


class _Killed(BaseException):
    pass


def _killed(*_: object) -> None:
    raise _Killed


def test_what_could_not_be_flushed_is_never_said_to_be_here(
    shelf: Shelf, small_packs: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = shelf.writer()
    for _ in range(8):
        shelf.add(out)
    with monkeypatch.context() as patch:
        disk = Disk(shelf, patch)
        disk.failing.add("fdatasync")
        with pytest.raises(StoreError):
            out.commit()
        # A second flush succeeds without having written what the first one lost (fsync(2) of Linux
        # reports an error once), so it proves nothing.
        disk.failing.clear()
        with pytest.raises(StoreError):
            out.commit()
        assert "commit" not in disk.done


def _full(*_: object) -> int:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_pages_that_met_a_full_disk_can_be_read_once_there_was_room(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = shelf.writer()
    pages = [b"CASg\x01" + shelf.rng.randbytes(4000) for _ in range(3)]
    out.add_object(pages[0], ORIGIN)
    out.commit()
    out.add_object(pages[1], ORIGIN)
    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", _full)
        with pytest.raises(StoreError, match="disk is full"):
            out.commit()
    out.add_object(pages[2], ORIGIN)
    out.commit()
    out.close()
    shelf.chunks = pages
    assert [True, True, True] == shelf.readable()


def test_pages_that_found_no_room_for_a_pack_get_one_later(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = shelf.writer()
    page = b"CASg\x01" + shelf.rng.randbytes(4000)
    out.add_object(page, ORIGIN)
    with monkeypatch.context() as patch:
        patch.setattr(os, "open", _full)
        with pytest.raises(StoreError, match="disk is full"):
            out.commit()
    out.close()
    shelf.chunks = [page]
    assert [True] == shelf.readable()


@pytest.mark.parametrize("call", ["open", "pwrite", "rename", "fchmod", "fsync"])
def test_a_disk_that_fails_anywhere_is_a_store_error(
    shelf: Shelf, small_packs: None, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    out = shelf.writer()
    with monkeypatch.context() as patch:
        patch.setattr(os, call, _full)
        with pytest.raises(StoreError, match="disk is full"):
            _work(shelf, out)
    shelf.chunks.clear()
    shelf.fill(3)
    assert [True] * 3 == shelf.readable()


def _work(shelf: Shelf, out: Writer) -> None:
    for _ in range(8):
        shelf.add(out)
    out.commit()


@pytest.mark.parametrize(("limit", "value"), [("PACK_LIMIT", 50_000), ("RECORDS_LIMIT", 12)])
def test_no_pack_outgrows_its_format(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch, limit: str, value: int
) -> None:
    monkeypatch.setattr(packfile, "SEAL_ROOM", 1000)
    monkeypatch.setattr(packfile, limit, value)
    out = shelf.writer()
    with pytest.raises(LimitError):
        _grow(shelf, out, out.begin_frame())
    out.close()
    kept = len(shelf.chunks)
    assert 12 <= kept <= 16
    assert [True] * kept == shelf.readable()


def _grow(shelf: Shelf, out: Writer, frame: int) -> None:
    for number in range(100):
        data = shelf.rng.randbytes(3000)
        ids = (digest_of(data),)
        segment = Segment(frame, number, Codec.PLAIN, False, 3000, (3000,), ids, ORIGIN)
        out.add_segment(segment, data)
        shelf.chunks.append(data)


def test_a_pack_that_was_deleted_is_named_by_whoever_needs_it(shelf: Shelf) -> None:
    shelf.fill(2)
    (shelf.layout.packs / "lost+found").mkdir()
    next(shelf.layout.packs.glob("open-*")).unlink()
    shelf.fill(1)
    assert [False, False, True] == shelf.readable()
    reader = PackReader(shelf.index, shelf.layout.packs)
    with pytest.raises(DamageError, match="missing"):
        reader.chunk(digest_of(shelf.chunks[0]))
    reader.close()


class PowerCut:
    """A disk that keeps, when the power is cut, only what was flushed of each pack."""

    def __init__(self, shelf: Shelf, patch: pytest.MonkeyPatch) -> None:
        self.left = 1 << 30  # steps until somebody is killed
        self._flushed: dict[int, int] = {}
        self._packs = shelf.layout.packs
        for call in ("fsync", "fdatasync"):
            patch.setattr(os, call, self._flush)
        for call in ("pwrite", "rename", "fchmod"):
            patch.setattr(os, call, self._counted(getattr(os, call)))
        patch.setattr(shelf.index, "commit", self._counted(shelf.index.commit))

    def _counted(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*args: Any) -> Any:
            self._step()
            return call(*args)

        return counted

    def _step(self) -> None:
        self.left -= 1
        if self.left == 0:
            raise _Killed

    def _flush(self, fd: int) -> None:
        self._step()
        found = os.fstat(fd)
        self._flushed[found.st_ino] = found.st_size

    def cut(self) -> None:
        """Lose what was not flushed."""
        for path in self._packs.iterdir():
            found = path.stat()
            os.chmod(path, 0o600)
            os.truncate(path, min(found.st_size, self._flushed.get(found.st_ino, 0)))


@pytest.mark.parametrize("cut_first", [False, True])
def test_after_a_power_cut_at_any_step_the_index_names_nothing_that_is_lost(
    tmp_path: Path, small_packs: None, monkeypatch: pytest.MonkeyPatch, cut_first: bool
) -> None:
    """The power is cut at some step, or somebody is killed there and it is cut after the next
    writer has taken up what was left."""
    for step in range(1, 200):
        shelf = Shelf(tmp_path / str(step))
        with monkeypatch.context() as patch:
            disk = PowerCut(shelf, patch)
            disk.left = step
            ended = _dies(shelf)
            disk.left = 1 << 30
            if cut_first:
                disk.cut()
            shelf.writer()
            disk.cut()
        named = [shelf.index.locate(digest_of(data)) is not None for data in shelf.chunks]
        assert named == shelf.readable()
        shelf.fill(2)
        assert [True, True] == shelf.readable()[-2:]
        if ended:
            return
    pytest.fail("the run never ended")


def _dies(shelf: Shelf) -> bool:
    """Write and commit; whether it came to its end."""
    try:
        out = shelf.writer()
        for _ in range(5):
            for _ in range(3):
                shelf.add(out)
            out.commit()
    except _Killed:
        return False
    return True
