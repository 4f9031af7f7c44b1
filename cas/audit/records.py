"""The records of packs: which of them says where a chunk was first had from.

A chunk's location leads to the record of its segment, whose table names the run, the tier and the
source that brought it. So nothing about origins is kept twice, and they are there again after a
repair and with an index that was made anew.

What a segment cost on the wire is shared out among its chunks by their lengths, in whole bytes: the
share of a chunk is the cost of all up to its end, rounded down, less that of all before it. So
the shares of a segment add up to its cost.
"""

from __future__ import annotations

import os
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate, pairwise

from cas.errors import CasError, DamageError
from cas.ids import Digest
from cas.interfaces import Location, PackRow, SegmentPlace
from cas.pack import HEADER_SIZE, Origin, Record, Segment, read_record, read_records
from cas.store.open_packs import OpenPacks
from cas.store.store import Store

RECORDS_KEPT = 2048
PLACES_KEPT = 256  # frames


@dataclass(frozen=True, slots=True)
class Row:
    """A segment's record: where each of its chunks starts in the plain bytes, and what each has
    cost on the wire."""

    segment: Segment
    starts: tuple[int, ...]
    wire: tuple[int, ...]

    @property
    def origin(self) -> Origin:
        """Where its chunks were first had from."""
        return self.segment.origin

    def number(self, chunk: Digest, at: Location) -> int:
        """Which of its chunks is `chunk`, that the index has at `at`. Raises DamageError."""
        number = bisect_left(self.starts, at.offset)
        if (
            number == len(self.starts)
            or self.starts[number] != at.offset
            or self.segment.ids[number] != chunk
        ):
            raise DamageError("the index and the pack disagree", where=f"chunk {chunk.hex()}")
        return number


def row_of(segment: Segment) -> Row:
    """A segment, with what follows from its lengths."""
    starts = (0, *accumulate(segment.lengths))
    paid = [segment.origin.wire_size * start // segment.plain_size for start in starts]
    shares = tuple(after - before for before, after in pairwise(paid))
    return Row(segment, starts[:-1], shares)


class Records:
    """The records of a store's packs, some of which are kept. Not thread-safe."""

    def __init__(self, store: Store) -> None:
        self._index = store.index
        self._packs = OpenPacks(store.index, os.fsencode(store.layout.packs))
        self._rows: OrderedDict[tuple[int, int], Row] = OrderedDict()
        self._places: OrderedDict[int, dict[int, SegmentPlace]] = OrderedDict()

    def row(self, at: Location) -> Row:
        """The record of the segment that a chunk lies in. Raises DamageError, FormatError."""
        key = at.frame, at.segment
        row = self._rows.get(key)
        if row is None:
            row = self._rows[key] = row_of(self._segment(at))
            if len(self._rows) > RECORDS_KEPT:
                self._rows.popitem(last=False)
        return row

    def all(self, damaged: list[DamageError]) -> Iterator[Row]:
        """Every record, pack by pack, in order. Where one cannot be read, the rest of its pack is
        left out, and `damaged` says where that is."""
        for number, pack in self._index.packs().items():
            yield from self._pack(number, pack, damaged)

    def _pack(self, number: int, pack: PackRow, damaged: list[DamageError]) -> Iterator[Row]:
        try:
            for record in read_records(_Reader(self._packs, number), pack.size):
                if record.segment is not None:
                    yield row_of(record.segment)
        except CasError as error:
            where = f"pack {pack.name}" + (f", {error.where}" if error.where else "")
            damaged.append(DamageError(error.what, where=where))

    def close(self) -> None:
        """Let go of the packs."""
        self._packs.close()

    def _segment(self, at: Location) -> Segment:
        place = self._place(at)
        head = self._packs.read(place.pack, place.payload_offset - place.offset, place.offset)
        record = self._record(place, head)
        segment = record.segment
        if segment is None or (segment.frame, segment.number) != (at.frame, at.segment):
            raise DamageError("the index and the pack disagree", where=self._where(place))
        return segment

    def _record(self, place: SegmentPlace, head: bytes) -> Record:
        def read(size: int, offset: int, /) -> bytes:
            return head[offset - place.offset :][:size]

        try:
            return read_record(read, place.offset)
        except DamageError as error:
            raise DamageError(error.what, where=self._where(place)) from error

    def _place(self, at: Location) -> SegmentPlace:
        places = self._places.get(at.frame)
        if places is None or at.segment not in places:
            places = self._places[at.frame] = dict(self._index.segments_of(at.frame))
            if len(self._places) > PLACES_KEPT:
                self._places.popitem(last=False)
        if at.segment not in places:
            raise DamageError(
                f"the index has no segment {at.segment} of frame {at.frame}",
                advice="rebuild the index",
            )
        return places[at.segment]

    def _where(self, place: SegmentPlace) -> str:
        return f"pack {self._packs.row(place.pack).name}, offset {place.offset}"


class _Reader:
    """Reads one pack, headers and tables alone, a piece at a time."""

    PIECE = 16 * 1024  # more than most records' tables; a payload is never read for its own sake

    def __init__(self, packs: OpenPacks, pack: int) -> None:
        self._packs = packs
        self._pack = pack
        self._at = HEADER_SIZE
        self._held = b""

    def __call__(self, size: int, offset: int, /) -> bytes:
        start = offset - self._at
        if start < 0 or start + size > len(self._held):
            self._held = self._packs.read(self._pack, max(size, self.PIECE), offset)
            self._at, start = offset, 0
        return self._held[start : start + size]
