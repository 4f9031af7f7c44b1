"""What a report says, as numbers and names; `gather.py` finds it, `page.py` shows it.

Sizes are plain bytes but for `wire`. A tier is its newest snapshot. Each distinct byte of a tier is
in one of its parts, by where it was first had from:

    unique = own + others + adopted + unknown + missing

`fetched` and `wire` are of all that was ever first had for the tier and is held, so `fetched` is
`own` and what only older snapshots have (or none, while a sync goes on).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Parts:
    """Distinct bytes by where they were first had from: fetched for the tier itself (`own`), for
    `others`, `adopted` from files of this machine, `unknown` because a record cannot be read; and
    those that are `missing` here."""

    own: int = 0
    others: int = 0
    adopted: int = 0
    unknown: int = 0
    missing: int = 0


@dataclass(frozen=True, slots=True)
class Measures:
    """One tier, or all together: `logical` as the source counts, `unpacked` what its chunks come
    to, duplicates included, `unique` without those; what was `fetched`, and its `wire` bytes."""

    logical: int = 0
    unpacked: int = 0
    unique: int = 0
    fetched: int = 0
    wire: int = 0
    parts: Parts = field(default_factory=Parts)


@dataclass(frozen=True, slots=True)
class TierFacts:
    """A tier. `adds` is what none before it in the report has, `exclusive` what no other has."""

    name: str
    finished_ms: int
    complete: bool
    files: int
    chunks: int
    exclusive: int
    adds: int
    measures: Measures


@dataclass(frozen=True, slots=True)
class OriginFacts:
    """What was first had for a tier (`adopted`: from files of this machine), and is held."""

    tier: str
    adopted: bool
    chunks: int
    fetched: int
    wire: int


@dataclass(frozen=True, slots=True)
class Flow:
    """How many distinct bytes of tier number `to` were first had from origin number `origin`; None
    where that is not known."""

    origin: int | None
    to: int
    size: int


@dataclass(frozen=True, slots=True)
class FileFacts:
    """A large file: its `size`, and of the `unpacked` bytes of its chunks those that came before
    it (`repeated`), and those that another tier has too (`shared`)."""

    tier: int
    path: bytes
    size: int
    unpacked: int
    repeated: int
    shared: int


@dataclass(frozen=True, slots=True)
class PackedFacts:
    """Something in an archive that was left as it is, or the archive; and why."""

    tier: int
    path: bytes
    size: int
    reason: str


@dataclass(frozen=True, slots=True)
class PackedReason:
    """How often that was so for one reason, in archives of how many bytes."""

    reason: str
    count: int
    size: int


@dataclass(frozen=True, slots=True)
class Facts:
    """All of it. `matrix` has the distinct bytes that are in both of two tiers. `meta` and `again`
    are chunks, bytes and wire bytes of pages and recipes, and of what was received again. `files`
    and `packed` are the largest, `packed_count` how many of those there are. `damaged` says where
    records cannot be read."""

    tiers: Sequence[TierFacts]
    together: Measures
    matrix: Sequence[Sequence[int]]
    origins: Sequence[OriginFacts]
    flows: Sequence[Flow]
    files: Sequence[FileFacts]
    packed: Sequence[PackedFacts]
    packed_count: int
    reasons: Sequence[PackedReason]
    meta: tuple[int, int, int]
    again: tuple[int, int, int]
    damaged: Sequence[str]

    def percent(self, one: int, other: int) -> float:
        """What two tiers share, of the smaller of them."""
        matrix = self.matrix
        return 100 * matrix[one][other] / max(1, min(matrix[one][one], matrix[other][other]))


@dataclass(frozen=True, slots=True)
class Point:
    """A run after so many seconds: content fetched and wire bytes received until then, and lanes
    that were up."""

    seconds: float
    fetched: int
    wire_in: int
    lanes: int


@dataclass(frozen=True, slots=True)
class RunFacts:
    """A run, as far as it was recorded; `lanes` that did best, or the most that there were at a
    time; None where neither is known."""

    id: bytes
    begun_ms: int
    command: str
    state: str
    seconds: float | None
    fetched: int
    wire_in: int
    wire_out: int
    lanes: int | None
    tiers: Sequence[str]
    points: Sequence[Point]

    @property
    def goodput(self) -> float | None:
        """Bytes of new content a second."""
        return self.fetched / self.seconds if self.seconds else None


@dataclass(frozen=True, slots=True)
class Words:
    """How numbers and names are written for people; each gives text on one line."""

    size: Callable[[float], str]
    number: Callable[[int], str]
    duration: Callable[[float], str]
    moment: Callable[[int], str]
    path: Callable[[bytes], str]
    text: Callable[[str], str]
