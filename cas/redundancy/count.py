"""Counts chunks over several tiers: which tiers have each, and how much of a file others have too.

The records of all tiers (`records.py`) are sorted by chunk id (`runs.py`). What is asked of tiers
afterwards needs no chunks any more: bytes are summed by the *set of tiers* that has them, a number
with a bit for each tier, of which there are as many as are found, 2^n at most for n tiers. Unions,
orders and left out tiers are sums over those sets (`overlap.py`).

Memory: that of the sort, some 40 bytes a file, and the sets.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence

from cas.ids import DIGEST_SIZE, Digest
from cas.redundancy.records import (
    LABEL_AT,
    LABELS_LIMIT,
    LENGTH_MOST,
    RECORD_SIZE,
    ROW_AT,
    ROW_BITS,
    TIER_AT,
    Inside,
    Labels,
    Recorder,
)
from cas.redundancy.runs import RECORDS_AT_ONCE, SortedRuns
from cas.redundancy.tally import Count, Sum
from cas.snapshot import Snapshot
from cas.store.store import Store

Seen = Callable[[list[Digest], list[int]], Sequence[bool]]  # ids and labels: whether each is held
Late = Callable[[list[Digest]], Sequence[int]]  # a label for each id


def count(
    store: Store,
    snapshots: Sequence[Snapshot],
    *,
    labels: Labels | None = None,
    inside: Inside | None = None,
    seen: Seen | None = None,
    late: Late | None = None,
    at_once: int = RECORDS_AT_ONCE,
) -> Count:
    """Count the chunks of `snapshots`, one for each tier, in the order of the tiers.

    A chunk has the label that `labels` gives it where it comes first, or that `late` gives it: that
    is asked once about each distinct chunk, in order of ids, before `seen`. `inside` says which
    chunks of an archive are which member's; without it an archive is one file. `seen` is asked once
    about each distinct chunk, in order of ids; without it none is missing. Raises NotHeldError
    where a page is not here, DamageError, StoreError where there is no room to sort in.
    """
    counted = Count()
    recorder = Recorder(store, counted, labels, inside)
    with SortedRuns(RECORD_SIZE, at_once=at_once) as runs:
        for snapshot in snapshots:
            for records in recorder.tier(snapshot):
                runs.add(records)
        rows = len(counted.unpacked)
        counted.repeated = array("Q", bytes(8 * rows))
        counted.shared = array("Q", bytes(8 * rows))
        counted.partners = [0] * rows
        groups = _Groups(counted, seen, late)
        for batch in runs.batches():
            groups.take(batch)
        groups.end()
    return counted


class _Groups:
    """Takes the sorted records and adds up the groups of one id; groups may span batches."""

    def __init__(self, counted: Count, seen: Seen | None, late: Late | None) -> None:
        self._counted = counted
        self._seen = seen
        self._late = late
        self._unlabelled: tuple[list[Digest], list[int], list[int]] = ([], [], [])
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
        label = first >> LABEL_AT & LABELS_LIMIT - 1
        tiers = 1 << (first >> TIER_AT)
        if len(tails) > 1:
            for tail in tails:
                tiers |= 1 << (tail >> TIER_AT)
            self._note_rows(tails, tiers, length)
        if self._late is None:
            self._count(id_, label, tiers, length)
            return
        ids, sets, lengths = self._unlabelled
        ids.append(Digest(id_))
        sets.append(tiers)
        lengths.append(length)

    def _count(self, id_: bytes, label: int, tiers: int, length: int) -> None:
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

    def _note_rows(self, tails: list[int], tiers: int, length: int) -> None:
        counted = self._counted
        rows = [tail >> ROW_AT & 2**ROW_BITS - 1 for tail in tails]
        for row in rows[1:]:
            counted.repeated[row] += length
        if tiers & (tiers - 1):
            for row in rows:
                counted.shared[row] += length
                counted.partners[row] |= tiers

    def _ask(self) -> None:
        """Ask for the labels of the chunks since the last time, and what of them is held."""
        if self._late is not None:
            ids, sets, lengths = self._unlabelled
            for id_, label, tiers, length in zip(ids, self._late(ids), sets, lengths, strict=True):
                self._count(id_, label, tiers, length)
            self._unlabelled = ([], [], [])
        if self._seen is None:
            return
        asked, labels, lengths, totals = self._asked
        for held, length, total in zip(self._seen(asked, labels), lengths, totals, strict=True):
            if not held:
                total.missing += length
                total.missing_chunks += 1
        self._asked = ([], [], [], [])
