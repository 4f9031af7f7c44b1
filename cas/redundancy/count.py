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

from cas.ids import Digest
from cas.redundancy.records import (
    LABEL_AT,
    LENGTH_MOST,
    RECORD,
    ROW_MOST,
    TIER_AT,
    Inside,
    Labels,
    Recorder,
)
from cas.redundancy.runs import RECORDS_AT_ONCE, SortedRuns
from cas.redundancy.tally import Count
from cas.snapshot import Snapshot
from cas.store.store import Store

Seen = Callable[
    [list[Digest], Sequence[int]], Sequence[bool]
]  # ids and labels: whether each is held
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
    with SortedRuns(RECORD.size, at_once=at_once) as runs:
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
        self._id = Digest(b"")
        self._measure = 0
        self._places: list[int] = []  # of the group that is open

    def take(self, batch: bytes) -> None:
        """The next records, end to end."""
        open_id, measure, places = self._id, self._measure, self._places
        ids, measures, sets = list[Digest](), list[int](), list[int]()
        for id_, place, its in RECORD.iter_unpack(batch):
            if id_ == open_id:
                places.append(place)
                continue
            if places:
                ids.append(open_id)
                measures.append(measure)
                sets.append(self._tiers(places, measure))
            open_id, measure, places = id_, its, [place]
        self._id, self._measure, self._places = open_id, measure, places
        self._add(ids, measures, sets)

    def end(self) -> None:
        """There are no more."""
        if self._places:
            tiers = self._tiers(self._places, self._measure)
            self._add([self._id], [self._measure], [tiers])

    def _tiers(self, places: list[int], measure: int) -> int:
        """The set of tiers that have a chunk, from its places; what they share is noted."""
        tiers = 1 << (places[0] >> TIER_AT)
        if len(places) == 1:
            return tiers
        for place in places:
            tiers |= 1 << (place >> TIER_AT)
        counted, length = self._counted, measure & LENGTH_MOST
        rows = [place & ROW_MOST for place in places]
        for row in rows[1:]:
            counted.repeated[row] += length
        if tiers & (tiers - 1):
            for row in rows:
                counted.shared[row] += length
                counted.partners[row] |= tiers
        return tiers

    def _add(self, ids: list[Digest], measures: list[int], sets: list[int]) -> None:
        """Add up distinct chunks; ask for their labels, and which of them are held."""
        lengths = [measure & LENGTH_MOST for measure in measures]
        labels = (
            [measure >> LABEL_AT for measure in measures] if self._late is None else self._late(ids)
        )
        totals = list(map(self._counted.groups.__getitem__, zip(sets, labels, strict=True)))
        for total, length in zip(totals, lengths, strict=True):
            total.bytes += length
            total.chunks += 1
        if self._seen is None:
            return
        for held, total, length in zip(self._seen(ids, labels), totals, lengths, strict=True):
            if not held:
                total.missing += length
                total.missing_chunks += 1
