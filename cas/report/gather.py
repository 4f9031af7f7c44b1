"""Finds out what a report says, in two passes: over the records of packs, and over all pages and
recipes of the tiers. Memory is that of `cas.redundancy.count`, and a number for each segment."""

from __future__ import annotations

import heapq
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import astuple, dataclass, field
from functools import cached_property
from itertools import accumulate

from cas.archive import ArchiveRecipe
from cas.audit.records import Records
from cas.audit.sums import Sum
from cas.entry import Entry
from cas.interfaces import SnapshotRow
from cas.redundancy.chunks import Part
from cas.redundancy.count import count
from cas.redundancy.overlap import Overlap, members_of
from cas.redundancy.tally import Count
from cas.report.facts import (
    Facts,
    FileFacts,
    Flow,
    Measures,
    OriginFacts,
    PackedFacts,
    PackedReason,
    Parts,
    TierFacts,
)
from cas.report.origins import FIRST, MISSING, UNKNOWN, Origins
from cas.snapshot import Snapshot
from cas.store.store import Store

REASONS_LIMIT = 1000  # told apart; the rest is one
OTHER_REASONS = "other reasons"


def gather(store: Store, chosen: Sequence[tuple[SnapshotRow, Snapshot]], *, most: int) -> Facts:
    """The facts of these tiers, in this order, with up to `most` files and archives. Raises as
    `count`."""
    origins = Origins()
    with closing(Records(store)) as records:
        origins.read(store.index, records)
    seen = _Seen(most)
    counted = count(
        store,
        [snapshot for _, snapshot in chosen],
        inside=seen.look,
        late=lambda ids: list(origins.labels(store.index, ids)),
    )
    return _Sums(chosen, counted, origins, seen).facts()


@dataclass(slots=True)
class _Seen:
    """Looks at every file while it is counted. `files` and `packed` are heaps of the largest, named
    by their rows."""

    most: int
    files: list[tuple[int, int, bytes, str]] = field(default_factory=list)  # size, -row, path, ""
    packed: list[tuple[int, int, bytes, str]] = field(default_factory=list)  # and the reason
    packed_count: int = 0
    reasons: dict[str, list[int]] = field(default_factory=dict)  # how often, bytes
    _row: int = -1
    _entry: Entry | None = None

    def look(self, part: Part) -> None:
        """See `records.Inside`: archives stay one file."""
        size, path = part.content.size, part.entry.path
        if part.entry is not self._entry:
            self._entry = part.entry
            self._row += 1
            self._keep(self.files, (size, -self._row, path, ""))
        if isinstance(part.recipe, ArchiveRecipe):
            for note in part.recipe.notes:
                self._keep(self.packed, (size, -self._row, path, note))
                self._count(note, size)

    def _count(self, note: str, size: int) -> None:
        self.packed_count += 1
        if note not in self.reasons and len(self.reasons) >= REASONS_LIMIT:
            note = OTHER_REASONS
        sums = self.reasons.setdefault(note, [0, 0])
        sums[0] += 1
        sums[1] += size

    def _keep(
        self, kept: list[tuple[int, int, bytes, str]], item: tuple[int, int, bytes, str]
    ) -> None:
        if len(kept) < self.most:
            heapq.heappush(kept, item)
        elif kept and item > kept[0]:
            heapq.heapreplace(kept, item)


