"""Sorts more records than memory should hold: sorted runs on disk, merged block by block.

Records are bytes of one size, so that comparing them is comparing memory. What fits is sorted at
once and nothing is written; past that each memory full becomes a run in a temporary file that has
no name. Merging takes a block of each run, cuts all of them at the least of their last records,
and sorts what lies before the cuts: Python's sort finds the runs in it and merges them without
leaving C, which a heap of single records cannot. Memory is bounded by `RECORDS_AT_ONCE` whatever
the number of records.
"""

from __future__ import annotations

import os
import tempfile
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from types import TracebackType
from typing import BinaryIO

from cas.errors import StoreError

RECORDS_AT_ONCE = 2**18  # some 25 MB of the records that counting makes
BLOCK_LEAST = 64  # records of one run in memory while runs are merged


class SortedRuns:
    """Takes records of `size` bytes, gives them back in order, once. A context manager."""

    def __init__(self, size: int, *, at_once: int = RECORDS_AT_ONCE) -> None:
        self._size = size
        self._at_once = at_once
        self._waiting: list[bytes] = []
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

    def add(self, records: Iterable[bytes]) -> None:
        """Take records, each of the one size. Raises StoreError where the disk is full."""
        self._waiting += records
        if len(self._waiting) >= self._at_once:
            self._spill()

    def batches(self) -> Iterator[list[bytes]]:
        """All records in order, some at a time. Raises StoreError."""
        if not self._runs:
            self._waiting.sort()
            if self._waiting:
                yield self._waiting
            return
        self._spill()
        yield from self._merged()

    def _spill(self) -> None:
        self._waiting.sort()
        try:
            if self._file is None:
                # Closed by __exit__; it has no name that could be left behind.
                self._file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115
            for at in range(0, len(self._waiting), self._at_once):
                _write(self._file, b"".join(self._waiting[at : at + self._at_once]))
        except OSError as error:
            raise StoreError(
                f"no room to sort in: {error.strerror}",
                where=tempfile.gettempdir(),
                advice="set TMPDIR to a directory with more room",
            ) from error
        if self._waiting:
            self._runs.append(len(self._waiting))
        self._waiting = []

    def _merged(self) -> Iterator[list[bytes]]:
        block = max(BLOCK_LEAST, self._at_once // len(self._runs))
        blocks, start = [], 0
        for count in self._runs:
            blocks.append(_Block(self, start, start + count, block))
            start += count
        while blocks:
            bound = min(one.records[-1] for one in blocks)
            taken = [record for one in blocks for record in one.take(bound)]
            taken.sort()
            yield taken
            blocks = [one for one in blocks if one.fill()]

    def read(self, start: int, stop: int) -> list[bytes]:
        """The records of these numbers in the file."""
        if self._file is None:
            return []
        size = self._size
        data = os.pread(self._file.fileno(), (stop - start) * size, start * size)
        return [data[at : at + size] for at in range(0, len(data), size)]


@dataclass(slots=True)
class _Block:
    """Where the merge stands in one run: the records in memory, and those still on disk."""

    runs: SortedRuns
    start: int
    stop: int
    count: int
    at: int = 0
    records: list[bytes] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.fill()

    def take(self, bound: bytes) -> list[bytes]:
        """Those in memory up to `bound`, which is among the last of some block."""
        cut = bisect_right(self.records, bound, self.at)
        taken, self.at = self.records[self.at : cut], cut
        return taken

    def fill(self) -> bool:
        """Have at least one record in memory; False when there is none left."""
        if self.at == len(self.records):
            stop = min(self.stop, self.start + self.count)
            self.records, self.at = self.runs.read(self.start, stop), 0
            self.start = stop
        return bool(self.records)


def _write(file: BinaryIO, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[file.write(view) :]
