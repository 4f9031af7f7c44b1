"""The numbers that a display shows of a sync: never above 100 %, never backwards.

`Meter.read` looks at the engine's counters at one moment. Whatever they say, each number shown is
at least the one shown before, and nothing fetched is more than there is to fetch.

Percent is of what must really cross, in plain bytes: what is here already does not count, and
there is none before a tier's scan is over, since its whole is not known until then. The time left
follows the wire: plain bytes still to fetch, times the wire bytes that each has cost so far in its
tier, over the wire's speed in the last seconds. A line that has gone silent gives no time at all.

Of what comes over the wire only a part is content that counts: `content` is what became durable
here, compressed, over the same seconds; never shown as more than the wire brought, although what
came in pieces before may count at once. The rest is the protocol, names and recipes, and whatever
came twice.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field, replace

from cas.pull.state import LaneState, Phase, SyncState, TierState

WINDOW_SECONDS = 20.0  # the wire's speed is measured over the last of these
OVER = (Phase.DONE, Phase.FAILED)


@dataclass(frozen=True, slots=True)
class TierReading:
    """One tier at one moment; bytes. `percent` is None while its whole is not known; `left` is for
    how many seconds what is known of it, and of those before, is still to come, None when that
    cannot be told."""

    name: str
    phase: Phase
    scanned: bool
    names: int
    path: bytes
    logical: int
    unique: int
    here: int
    to_fetch: int
    fetched: int
    wire_in: int
    left_out: int
    percent: float | None
    left: float | None = None


@dataclass(frozen=True, slots=True)
class LaneReading:
    """One lane at one moment: `bytes_in` came over it, `payload` of that was content. `rate` is of
    payload, bytes a second; `silent` seconds have passed since the last byte."""

    source: str
    number: int
    state: str
    bytes_in: int
    payload: int
    rate: float
    silent: float


@dataclass(frozen=True, slots=True)
class Reading:
    """A sync at one moment. `rate` is in wire bytes a second, `content` in stored ones; `left` in
    seconds, None when it cannot be told, and only what is known to come when `more` tiers are still
    to be scanned. `silent` is for how many seconds nothing has come."""

    tiers: tuple[TierReading, ...]
    lanes: tuple[LaneReading, ...]
    seconds: float
    wire_in: int
    wire_out: int
    rate: float
    content: float
    left: float | None
    more: bool
    silent: float
    percent: float | None

    @property
    def active(self) -> TierReading | None:
        """The tier that is being worked on, or None."""
        busy = (t for t in self.tiers if t.phase not in (Phase.WAITING, *OVER))
        return next(busy, None)


@dataclass(slots=True)
class _Highest:
    """The largest value of each counter of a tier that was shown."""

    values: dict[str, int] = field(default_factory=dict)
    percent: float = 0.0

    def of(self, name: str, value: int) -> int:
        self.values[name] = max(value, self.values.get(name, 0))
        return self.values[name]


class Meter:
    """Reads one sync, again and again; `now` is the time of the monotonic clock."""

    def __init__(self, state: SyncState, now: float) -> None:
        self._state = state
        self._began = now
        self._highest: dict[int, _Highest] = {}
        self._samples: deque[tuple[float, int, int]] = deque()  # time, wire bytes in, stored
        self._moved = now
        self._wire_in = self._wire_out = self._stored = 0
        self._percent = 0.0
        self._bases: dict[int, tuple[int, int]] = {}  # wire, plain bytes at a tier's first arrival

    def read(self, now: float) -> Reading:
        """What there is to show now; `now` never goes back."""
        tiers = tuple(self._tier(number, tier) for number, tier in enumerate(self._state.tiers))
        wire_in = max(self._wire_in, self._state.wire_in)
        if wire_in > self._wire_in:
            self._moved = now
        self._wire_in = wire_in
        self._wire_out = max(self._wire_out, self._state.wire_out)
        self._stored = max(self._stored, sum(tier.stored for tier in self._state.tiers))
        rate, content = self._rates(now)
        tiers = self._with_left(tiers, rate)
        more = any(not tier.scanned and tier.phase not in OVER for tier in tiers)
        return Reading(
            tiers,
            tuple(sorted((_lane(lane, now) for lane in self._state.lanes), key=_lane_order)),
            now - self._began,
            wire_in,
            self._wire_out,
            rate,
            content,
            self._left(tiers),
            more,
            now - self._moved,
            None if more or not tiers else self._whole(tiers),
        )

    def _tier(self, number: int, tier: TierState) -> TierReading:
        highest = self._highest.setdefault(number, _Highest())
        fetched = highest.of("fetched", min(tier.fetched, tier.to_fetch))
        to_fetch = max(tier.to_fetch, fetched)
        percent = None
        if tier.scanned:
            done = tier.phase is Phase.DONE
            highest.percent = max(highest.percent, _percent(fetched, to_fetch, done))
            percent = highest.percent
        return TierReading(
            tier.name,
            tier.phase,
            tier.scanned,
            highest.of("names", tier.names),
            tier.path,
            highest.of("logical", tier.logical),
            highest.of("unique", tier.unique),
            tier.here,
            to_fetch,
            fetched,
            highest.of("wire_in", tier.wire_in),
            tier.left_out,
            percent,
        )

    def _whole(self, tiers: tuple[TierReading, ...]) -> float:
        fetched = sum(tier.fetched for tier in tiers)
        to_fetch = sum(tier.to_fetch for tier in tiers)
        done = all(tier.phase is Phase.DONE for tier in tiers)
        self._percent = max(self._percent, _percent(fetched, to_fetch, done))
        return self._percent

    def _rates(self, now: float) -> tuple[float, float]:
        """Of the wire, and of content."""
        samples = self._samples
        samples.append((now, self._wire_in, self._stored))
        while len(samples) > 2 and samples[1][0] <= now - WINDOW_SECONDS:
            samples.popleft()
        began, wire, stored = samples[0]
        if now <= began:
            return 0.0, 0.0
        came = self._wire_in - wire
        return came / (now - began), min(came, self._stored - stored) / (now - began)

    def _with_left(self, tiers: tuple[TierReading, ...], rate: float) -> tuple[TierReading, ...]:
        """The tiers, with the time until each is over: they are fetched one after another."""
        wire: float | None = 0.0  # bytes that are still to come for those so far
        timed = []
        for number, tier in enumerate(tiers):
            if tier.fetched and number not in self._bases:
                self._bases[number] = (tier.wire_in, tier.fetched)
            left = None
            if tier.phase not in OVER and wire is not None:
                wire = self._to_come(number, tier, wire)
                left = wire / rate if wire and rate > 0 else None
            timed.append(replace(tier, left=left))
        return tuple(timed)

    def _to_come(self, number: int, tier: TierReading, before: float) -> float | None:
        """`before`, and the wire bytes that a tier is still to cost; None when that is not known.
        A tier that is not scanned yet counts for nothing."""
        if tier.to_fetch <= tier.fetched:
            return before
        cost = self._cost(number, tier)
        return None if cost is None else before + (tier.to_fetch - tier.fetched) * cost

    def _left(self, tiers: tuple[TierReading, ...]) -> float | None:
        """Until all that is known is here; None unless that is known of each tier."""
        waiting = [t for t in tiers if t.phase not in OVER and t.to_fetch > t.fetched]
        return waiting[-1].left if waiting else None

    def _cost(self, number: int, tier: TierReading) -> float | None:
        """Wire bytes for each plain byte of a tier; tiers differ much in how they compress."""
        if number not in self._bases:
            return None
        wire, plain = self._bases[number]
        if tier.fetched <= plain or tier.wire_in <= wire:
            return None
        return (tier.wire_in - wire) / (tier.fetched - plain)


def _lane(lane: LaneState, now: float) -> LaneReading:
    return LaneReading(
        lane.source,
        lane.number,
        lane.state,
        lane.bytes_in,
        min(lane.payload, lane.bytes_in),  # which are not counted at the same moment
        lane.rate,
        max(0.0, now - lane.heard),
    )


def _lane_order(lane: LaneReading) -> tuple[str, bool, int]:
    return lane.source, lane.number < 0, lane.number


def _percent(fetched: int, to_fetch: int, done: bool) -> float:
    """In tenths, rounded down; 100 only when all is here and the tier is closed."""
    if fetched >= to_fetch:
        return 100.0 if done else 99.9 if to_fetch else 0.0
    return math.floor(1000 * fetched / to_fetch) / 10
