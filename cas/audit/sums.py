"""What came from where, added up.

A chunk counts once, where it was first had from, whatever holds it now. So the sums over all
origins are what is held, and with what was received twice, or is damaged and was fetched again, the
wire's bytes are those that the records name.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from cas.audit.records import Records, Row
from cas.errors import DamageError
from cas.interfaces import Index, Location
from cas.pack import Origin


class Key(NamedTuple):
    """Whom a sum is for."""

    source: str
    tier: str
    run: bytes


@dataclass(slots=True)
class Sum:
    """Chunks, their plain bytes, and what they cost on the wire."""

    chunks: int = 0
    size: int = 0
    wire: int = 0

    def add(self, size: int, wire: int) -> None:
        """One chunk more."""
        self.chunks += 1
        self.size += size
        self.wire += wire

    def __iadd__(self, other: Sum) -> Sum:
        self.chunks += other.chunks
        self.size += other.size
        self.wire += other.wire
        return self


@dataclass(slots=True)
class Sums:
    """Sums by origin, of content; `meta` of pages and recipes; `again` of what lies in records and
    is held from elsewhere."""

    content: dict[Key, Sum] = field(default_factory=dict)
    meta: Sum = field(default_factory=Sum)
    again: Sum = field(default_factory=Sum)

    def add(self, origin: Origin, size: int, wire: int) -> None:
        """One chunk of content more."""
        key = Key(origin.source, origin.tier, origin.run)
        self.content.setdefault(key, Sum()).add(size, wire)

    @property
    def total(self) -> Sum:
        """All content."""
        total = Sum()
        for part in self.content.values():
            total += part
        return total


def sum_all(index: Index, records: Records, damaged: list[DamageError]) -> Sums:
    """The sums of everything that the index says is held. `damaged` is told of records that cannot
    be read: what they hold is missing from the sums."""
    sums = Sums()
    for row in records.all(damaged):
        held = held_there(index, row)
        for number, is_held in enumerate(held):
            size, wire = row.segment.lengths[number], row.wire[number]
            if not is_held:
                sums.again.add(size, wire)
            elif row.segment.meta:
                sums.meta.add(size, wire)
            else:
                sums.add(row.origin, size, wire)
    return sums


def held_there(index: Index, row: Row) -> list[bool]:
    """For each chunk of a record whether the index has it there, and not somewhere else."""
    segment = row.segment
    found = zip(index.locate_all(segment.ids), _places(row), strict=True)
    return [at == here for at, here in found]


def _places(row: Row) -> Iterator[Location]:
    segment = row.segment
    for start, length in zip(row.starts, segment.lengths, strict=True):
        yield Location(segment.frame, segment.number, start, length)
