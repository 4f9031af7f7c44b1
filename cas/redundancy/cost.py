"""What tiers would cost on the wire, from snapshots alone: which bytes are missing is counted, what
they compress to is estimated.

The estimate is a ratio for each label (`cas/redundancy/labels.py`): what is held says by how much
content of that label compressed (`learn.py`), and until some is held, what was found elsewhere
(`priors.py`). What chunks cost does not depend on the tier they come with, so estimates are kept by
sets of tiers, as sizes are, and any order and choice of tiers can be asked about afterwards.

Pages and recipes cost nothing any more: they are here, or there would be no snapshot.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from cas.redundancy.count import count
from cas.redundancy.labels import Label, Labeller, Sort
from cas.redundancy.learn import Sample, learn, weight_of
from cas.redundancy.overlap import Overlap
from cas.redundancy.priors import prior
from cas.redundancy.tally import Count
from cas.snapshot import Snapshot
from cas.store.store import Store

# How far off a ratio is, as a share of it: one that was never seen here (of files, of which the
# name is all that is known, and of the rest), and one that was, since what is still missing may be
# of another sort all the same. One near to 1 cannot be far off.
UNSEEN, UNSEEN_PLAIN, SEEN = 0.25, 0.5, 0.15
DENSE = 0.7
LEAST_SPREAD = 150_000  # bytes; in a small tier a few files make a difference
FRAMING = 1.001  # on the wire, for heads of segments and pieces


@dataclass(frozen=True, slots=True)
class Cost:
    """Of one tier, or of several together: bytes of missing chunks, plain, and on the wire as
    estimated; `spread` is how far off that may be, to both sides."""

    missing: int = 0
    wire: int = 0
    spread: int = 0

    @property
    def low(self) -> int:
        """The least that it may come to on the wire."""
        return max(0, self.wire - self.spread)

    @property
    def high(self) -> int:
        """The most; not more than the plain bytes and their framing."""
        return min(self.wire + self.spread, max(self.wire, round(self.missing * FRAMING)))


@dataclass(frozen=True, slots=True)
class Costs:
    """What was counted, and missing bytes, wire bytes and spreads by sets of tiers."""

    counted: Count
    missing: Overlap
    wire: Overlap
    spread: Overlap

    def of(self, order: Sequence[int]) -> list[Cost]:
        """What each tier of `order` costs after those before it there."""
        rows = zip(
            self.missing.adds(order), self.wire.adds(order), self.spread.adds(order), strict=True
        )
        return [Cost(m, w, max(s, min(LEAST_SPREAD, m))) for m, w, s in rows]

    def saves(self, tier: int, order: Sequence[int]) -> int:
        """What leaving `tier` out of `order` would save on the wire."""
        rest = [other for other in order if other != tier]
        return sum(self.wire.adds(order)) - sum(self.wire.adds(rest))


def together(costs: Sequence[Cost]) -> Cost:
    """The sum. What makes one tier's estimate too high seldom does so with another's: spreads add
    up by their squares."""
    return Cost(
        sum(cost.missing for cost in costs),
        sum(cost.wire for cost in costs),
        round(math.hypot(*(cost.spread for cost in costs))),
    )


def estimate(store: Store, snapshots: Sequence[Snapshot], level: int) -> Costs:
    """What `snapshots`, one for each tier, still cost at this level of zstd. Raises as `count`."""
    labeller, sample = Labeller(store), Sample(store)
    counted = count(store, snapshots, labels=labeller, seen=sample.add)
    priors = [prior(label, level) for label in labeller.labels]
    weights = [weight_of(label) for label in labeller.labels]
    ratios = learn(priors, weights, sample.segments())
    held = [0] * len(ratios)
    for (_, label), group in counted.groups.items():
        held[label] += group.bytes - group.missing
    errors = [
        _error(label, weight / (weight + size))
        for label, weight, size in zip(labeller.labels, weights, held, strict=True)
    ]

    def overlap(rate: Callable[[int], float]) -> Overlap:
        sums: dict[int, float] = {}
        for (tiers, label), group in counted.groups.items():
            if group.missing:
                sums[tiers] = sums.get(tiers, 0.0) + group.missing * rate(label)
        return Overlap(len(snapshots), {tiers: round(size) for tiers, size in sums.items()})

    return Costs(
        counted,
        overlap(lambda _: 1.0),
        overlap(lambda label: ratios[label] * FRAMING),
        overlap(lambda label: _spread(ratios[label], errors[label]) * FRAMING),
    )


def _error(label: Label, unseen: float) -> float:
    """How far off a ratio may be as a share of it, `unseen` being what the prior counts for."""
    most = UNSEEN_PLAIN if label.sort is Sort.PLAIN else UNSEEN
    return SEEN + (most - SEEN) * unseen


def _spread(ratio: float, error: float) -> float:
    """How far off a ratio may be."""
    return ratio * error * min(1.0, (1.0 - ratio) / (1.0 - DENSE))
