"""The writer: order of writes, sealing, and what a kill or a full disk leaves behind."""

from __future__ import annotations

import errno
import hashlib
import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from cas.errors import StoreError, StoreLocked, StoreMissing
from cas.frame import Codec, FrameEncoder
from cas.ids import Digest, digest_of
from cas.interfaces import Changes
from cas.pack import HEADER_SIZE, Origin, Segment
from cas.store import writer
from cas.store.layout import FORMAT, Layout, WriterLock
from cas.store.memory_index import MemoryIndex
from cas.store.reader import PackReader
from cas.store.writer import Writer

ORIGIN = Origin(b"r" * 16, "source", "tier", 1, 0, 10, ())


class Killed(BaseException):
    """The process ends here; nothing after it runs."""


class Bench:
    """A store whose index is kept in memory across 'processes'."""

    def __init__(self, root: Path) -> None:
        self.layout = Layout(root / "store")
        self.layout.create()
        self.index = MemoryIndex()
        self.durable: dict[Digest, bytes] = {}
        self.rng = random.Random(7)

    def writer(self) -> Writer:
        return Writer(self.layout, self.index)

    def work(self, out: Writer, frames: int) -> None:
        """Add frames of two segments each, committing after every one."""
        for _ in range(frames):
            frame = out.begin_frame()
            encoder = FrameEncoder(1)
            added: dict[Digest, bytes] = {}
            for number in range(2):
                chunks = [self.rng.randbytes(self.rng.randrange(1, 9000)) for _ in range(3)]
                payload = encoder.segment(chunks, last=number == 1)
                ids = tuple(map(digest_of, chunks))
                lengths = tuple(map(len, chunks))
                segment = Segment(
                    frame, number, Codec.ZSTD, False, sum(lengths), lengths, ids, ORIGIN
                )
                out.add_segment(segment, payload)
                added.update(zip(ids, chunks, strict=True))
            out.end_frame(frame)
            page = b"CASg\x01" + self.rng.randbytes(100)
            added[out.add_object(page, ORIGIN)] = page
            out.commit()
            self.durable.update(added)

    def check(self) -> None:
        """All that was acknowledged reads back, and whatever the index names is right."""
        reader = PackReader(self.index, self.layout.packs)
        for id_, data in self.durable.items():
            assert data == reader.chunk(id_)
        for id_, _ in self.index.chunks():
            reader.chunk(id_)
        reader.close()


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


@pytest.fixture
def small_packs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "PACK_TARGET", 60_000)


def test_what_was_committed_reads_back_in_the_next_process(bench: Bench) -> None:
    for _ in range(3):
        out = bench.writer()
        bench.work(out, 3)
        out.close()
        bench.check()
    assert len(bench.index.packs()) == 1


@pytest.mark.usefixtures("small_packs")
def test_a_full_pack_is_sealed_and_named_by_its_bytes(bench: Bench) -> None:
    out = bench.writer()
    bench.work(out, 12)
    out.close()
    sealed = [row for row in bench.index.packs().values() if row.sealed]
    assert len(sealed) >= 3
    for row in sealed:
        path = bench.layout.packs / row.name
        assert row.name == hashlib.sha256(path.read_bytes()).hexdigest()
        assert row.size == path.stat().st_size
        assert path.stat().st_mode & 0o222 == 0
    bench.check()


def test_an_object_is_kept_once(bench: Bench) -> None:
    out = bench.writer()
    page = b"CASg\x01page"
    assert out.add_object(page, ORIGIN) == out.add_object(page, ORIGIN)
    out.commit()
    size = out.stored_size
    out.add_object(page, ORIGIN)
    out.commit()
    assert size == out.stored_size
    out.close()


def _failing(call: Callable[..., Any], fail: Callable[[], None]) -> Callable[..., Any]:
    def wrapped(*args: Any, **options: Any) -> Any:
        fail()
        return call(*args, **options)

    return wrapped


def _until_it_ends() -> Iterator[int]:
    yield from range(1, 500)
    pytest.fail("the run never ended without a failure")


@pytest.mark.usefixtures("small_packs")
@pytest.mark.parametrize("kind", ["killed before", "full disk"])
def test_a_failure_at_every_step_loses_nothing_that_was_acknowledged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    calls = ("pwrite", "fdatasync", "rename", "fchmod")
    for n in _until_it_ends():
        bench = Bench(_fresh(tmp_path, n))
        left = [n]

        def fail(left: list[int] = left) -> None:
            left[0] -= 1
            if left[0] == 0 and kind == "killed before":
                raise Killed
            if left[0] == 0:
                raise OSError(errno.ENOSPC, "No space left on device")

        failed = False
        with monkeypatch.context() as patch:
            for call in calls:
                patch.setattr(os, call, _failing(getattr(os, call), fail))
            commit = bench.index.commit
            patch.setattr(bench.index, "commit", _failing(commit, fail))
            try:
                out = bench.writer()
                bench.work(out, 8)
                out.close()
            except (Killed, StoreError, OSError):
                failed = True
        bench.check()
        again = bench.writer()
        bench.work(again, 2)
        again.close()
        bench.check()
        if not failed:
            return


def _fresh(tmp_path: Path, n: int) -> Path:
    path = tmp_path / str(n)
    path.mkdir()
    return path


def test_a_torn_tail_is_cut_off_at_every_byte(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    out = bench.writer()
    bench.work(out, 1)
    out.close()
    (pack,) = bench.layout.packs.iterdir()
    before = pack.read_bytes()
    out = bench.writer()
    bench.work(out, 1)
    out.close()
    whole = pack.read_bytes()
    rows = bench.index.packs()
    for cut in range(len(before), len(whole), 997):
        torn = Bench(_fresh(tmp_path, cut))
        name = torn.layout.packs / pack.name
        name.write_bytes(whole[:cut])
        (number,) = rows
        again = torn.writer()
        bench_size = name.stat().st_size
        assert HEADER_SIZE <= bench_size <= cut
        assert number in torn.index.packs() or cut == HEADER_SIZE
        torn.work(again, 1)
        again.close()
        torn.check()


def test_records_that_the_index_lacks_are_taken_up(bench: Bench) -> None:
    out = bench.writer()
    bench.work(out, 3)
    out.close()
    bench.index = MemoryIndex()  # it was lost: the packs say it all
    again = bench.writer()
    bench.check()
    again.close()


def test_rows_of_others_are_committed_with_the_packs(bench: Bench) -> None:
    out = bench.writer()
    out.note(Changes(pending_pages=[("tier", digest_of(b"p"))]))
    out.commit()
    assert [digest_of(b"p")] == bench.index.pending_pages("tier")
    out.close()


def test_a_second_writer_is_refused_and_told_who_writes(bench: Bench) -> None:
    lock = WriterLock(bench.layout)
    with pytest.raises(StoreLocked, match=f"pid {os.getpid()}"):
        WriterLock(bench.layout)
    lock.release()
    WriterLock(bench.layout).release()


def test_no_store_and_a_newer_store_are_told_apart(tmp_path: Path) -> None:
    with pytest.raises(StoreMissing):
        Layout(tmp_path / "none").check()
    layout = Layout(tmp_path / "store")
    layout.create()
    layout.check()
    assert FORMAT == layout.format.read_bytes()
    layout.format.write_bytes(b"cas store 2\n")
    with pytest.raises(StoreError, match="cas store 2"):
        layout.check()
