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
from collections.abc import Sequence
from dataclasses import dataclass

from cas.redundancy.count import count
from cas.redundancy.labels import Label, Labeller, Sort
from cas.redundancy.learn import Sample, learn, weight_of
from cas.redundancy.overlap import Overlap
from cas.redundancy.priors import PACKED, prior
from cas.redundancy.tally import Count
from cas.snapshot import Snapshot
from cas.store.store import Store

# How far off a ratio is, as a share of it: one that was never seen here (of files, of which the
# name is all that is known, and of the rest), and one that was, since what is still missing may be
# of another sort all the same. One near to 1 cannot be far off.
UNSEEN, UNSEEN_PLAIN, SEEN = 0.25, 0.5, 0.15
DENSE = 0.7
NAMED = 0.4  # of that share, at least, where a name is all that is known
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
    labels = labeller.labels
    weights = [weight_of(label) for label in labels]
    ratios = learn([prior(label, level) for label in labels], weights, sample.segments())
    spreads = _spreads(labels, ratios, weights, counted)
    return Costs(
        counted,
        _sums(counted, [1.0] * len(labels)),
        _sums(counted, [ratio * FRAMING for ratio in ratios]),
        _sums(counted, [spread * FRAMING for spread in spreads]),
    )


def _sums(counted: Count, rates: Sequence[float]) -> Overlap:
    """The missing bytes by sets of tiers, each times the rate of its label."""
    sums: dict[int, float] = {}
    for (tiers, label), group in counted.groups.items():
        if group.missing:
            sums[tiers] = sums.get(tiers, 0.0) + group.missing * rates[label]
    return Overlap(len(counted.tiers), {tiers: round(size) for tiers, size in sums.items()})


def _spreads(
    labels: Sequence[Label], ratios: Sequence[float], weights: Sequence[int], counted: Count
) -> list[float]:
    """How far off the ratio of each label may be."""
    held = [0] * len(labels)
    for (_, label), group in counted.groups.items():
        held[label] += group.bytes - group.missing
    rows = zip(labels, ratios, weights, held, strict=True)
    return [_spread(label, ratio, weight / (weight + size)) for label, ratio, weight, size in rows]


def _spread(label: Label, ratio: float, unseen: float) -> float:
    """The same of one label, `unseen` being the share of the ratio that the prior decided."""
    is_named = label.sort is Sort.PLAIN and label.kind not in PACKED
    most = UNSEEN_PLAIN if label.sort is Sort.PLAIN else UNSEEN
    error = SEEN + (most - SEEN) * unseen
    narrowed = min(1.0, (1.0 - ratio) / (1.0 - DENSE))
    return ratio * error * max(narrowed, NAMED if is_named else 0.0)
