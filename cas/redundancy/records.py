"""The records by which chunks are counted: one for each chunk as often as a tier has it.

A record is a chunk's id and two numbers, big-endian: its place (tier and row), and its measure
(label and length). So sorted records of one chunk follow one another, the tier that comes first
before the others.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import repeat

from cas.archive import ArchiveRecipe
from cas.redundancy.chunks import Part, tier_chunks
from cas.redundancy.tally import ARCHIVE, FILE, REST, Count, TierCount
from cas.snapshot import Snapshot
from cas.store.store import Store

RECORD = struct.Struct(">32sQQ")
ROW_BITS, TIER_BITS = 40, 16  # of a place
LENGTH_BITS, LABEL_BITS = 48, 16  # of a measure
TIER_AT, LABEL_AT = ROW_BITS, LENGTH_BITS
ROW_MOST = 2**ROW_BITS - 1
LENGTH_MOST = 2**LENGTH_BITS - 1  # a file whose recipe is lost may claim more, and is none of use
LABELS_LIMIT = 2**LABEL_BITS
AT_ONCE = 4096  # records that are handed on together, about

# A number for each chunk of a part, below LABELS_LIMIT.
Labels = Callable[[Part], Sequence[int]]
# The paths in an archive that the chunks of a part lie at, in path order and the empty one first,
# and for each chunk the number of its own; None where it was not looked into.
Inside = Callable[[Part], "tuple[Sequence[bytes], Sequence[int]] | None"]


class Recorder:
    """Makes the records of tiers, and counts tiers and rows in `counted`."""

    def __init__(
        self, store: Store, counted: Count, labels: Labels | None, inside: Inside | None
    ) -> None:
        self._store = store
        self._counted = counted
        self._labels = labels
        self._inside = inside
        self._first = 0  # the row of the first path of the archive in hand

    def tier(self, snapshot: Snapshot) -> Iterator[bytes]:
        """The records of the next tier, some at a time, end to end. Raises as `tier_chunks`."""
        counted = self._counted
        tier = TierCount(snapshot.tier, logical=snapshot.logical)
        first, base = len(counted.unpacked), len(counted.tiers) << TIER_AT
        counted.tiers.append(tier)
        entry, records = None, list[bytes]()
        for part in tier_chunks(self._store, snapshot):
            is_new, entry = part.entry is not entry, part.entry
            if is_new:
                tier.files += 1
                tier.unknown += not part.is_known
            tier.chunks += len(part.ids)
            labels = None if self._labels is None else self._labels(part)
            members = None if self._inside is None else self._inside(part)
            if members is not None:
                records += self._split(part, base, labels, members, is_new)
            else:
                records += self._whole(part, base, labels, is_new)
            if len(records) >= AT_ONCE:
                yield b"".join(records)
                records = []
        yield b"".join(records)
        tier.rows = len(counted.unpacked) - first
        tier.unpacked = sum(counted.unpacked[first:])

    def _whole(
        self, part: Part, base: int, labels: Sequence[int] | None, is_new: bool
    ) -> Iterable[bytes]:
        """The records of a part whose file is one row."""
        counted = self._counted
        if is_new:
            sort = ARCHIVE if isinstance(part.recipe, ArchiveRecipe) else FILE
            counted.add_row(part.entry.path, sort, sum(part.lengths))
        else:
            counted.unpacked[-1] += sum(part.lengths)
        place = base | len(counted.unpacked) - 1
        measures = _measures(part, labels)
        if len(part.ids) == 1:
            return (RECORD.pack(part.ids[0], place, measures[0]),)
        return map(RECORD.pack, part.ids, repeat(place), measures)

    def _split(
        self,
        part: Part,
        base: int,
        labels: Sequence[int] | None,
        members: tuple[Sequence[bytes], Sequence[int]],
        is_new: bool,
    ) -> Iterator[bytes]:
        """The records of a part of an archive whose members are rows."""
        paths, numbers = members
        counted = self._counted
        if is_new:
            self._first = len(counted.unpacked)
            for path in paths:
                counted.add_row(part.entry.path + b"!/" + path, FILE if path else REST, 0)
        rows = [self._first + number for number in numbers]
        for row, length in zip(rows, part.lengths, strict=True):
            counted.unpacked[row] += length
        places = [base | row for row in rows]
        return map(RECORD.pack, part.ids, places, _measures(part, labels))


def _measures(part: Part, labels: Sequence[int] | None) -> Sequence[int]:
    lengths = part.lengths
    if part.recipe is None:
        lengths = (min(lengths[0], LENGTH_MOST),)
    if labels is None:
        return lengths
    pairs = zip(labels, lengths, strict=True)
    return [label << LABEL_AT | length for label, length in pairs]
