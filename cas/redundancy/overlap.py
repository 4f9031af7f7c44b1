"""What tiers have in common, from sums by sets of tiers alone: nothing here knows of chunks.

A set is a number with a bit for each tier, bit n for tier n of the order in which they were
counted. Each distinct byte is in just one of the sums. So of a tier `unique` is `exclusive` and
`shared`, the matrix is symmetric, and all orders of all tiers bring the same together.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations

MOVED_MOST = 16  # of so many tiers there are 240 moves


@dataclass(frozen=True, slots=True)
class Overlap:
    """`sums` are bytes (of content, or on the wire) by set of tiers."""

    tiers: int
    sums: Mapping[int, int]

    @property
    def total(self) -> int:
        """All distinct bytes."""
        return sum(self.sums.values())

    def matrix(self) -> list[list[int]]:
        """Distinct bytes that are in both of two tiers; in the diagonal, in the tier. Symmetric."""
        matrix = [[0] * self.tiers for _ in range(self.tiers)]
        for tiers, size in self.sums.items():
            members = list(members_of(tiers))
            for one in members:
                row = matrix[one]
                for other in members:
                    row[other] += size
        return matrix

    def unique(self, tier: int) -> int:
        """Distinct bytes of a tier."""
        return sum(size for tiers, size in self.sums.items() if tiers >> tier & 1)

    def exclusive(self, tier: int) -> int:
        """Of those, what no other tier has: what leaving the tier out would save."""
        return self.sums.get(1 << tier, 0)

    def shared(self, tier: int) -> int:
        """Of those, what some other tier has too."""
        return self.unique(tier) - self.exclusive(tier)

    def adds(self, order: Iterable[int]) -> list[int]:
        """What each tier of `order` brings that none before it there did."""
        left, added = dict(self.sums), []
        for tier in order:
            brought = [tiers for tiers in left if tiers >> tier & 1]
            added.append(sum(map(left.pop, brought)))
        return added

    def soonest(self, worth: Sequence[int]) -> list[int]:
        """The order in which most is usable soonest, `worth` being the bytes that each tier makes
        usable (its logical bytes, say) once it is whole: that of a short `mean_wait`.

        Next always comes the tier with the most worth for each byte that must still be brought for
        it, given all that was brought already; of equals the one that was counted first. For tiers
        that share nothing no order has a shorter mean wait (W. E. Smith, Various optimizers for
        single-stage production, 1956: jobs by weight over length). For tiers that share it is the
        usual greedy choice, good and not always the best. So from there, or from the order in which
        they were counted if that is better, single tiers are moved as long as that helps (among at
        most MOVED_MOST of them).
        """
        counted = list(range(self.tiers))
        order = min(counted, self._greedy(worth), key=lambda order: self.mean_wait(order, worth))
        return self._improved(order, worth) if self.tiers <= MOVED_MOST else order

    def mean_wait(self, order: Sequence[int], worth: Sequence[int]) -> float:
        """How many bytes must have come in this order of the tiers until a byte of what is usable
        then can be used: the mean over the bytes of `worth`."""
        come = waited = 0
        for tier, added in zip(order, self.adds(order), strict=True):
            come += added
            waited += worth[tier] * come
        return waited / max(1, sum(worth[tier] for tier in order))

    def _improved(self, order: list[int], worth: Sequence[int]) -> list[int]:
        """`order` with single tiers moved to where the wait is shorter, until no move helps."""
        wait = self.mean_wait(order, worth)
        while True:
            moves = permutations(range(self.tiers), 2)
            better = min(
                (_moved(order, *move) for move in moves),
                key=lambda other: self.mean_wait(other, worth),
                default=order,
            )
            if self.mean_wait(better, worth) >= wait:
                return order
            order, wait = better, self.mean_wait(better, worth)

    def _greedy(self, worth: Sequence[int]) -> list[int]:
        left, costs = dict(self.sums), [self.unique(tier) for tier in range(self.tiers)]
        waiting, order = list(range(self.tiers)), []
        while waiting:
            best = max(waiting, key=lambda tier: (_rate(worth[tier], costs[tier]), -tier))
            order.append(best)
            waiting.remove(best)
            for tiers in [tiers for tiers in left if tiers >> best & 1]:
                size = left.pop(tiers)
                for member in members_of(tiers):
                    costs[member] -= size
        return order


def members_of(tiers: int) -> Iterator[int]:
    """The tiers in a set, ascending."""
    while tiers:
        lowest = tiers & -tiers
        yield lowest.bit_length() - 1
        tiers ^= lowest


def _moved(order: list[int], at: int, to: int) -> list[int]:
    rest = order[:at] + order[at + 1 :]
    return [*rest[:to], order[at], *rest[to:]]


def _rate(worth: int, cost: int) -> float:
    return worth / cost if cost else float("inf")
