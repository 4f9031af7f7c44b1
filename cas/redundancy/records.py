"""The records by which chunks are counted: one for each chunk as often as a tier has it.

A record is a chunk's id, then a number of TAIL_SIZE bytes, big-endian: tier, row, label and length.
So sorted records of one chunk follow one another, the tier that comes first before the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from cas.archive import ArchiveRecipe
from cas.ids import DIGEST_SIZE
from cas.redundancy.chunks import Part, tier_chunks
from cas.redundancy.tally import ARCHIVE, FILE, REST, Count, TierCount
from cas.snapshot import Snapshot
from cas.store.store import Store

LENGTH_BITS, LABEL_BITS, ROW_BITS, TIER_BITS = 48, 16, 40, 16
LABEL_AT = LENGTH_BITS
ROW_AT = LABEL_AT + LABEL_BITS
TIER_AT = ROW_AT + ROW_BITS
TAIL_SIZE = (TIER_AT + TIER_BITS) // 8
RECORD_SIZE = DIGEST_SIZE + TAIL_SIZE
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

    def tier(self, snapshot: Snapshot) -> Iterator[list[bytes]]:
        """The records of the next tier, some at a time. Raises as `tier_chunks`."""
        tier = TierCount(snapshot.tier, logical=snapshot.logical)
        number = len(self._counted.tiers)
        self._counted.tiers.append(tier)
        entry, records = None, list[bytes]()
        for part in tier_chunks(self._store, snapshot):
            tier.unpacked += sum(part.lengths)
            tier.chunks += len(part.ids)
            is_new, entry = part.entry is not entry, part.entry
            if is_new:
                tier.files += 1
                tier.unknown += not part.is_known
            labels = None if self._labels is None else self._labels(part)
            members = None if self._inside is None else self._inside(part)
            if members is None:
                records += self._whole(part, number << TIER_AT, labels, is_new)
            else:
                records += self._split(part, number << TIER_AT, labels, members, is_new)
            if len(records) >= AT_ONCE:
                yield records
                records = []
        yield records

    def _whole(
        self, part: Part, base: int, labels: Sequence[int] | None, is_new: bool
    ) -> list[bytes]:
        """The records of a part whose file is one row."""
        if is_new:
            sort = ARCHIVE if isinstance(part.recipe, ArchiveRecipe) else FILE
            self._counted.begin_row(part.entry.path, sort)
        row = len(self._counted.unpacked) - 1
        self._counted.unpacked[row] += sum(part.lengths)
        base |= row << ROW_AT
        if len(part.ids) == 1:
            base |= (labels[0] if labels else 0) << LABEL_AT | min(part.lengths[0], LENGTH_MOST)
            return [part.ids[0] + base.to_bytes(TAIL_SIZE, "big")]
        if labels is None:
            return [
                id_ + (base | length).to_bytes(TAIL_SIZE, "big")
                for id_, length in zip(part.ids, part.lengths, strict=True)
            ]
        return [
            id_ + (base | label << LABEL_AT | length).to_bytes(TAIL_SIZE, "big")
            for id_, length, label in zip(part.ids, part.lengths, labels, strict=True)
        ]

    def _split(
        self,
        part: Part,
        base: int,
        labels: Sequence[int] | None,
        members: tuple[Sequence[bytes], Sequence[int]],
        is_new: bool,
    ) -> list[bytes]:
        """The records of a part of an archive whose members are rows."""
        paths, numbers = members
        if is_new:
            self._first = len(self._counted.unpacked)
            for path in paths:
                self._counted.begin_row(part.entry.path + b"!/" + path, FILE if path else REST)
        records = []
        for at, (id_, length) in enumerate(zip(part.ids, part.lengths, strict=True)):
            row = self._first + numbers[at]
            self._counted.unpacked[row] += length
            tail = base | row << ROW_AT | (labels[at] if labels else 0) << LABEL_AT | length
            records.append(id_ + tail.to_bytes(TAIL_SIZE, "big"))
        return records
