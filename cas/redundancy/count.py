"""Counts chunks over several tiers: which tiers have each, and how much of a file others have too.

One record for each chunk as often as a tier has it (`_record`), all of them sorted by chunk id
(`cas/redundancy/runs.py`), so those of one chunk follow one another, the tier that comes first
before the others. What is asked of tiers afterwards needs no chunks any more: bytes are summed by
the *set of tiers* that has them, a number with a bit for each tier, of which there are as many as
are found, 2^n at most for n tiers. Unions, orders and left out tiers are sums over those sets.

Memory: that of the sort, some 40 bytes a file, and the sets.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from cas.archive import ArchiveRecipe
from cas.ids import DIGEST_SIZE, Digest
from cas.redundancy.chunks import Part, tier_chunks
from cas.redundancy.paths import Paths
from cas.redundancy.runs import RECORDS_AT_ONCE, SortedRuns
from cas.snapshot import Snapshot
from cas.store.store import Store

LENGTH_BITS, LABEL_BITS, FILE_BITS, TIER_BITS = 48, 16, 40, 16
TAIL_SIZE = (LENGTH_BITS + LABEL_BITS + FILE_BITS + TIER_BITS) // 8
RECORD_SIZE = DIGEST_SIZE + TAIL_SIZE
LENGTH_MOST = 2**LENGTH_BITS - 1  # a file whose recipe is lost may claim more, and is none of use
LABELS_LIMIT = 2**LABEL_BITS
AT_ONCE = 4096  # records that are handed to the sort, about
_LABEL_AT, _FILE_AT = LENGTH_BITS, LENGTH_BITS + LABEL_BITS
_TIER_AT = _FILE_AT + FILE_BITS

Labels = Callable[[Part], Sequence[int]]  # a number for each chunk of a part, below LABELS_LIMIT
Seen = Callable[[list[Digest], list[int]], Sequence[bool]]  # ids and labels: whether each is held


@dataclass(slots=True)
class Sum:
    """Distinct chunks, and those of them that are not held (if that was asked)."""

    bytes: int = 0
    chunks: int = 0
    missing: int = 0
    missing_chunks: int = 0


@dataclass(slots=True)
class TierCount:
    """What a tier has, duplicates included: `logical` as the source counts it, `unpacked` the bytes
    of its chunks, which is what lies in archives instead of the archives, and no holes."""

    name: str
    files: int = 0  # with any content
    logical: int = 0
    unpacked: int = 0
    chunks: int = 0
    unknown: int = 0  # files whose recipes are not here: each counts as one chunk


@dataclass(slots=True)
class Count:
    """What was counted. `groups` are sums by set of tiers (bit n is tier n) and label.

    The others have a row for each file, numbered from 0 through all tiers in order: `unpacked`
    bytes of its chunks, of those `repeated` that came before (in an earlier tier, or earlier in
    this one, or in the file), of those `shared` that another tier has too, wherever it stands;
    `partners` is the set of tiers that it shares with, its own among them; `archives` is 1 where
    it was taken apart.
    """

    tiers: list[TierCount] = field(default_factory=list)
    groups: dict[tuple[int, int], Sum] = field(default_factory=dict)
    unpacked: array[int] = field(default_factory=lambda: array("Q"))
    repeated: array[int] = field(default_factory=lambda: array("Q"))
    shared: array[int] = field(default_factory=lambda: array("Q"))
    partners: list[int] = field(default_factory=list)
    archives: bytearray = field(default_factory=bytearray)
    paths: Paths = field(default_factory=Paths)

    def by_set(self) -> dict[int, Sum]:
        """The sums by set of tiers alone."""
        sums: dict[int, Sum] = {}
        for (tiers, _), group in self.groups.items():
            total = sums.setdefault(tiers, Sum())
            total.bytes += group.bytes
            total.chunks += group.chunks
            total.missing += group.missing
            total.missing_chunks += group.missing_chunks
        return sums


def count(
    store: Store,
    snapshots: Sequence[Snapshot],
    *,
    labels: Labels | None = None,
    seen: Seen | None = None,
    at_once: int = RECORDS_AT_ONCE,
) -> Count:
    """Count the chunks of `snapshots`, one for each tier, in the order of the tiers.

    A chunk has the label that `labels` gives it where it comes first. `seen` is asked once about
    each distinct chunk, in order of ids; without it none is missing. Raises NotHeldError where a
    page is not here, DamageError, StoreError where there is no room to sort in.
    """
    counted = Count()
    with SortedRuns(RECORD_SIZE, at_once=at_once) as runs:
        for number, snapshot in enumerate(snapshots):
            for records in _records(store, snapshot, number, counted, labels):
                runs.add(records)
        files = len(counted.unpacked)
        counted.repeated, counted.shared = (
            array("Q", bytes(8 * files)),
            array("Q", bytes(8 * files)),
        )
        counted.partners = [0] * files
        groups = _Groups(counted, seen)
        for batch in runs.batches():
            groups.take(batch)
        groups.end()
    return counted


def _records(
    store: Store, snapshot: Snapshot, number: int, counted: Count, labels: Labels | None
) -> Iterator[list[bytes]]:
    """The records of a tier, those of a part at a time; the tier and its files are counted."""
    tier = TierCount(snapshot.tier, logical=snapshot.logical)
    counted.tiers.append(tier)
    entry, records = None, list[bytes]()
    for part in tier_chunks(store, snapshot):
        if part.entry is not entry:
            entry = part.entry
            _begin_file(counted, tier, part)
        size = part.lengths[0] if len(part.lengths) == 1 else sum(part.lengths)
        tier.unpacked += size
        tier.chunks += len(part.ids)
        counted.unpacked[-1] += size
        base = number << _TIER_AT | (len(counted.unpacked) - 1) << _FILE_AT
        records += _part_records(part, base, None if labels is None else labels(part))
        if len(records) >= AT_ONCE:
            yield records
            records = []
    yield records


def _begin_file(counted: Count, tier: TierCount, part: Part) -> None:
    tier.files += 1
    tier.unknown += not part.is_known
    counted.unpacked.append(0)
    counted.archives.append(isinstance(part.recipe, ArchiveRecipe))
    counted.paths.add(part.entry.path)


def _part_records(part: Part, base: int, labels: Sequence[int] | None) -> list[bytes]:
    if len(part.ids) == 1:
        label = 0 if labels is None else labels[0]
        base |= label << _LABEL_AT | min(part.lengths[0], LENGTH_MOST)
        return [part.ids[0] + base.to_bytes(TAIL_SIZE, "big")]
    if labels is None:
        return [
            id_ + (base | length).to_bytes(TAIL_SIZE, "big")
            for id_, length in zip(part.ids, part.lengths, strict=True)
        ]
    return [
        id_ + (base | label << _LABEL_AT | length).to_bytes(TAIL_SIZE, "big")
        for id_, length, label in zip(part.ids, part.lengths, labels, strict=True)
    ]


class _Groups:
    """Takes the sorted records and adds up the groups of one id; groups may span batches."""

    def __init__(self, counted: Count, seen: Seen | None) -> None:
        self._counted = counted
        self._seen = seen
        self._id = b""
        self._tails: list[int] = []
        self._asked: tuple[list[Digest], list[int], list[int], list[Sum]] = ([], [], [], [])

    def take(self, batch: list[bytes]) -> None:
        """The next records."""
        id_, tails = self._id, self._tails
        number = int.from_bytes
        for record in batch:
            if record[:DIGEST_SIZE] != id_:
                if tails:
                    self._close(id_, tails)
                id_, tails = record[:DIGEST_SIZE], []
            tails.append(number(record[DIGEST_SIZE:], "big"))
        self._id, self._tails = id_, tails
        self._ask()

    def end(self) -> None:
        """There are no more."""
        if self._tails:
            self._close(self._id, self._tails)
        self._ask()

    def _close(self, id_: bytes, tails: list[int]) -> None:
        """All records of one chunk: the first says its length and label."""
        first = tails[0]
        length = first & LENGTH_MOST
        label = first >> _LABEL_AT & LABELS_LIMIT - 1
        tiers = 1 << (first >> _TIER_AT)
        if len(tails) > 1:
            for tail in tails:
                tiers |= 1 << (tail >> _TIER_AT)
            self._note_files(tails, tiers, length)
        total = self._counted.groups.get((tiers, label))
        if total is None:
            total = self._counted.groups[tiers, label] = Sum()
        total.bytes += length
        total.chunks += 1
        if self._seen is not None:
            ids, labels, lengths, totals = self._asked
            ids.append(Digest(id_))
            labels.append(label)
            lengths.append(length)
            totals.append(total)

    def _note_files(self, tails: list[int], tiers: int, length: int) -> None:
        counted = self._counted
        files = [tail >> _FILE_AT & 2**FILE_BITS - 1 for tail in tails]
        for file in files[1:]:
            counted.repeated[file] += length
        if tiers & (tiers - 1):
            for file in files:
                counted.shared[file] += length
                counted.partners[file] |= tiers

    def _ask(self) -> None:
        """Ask what of the chunks since the last time is held."""
        if self._seen is None:
            return
        ids, labels, lengths, totals = self._asked
        for held, length, total in zip(self._seen(ids, labels), lengths, totals, strict=True):
            if not held:
                total.missing += length
                total.missing_chunks += 1
        self._asked = ([], [], [], [])
