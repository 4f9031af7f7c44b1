"""By how much content of each label compressed, told from segments that the store holds.

A segment says what its bytes came to, and its chunks are of several labels: only together do many
segments tell the labels apart. Each label's share of a segment is taken to be in proportion to what
is believed so far, then the beliefs are made what the shares come to, some times over: the steps of
expectation and maximisation for sums of counts (L. B. Lucy, An iterative technique for the
rectification of observed distributions, 1974). What was believed before anything was seen counts
like so many bytes (`weight_of`), so a label of which little is held stays near to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from cas.ids import Digest
from cas.interfaces import Location, SegmentPlace
from cas.redundancy.labels import Label, Sort
from cas.store.store import Store

# Plain bytes. A kind of files is much the same wherever it lies. What archives hold is not: what is
# missing of one is often of another sort than what is held of others, and the archive's own
# compression says more. On the corpus less weight there made most tiers worse.
PLAIN_WEIGHT, WEIGHT = 4 * 2**20, 128 * 2**20
STEPS = 50
SEGMENTS_MOST = 5000  # some 5 GB of content; those that are seen first are a random choice
LEAST = 0.001  # of any ratio


@dataclass(slots=True)
class Sample:
    """What segments are made of: bytes by label of each. `add` chunks in the order of their ids,
    which is no order of anything else."""

    store: Store
    _made: dict[tuple[int, int], dict[int, int]] = field(default_factory=dict)

    def add(self, ids: list[Digest], labels: Sequence[int]) -> list[bool]:
        """Take in which of these chunks lie where; whether each is held."""
        places = self.store.reader.locate(ids)
        for place, label in zip(places, labels, strict=True):
            if place is not None:
                self._add(place, label)
        return [place is not None for place in places]

    def _add(self, place: Location, label: int) -> None:
        key = place.frame, place.segment
        made = self._made.get(key)
        if made is None:
            if len(self._made) >= SEGMENTS_MOST:
                return
            made = self._made[key] = {}
        made[label] = made.get(label, 0) + place.length

    def segments(self) -> Iterable[tuple[dict[int, int], float]]:
        """Bytes by label of each segment, and the ratio of stored to plain size of all of it."""
        frames: dict[int, dict[int, SegmentPlace]] = {}
        for (frame, number), made in self._made.items():
            if frame not in frames:
                frames[frame] = dict(self.store.index.segments_of(frame))
            place = frames[frame].get(number)
            if place is not None:
                yield made, place.payload_size / place.plain_size


def weight_of(label: Label) -> int:
    """How many bytes what was believed of `label` counts for."""
    return PLAIN_WEIGHT if label.sort is Sort.PLAIN else WEIGHT


def learn(
    priors: Sequence[float],
    weights: Sequence[int],
    segments: Iterable[tuple[dict[int, int], float]],
) -> list[float]:
    """The ratio of each label, given what was believed of it before (`priors`), as if that had been
    seen of so many bytes (`weights`), and what segments are made of and came to."""
    seen = list(segments)
    ratios = [max(LEAST, prior) for prior in priors]
    for _ in range(STEPS if seen else 0):
        plain = [float(weight) for weight in weights]
        stored = [w * max(LEAST, prior) for w, prior in zip(weights, priors, strict=True)]
        for made, ratio in seen:
            expected = sum(size * ratios[label] for label, size in made.items())
            scale = ratio * sum(made.values()) / expected
            for label, size in made.items():
                plain[label] += size
                stored[label] += size * ratios[label] * scale
        ratios = [s / p for s, p in zip(stored, plain, strict=True)]
    return ratios
