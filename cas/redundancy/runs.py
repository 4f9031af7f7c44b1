"""Sorts more records than memory should hold: sorted runs on disk, merged block by block.

Records are bytes of one size that lie end to end, so that a million of them are no million objects,
and comparing them is comparing memory (`cas._native.sort_records`). What fits is sorted at once and
nothing is written; past that each memory full becomes a run in a temporary file that has no name.
Merging takes a block of each run, cuts all of them at the least of their last records, and sorts
what lies before the cuts: the sort finds the runs in it and merges them, which is quicker than a
heap of single records. Memory is bounded by `RECORDS_AT_ONCE` whatever the number of records.
"""

from __future__ import annotations

import os
import tempfile
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import BinaryIO

from cas._native import sort_records
from cas.errors import StoreError

RECORDS_AT_ONCE = 2**17  # some 6 MB of the records that counting makes, and more to count them
BLOCK_LEAST = 64  # records of one run in memory while runs are merged


class SortedRuns:
    """Takes records of `size` bytes, gives them back in order, once. A context manager."""

    def __init__(self, size: int, *, at_once: int = RECORDS_AT_ONCE) -> None:
        self._size = size
        self._at_once = at_once
        self._waiting = bytearray()
        self._runs: list[int] = []  # how many records each has; they lie end to end
        self._file: BinaryIO | None = None

    def __enter__(self) -> SortedRuns:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._file is not None:
            self._file.close()

    def add(self, records: bytes) -> None:
        """Take records, end to end. Raises StoreError where the disk is full."""
        self._waiting += records
        if len(self._waiting) >= self._at_once * self._size:
            self._spill()

    def batches(self) -> Iterator[bytes]:
        """All records in order, some at a time, end to end. Raises StoreError."""
        if not self._runs:
            if self._waiting:
                yield sort_records(self._waiting, self._size)
            return
        self._spill()
        yield from self._merged()

    def _spill(self) -> None:
        if not self._waiting:
            return
        ordered = sort_records(self._waiting, self._size)
        self._runs.append(len(ordered) // self._size)
        self._waiting = bytearray()
        try:
            if self._file is None:
                # Closed by __exit__; it has no name that could be left behind.
                self._file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115
            _write(self._file, ordered)
        except OSError as error:
            raise StoreError(
                f"no room to sort in: {error.strerror}",
                where=tempfile.gettempdir(),
                advice="set TMPDIR to a directory with more room",
            ) from error

    def _merged(self) -> Iterator[bytes]:
        block = max(BLOCK_LEAST, self._at_once // len(self._runs))
        blocks, start = [], 0
        for count in self._runs:
            blocks.append(_Block(self, start, start + count, block))
            start += count
        while blocks:
            bound = min(one.last for one in blocks)
            yield sort_records(b"".join([one.take(bound) for one in blocks]), self._size)
            blocks = [one for one in blocks if one.fill()]

    def read(self, start: int, stop: int) -> bytes:
        """The records of these numbers in the file."""
        if self._file is None:
            return b""
        return os.pread(self._file.fileno(), (stop - start) * self.size, start * self.size)

    @property
    def size(self) -> int:
        """Bytes of a record."""
        return self._size


@dataclass(slots=True)
class _Block:
    """Where the merge stands in one run: the records in memory, and those still on disk."""

    runs: SortedRuns
    start: int
    stop: int
    count: int
    at: int = 0  # of the first record that has not been taken
    records: bytes = b""

    def __post_init__(self) -> None:
        self.fill()

    @property
    def last(self) -> bytes:
        """The last record in memory."""
        return self.records[-self.runs.size :]

    def take(self, bound: bytes) -> bytes:
        """Those in memory up to `bound`, which is the last of some block."""
        size, records = self.runs.size, self.records
        numbers = range(len(records) // size)
        cut = bisect_right(
            numbers, bound, self.at, key=lambda number: records[number * size : (number + 1) * size]
        )
        taken = records[self.at * size : cut * size]
        self.at = cut
        return taken

    def fill(self) -> bool:
        """Have at least one record in memory; False when there is none left."""
        if self.at * self.runs.size == len(self.records):
            stop = min(self.stop, self.start + self.count)
            self.records, self.at = self.runs.read(self.start, stop), 0
            self.start = stop
        return bool(self.records)


def _write(file: BinaryIO, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[file.write(view) :]
