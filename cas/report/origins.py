"""Which tier each chunk was first had for, as a small number beside it (`late` of `count`).

A chunk's location leads to its segment, and the segment's record names the origin. So one pass over
all records gives a number for each segment, and counting needs no more than one look into the index
for each distinct chunk.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from cas.audit.records import Records, Row
from cas.audit.sums import Sum, held_there
from cas.audit.trace import is_adopted
from cas.errors import DamageError
from cas.ids import Digest
from cas.interfaces import Index
from cas.redundancy.records import LABELS_LIMIT

MISSING, UNKNOWN, FIRST = 0, 1, 2  # labels; from FIRST on they are numbers of origins


@dataclass(slots=True)
class Origins:
    """Sums of what is held by origin: the tier, and whether it was adopted. `meta` are pages and
    recipes, `again` what came twice. `damaged` says which records could not be read."""

    sums: dict[tuple[str, bool], Sum] = field(default_factory=dict)
    meta: Sum = field(default_factory=Sum)
    again: Sum = field(default_factory=Sum)
    damaged: list[DamageError] = field(default_factory=list)
    _numbers: dict[tuple[str, bool], int] = field(default_factory=dict)
    _segments: dict[tuple[int, int], int] = field(default_factory=dict)

    def read(self, index: Index, records: Records) -> None:
        """Take in every record."""
        for row in records.all(self.damaged):
            self._add(row, held_there(index, row))

    def _add(self, row: Row, held: list[bool]) -> None:
        segment, origin = row.segment, row.origin
        key = origin.tier, is_adopted(origin)
        label = self._numbers.setdefault(key, len(self._numbers)) + FIRST
        self._segments[segment.frame, segment.number] = label if label < LABELS_LIMIT else UNKNOWN
        total = self.meta if segment.meta else self.sums.setdefault(key, Sum())
        if all(held):
            total += Sum(len(held), segment.plain_size, origin.wire_size)
            return
        for is_held, size, wire in zip(held, segment.lengths, row.wire, strict=True):
            (total if is_held else self.again).add(size, wire)

    def keys(self) -> list[tuple[str, bool]]:
        """The origins in the order of their numbers."""
        return list(self._numbers)

    def labels(self, index: Index, chunks: Sequence[Digest]) -> Iterator[int]:
        """A label for each chunk."""
        segments = self._segments
        for at in index.locate_all(chunks):
            yield MISSING if at is None else segments.get((at.frame, at.segment), UNKNOWN)
