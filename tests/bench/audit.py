"""Audits in a store of a million chunks: `python -m tests.bench.audit [DIRECTORY [MILLIONS]]`.

The store is made for it: files of 100 chunks, of which each file has one in common with the file
before; 16 chunks in a segment and 30 segments in a frame, as after a sync, but each of 64 bytes.
Each command is a process of its own. Those for one file are run five times, after once unmeasured,
and the best counts; those for all that is held once. What a bare `cas ls` takes is in the first
line: the start of Python and opening the store.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from cas.chunker import IDENTITY
from cas.entry import Content, Entry, Kind, Owner
from cas.frame import Codec
from cas.hashing import digests_of
from cas.ids import Digest, digest_of
from cas.interfaces import Changes
from cas.pack import Origin, PageRun, Segment
from cas.page import encode_page
from cas.recipe import Recipe, encode_recipe
from cas.snapshot import Snapshot
from cas.store.store import Store, enter_snapshot, page_ref
from cas.store.writer import Writer, now_ms
from cli.wiring import writing
from tests.bench.process import measured
from tests.bench.product import CAS

MILLION = 1_000_000
CHUNK = 64
FILE_CHUNKS = 100
SEGMENT_CHUNKS = 16
FRAME_SEGMENTS = 30
FILES_OF_PAGE = 500
RUN = bytes(range(16))
TIMES = 5


def main(root: Path, millions: float) -> None:
    """Make the store and measure."""
    store = root / "store"
    names = make(store, int(millions * MILLION))
    middle = f"bench:{os.fsdecode(names[len(names) // 2])}"
    measure("ls (nothing but the start)", "ls", "--store", store)
    measure("audit of one file", "audit", middle, "--store", store)
    measure("audit of one file, --places", "audit", "--places", middle, "--store", store)
    measure("audit of everything", "audit", "--store", store, times=1)
    measure("audit of the tier", "audit", "bench", "--store", store, times=1)
    measure("find --no-archives", "find", "--no-archives", "none", "--store", store, times=1)


def measure(what: str, *arguments: str | Path, times: int = TIMES) -> None:
    """Run `cas` so often, and print the least of its times."""
    command = [*CAS, *map(str, arguments)]
    if times > 1:
        measured(command)
    usages = [measured(command) for _ in range(times)]
    cpu, wall = min(usage.cpu for usage in usages), min(usage.wall for usage in usages)
    peak = min(usage.peak for usage in usages) / 2**20
    print(f"{what:32} {cpu:7.3f} s CPU {wall:7.3f} s {peak:7.0f} MiB", flush=True)


def make(root: Path, chunks: int) -> list[bytes]:
    """A store of one tier; the paths of its files."""
    with writing(root) as (store, writer):
        maker = _Maker(store, writer)
        names = []
        refs = []
        for first in range(0, chunks // FILE_CHUNKS, FILES_OF_PAGE):
            entries = [maker.file(n) for n in range(first, first + FILES_OF_PAGE)]
            encoded = encode_page(entries)
            page = writer.add_object(encoded, maker.origin(0, ()))
            maker.content(page, entries)
            refs.append(page_ref(page, entries))
            names += [entry.path for entry in entries]
        writer.commit()
        now = now_ms()
        snapshot = Snapshot("bench", "here", "host", (b"srv",), RUN, now, now, IDENTITY, "", 0,
                            tuple(refs), ())  # fmt: skip
        row = enter_snapshot(store, writer, snapshot)
        writer.note(Changes(snapshots=[row]))
    return names


class _Maker:
    def __init__(self, store: Store, writer: Writer) -> None:
        self._store = store
        self._writer = writer
        self._last = os.urandom(CHUNK)
        self._plain: dict[bytes, bytes] = {}  # of files by their paths
        self._segments = 0
        self._frame = writer.begin_frame()

    def origin(self, wire_size: int, runs: tuple[PageRun, ...]) -> Origin:
        return Origin(RUN, "here", "bench", now_ms(), 0, wire_size, runs)

    def file(self, number: int) -> Entry:
        """A file of new chunks, but for the first, which is the last of the file before."""
        plain = self._last + os.urandom(CHUNK * (FILE_CHUNKS - 1))
        self._last = plain[-CHUNK:]
        path = b"srv/%03d/file-%07d" % (number // 1000, number)
        self._plain[path] = plain
        ids = tuple(digests_of(plain, [CHUNK] * FILE_CHUNKS))
        digest = digest_of(plain)
        recipe = encode_recipe(Recipe(len(plain), digest, ids, (CHUNK,) * FILE_CHUNKS))
        part = self._writer.add_object(recipe, self.origin(0, ()))
        content = Content(len(plain), digest, FILE_CHUNKS, (part,))
        self._writer.note(Changes(recipes=[(digest, (part,))]))
        return Entry(path, Kind.FILE, Owner(0o644, 0, 0), number, len(plain), content)

    def content(self, page: Digest, entries: list[Entry]) -> None:
        """Store the chunks of a page, but those that the file before has."""
        plain = b"".join(self._plain.pop(entry.path) for entry in entries)
        count = len(plain) // CHUNK
        new = [n for n in range(count) if n == 0 or n % FILE_CHUNKS]
        for at in range(0, len(new), SEGMENT_CHUNKS):
            self._segment(page, plain, new[at : at + SEGMENT_CHUNKS])
        self._writer.commit()

    def _segment(self, page: Digest, plain: bytes, numbers: list[int]) -> None:
        data = b"".join(plain[n * CHUNK : (n + 1) * CHUNK] for n in numbers)
        lengths = (CHUNK,) * len(numbers)
        origin = self.origin(len(data) + 60, tuple(_runs(page, numbers)))
        segment = Segment(
            self._frame, self._segments, Codec.PLAIN, False, len(data), lengths,
            tuple(digests_of(data, list(lengths))), origin,
        )  # fmt: skip
        self._writer.add_segment(segment, data)
        self._segments += 1
        if self._segments == FRAME_SEGMENTS:
            self._writer.end_frame(self._frame)
            self._frame, self._segments = self._writer.begin_frame(), 0


def _runs(page: Digest, numbers: list[int]) -> Iterator[PageRun]:
    first = 0
    for at in range(1, len(numbers) + 1):
        if at == len(numbers) or numbers[at] != numbers[at - 1] + 1:
            yield PageRun(page, numbers[first], at - first)
            first = at


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(dir=sys.argv[1] if len(sys.argv) > 1 else None) as place:
        main(Path(place), float(sys.argv[2]) if len(sys.argv) > 2 else 1.0)