class _Sums:
    """Makes facts of what was counted."""

    def __init__(
        self,
        chosen: Sequence[tuple[SnapshotRow, Snapshot]],
        counted: Count,
        origins: Origins,
        seen: _Seen,
    ) -> None:
        self._chosen = chosen
        self._counted = counted
        self._origins = origins
        self._seen = seen
        self._names = [snapshot.tier for _, snapshot in chosen]
        self._starts = list(accumulate((tier.rows for tier in counted.tiers), initial=0))
        sums = {tiers: total.bytes for tiers, total in counted.by_set().items()}
        self._overlap = Overlap(len(chosen), sums)

    def facts(self) -> Facts:
        """All of them."""
        seen, origins = self._seen, self._origins
        flows = self._flows()
        kept = [(key, total) for key, total in origins.sums.items() if total.chunks]
        numbers = {key: number for number, (key, _) in enumerate(kept)}
        return Facts(
            [self._tier(number, flows[number]) for number in range(len(self._chosen))],
            self._together(),
            self._overlap.matrix(),
            [OriginFacts(*key, total.chunks, total.size, total.wire) for key, total in kept],
            self._listed(flows, numbers),
            [self._file(*item) for item in sorted(seen.files, reverse=True)],
            [self._packed(*item) for item in sorted(seen.packed, reverse=True)],
            seen.packed_count,
            sorted((PackedReason(note, *sums) for note, sums in seen.reasons.items()),
                   key=lambda reason: (-reason.count, reason.reason)),
            astuple(origins.meta),
            astuple(origins.again),
            [str(error) for error in origins.damaged],
        )  # fmt: skip

    def _flows(self) -> list[dict[int, int]]:
        """For each tier its distinct bytes by label."""
        flows: list[dict[int, int]] = [{} for _ in self._chosen]
        for (tiers, label), group in self._counted.groups.items():
            for tier in members_of(tiers):
                flows[tier][label] = flows[tier].get(label, 0) + group.bytes
        return flows

    def _listed(
        self, flows: Sequence[Mapping[int, int]], numbers: Mapping[tuple[str, bool], int]
    ) -> list[Flow]:
        keys = self._origins.keys()
        found = []
        for to, sizes in enumerate(flows):
            for label, size in sorted(sizes.items()):
                if label >= FIRST and size:
                    found.append(Flow(numbers.get(keys[label - FIRST]), to, size))
                elif label == UNKNOWN and size:
                    found.append(Flow(None, to, size))
        return found

    def _tier(self, number: int, sizes: Mapping[int, int]) -> TierFacts:
        row, _ = self._chosen[number]
        tier, name = self._counted.tiers[number], self._names[number]
        had = self._origins.sums.get((name, False), Sum())
        measures = Measures(
            tier.logical, tier.unpacked, self._overlap.unique(number), had.size, had.wire,
            self._parts(sizes, {name}),
        )  # fmt: skip
        return TierFacts(
            name, row.finished_ms, row.complete, tier.files, tier.chunks,
            self._overlap.exclusive(number), self._adds[number], measures,
        )  # fmt: skip

    @cached_property
    def _adds(self) -> list[int]:
        return self._overlap.adds(range(len(self._chosen)))

    def _together(self) -> Measures:
        sizes: dict[int, int] = {}
        for (_, label), group in self._counted.groups.items():
            sizes[label] = sizes.get(label, 0) + group.bytes
        names = set(self._names)
        had = [total for (tier, adopted), total in self._origins.sums.items()
               if tier in names and not adopted]  # fmt: skip
        return Measures(
            sum(tier.logical for tier in self._counted.tiers),
            sum(tier.unpacked for tier in self._counted.tiers),
            self._overlap.total,
            sum(total.size for total in had),
            sum(total.wire for total in had),
            self._parts(sizes, names),
        )

    def _parts(self, sizes: Mapping[int, int], names: set[str]) -> Parts:
        """Bytes by label, as of tiers of these names."""
        own = others = adopted = 0
        for number, (tier, is_adopted) in enumerate(self._origins.keys(), FIRST):
            size = sizes.get(number, 0)
            if is_adopted:
                adopted += size
            elif tier in names:
                own += size
            else:
                others += size
        return Parts(own, others, adopted, sizes.get(UNKNOWN, 0), sizes.get(MISSING, 0))

    def _file(self, size: int, row: int, path: bytes, _reason: str) -> FileFacts:
        counted = self._counted
        return FileFacts(self._tier_of(-row), path, size, counted.unpacked[-row],
                         counted.repeated[-row], counted.shared[-row])  # fmt: skip

    def _packed(self, size: int, row: int, path: bytes, reason: str) -> PackedFacts:
        return PackedFacts(self._tier_of(-row), path, size, reason)

    def _tier_of(self, row: int) -> int:
        return bisect_right(self._starts, row) - 1
