"""The level settles where the link leaves time for it, whatever the link, and stays there."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise

import pytest

from cas.agent.pace import LEVELS, PLAIN_LEAST, START_LEVEL, Lap, Pace
from cas.frame import SEGMENT_SIZE

MIB = 2**20
FRAME = 31  # segments
BUDGET = 32 * MIB
# What zstd does with libraries and sources on a slow machine: bytes a second, and how small.
SPEEDS = dict(zip(LEVELS, (234e6, 61e6, 48e6, 27e6, 3.4e6, 2.2e6), strict=True))
RATIOS = dict(zip(LEVELS, (3.4, 4.1, 4.2, 4.26, 4.6, 4.75), strict=True))
READING = 100e6


@dataclass
class Link:
    """A producer, an outbox and a link of `rate(seconds)` bytes a second, without waiting."""

    rate: Callable[[float], float]
    slower: float = 1.0  # than SPEEDS
    noise: float = 0.0
    pace: Pace = field(default_factory=Pace)
    now: float = 0.0
    idle: float = 0.0
    queued: float = 0.0
    levels: list[int] = field(default_factory=list)

    def send(self, segments: int, *, compressible: bool = True) -> list[int]:
        """The levels of the frames that so many segments went in."""
        rng = random.Random(1)
        begun = len(self.levels)
        left = 0
        for _ in range(segments):
            if not left:
                self.levels.append(self.pace.next_level())
                left = FRAME
            self._segment(1 + self.noise * rng.uniform(-1, 1), compressible)
            left = 0 if self.pace.is_late else left - 1
        return self.levels[begun:]

    def _segment(self, factor: float, compressible: bool) -> None:
        level = self.levels[-1]
        compressing = factor * self.slower * MIB / SPEEDS[level] if compressible else 0.0
        stored = int(MIB / RATIOS[level] * factor) if compressible else MIB
        working = MIB / READING + compressing
        self._pass(working)
        waiting = max(self.queued + stored - BUDGET, 0) / self.rate(self.now)
        self._pass(waiting)
        self.queued += stored
        self.pace.lap(Lap(MIB, stored, working, compressing, waiting, int(self.queued)))

    def _pass(self, seconds: float) -> None:
        took = self.queued / self.rate(self.now)
        self.idle += max(seconds - took, 0)
        self.queued = max(self.queued - seconds * self.rate(self.now), 0)
        self.now += seconds


def changes(levels: list[int]) -> int:
    return sum(one != other for one, other in pairwise(levels))


@pytest.mark.parametrize(("rate", "level"), [(80e3, 19), (1e6, 12), (100e6, 3)])
def test_it_settles(rate: float, level: int) -> None:
    levels = Link(lambda _: rate).send(2000)
    assert START_LEVEL == levels[0]
    assert [level] * (len(levels) - 4) == levels[4:]


@pytest.mark.parametrize("rate", [0.2e6, 0.5e6, 0.8e6, 1.5e6, 3e6, 6e6, 8e6, 12e6, 20e6])
@pytest.mark.parametrize("slower", [0.5, 1.0, 3.0])
def test_it_neither_flaps_nor_starves_the_link(rate: float, slower: float) -> None:
    """Whatever lies between: what is sent differs from segment to segment, the level hardly ever
    does; and a link that another level could keep busy is."""
    link = Link(lambda _: rate, slower, noise=0.4)
    levels = link.send(4000)
    assert changes(levels[10:]) <= len(levels) / 20
    seconds = RATIOS[3] * (1 / READING + slower / SPEEDS[3])  # of work at least, for a stored byte
    assert rate * seconds > 0.7 or link.idle < 0.1 * link.now


def test_it_follows_a_link_that_changes() -> None:
    link = Link(lambda now: 80e3 if now < 4000 else 20e6)
    assert 19 in link.send(1200)
    assert 3 == link.send(600)[-1]
    assert link.idle < 60


def test_what_does_not_compress_changes_nothing() -> None:
    link = Link(lambda _: 3e6)
    before = link.send(400)[-1]
    assert {before} == set(link.send(400, compressible=False))


def test_a_producer_without_work_is_not_too_slow() -> None:
    """The link is idle for want of wants, which no level changes."""
    pace = Pace()
    for _ in range(3 * FRAME):
        pace.lap(Lap(MIB, MIB // 4, 0.05, 0.04, 0.0, MIB // 4, starved=True))
        assert not pace.is_late
    assert START_LEVEL == pace.next_level()


def test_an_idle_link_ends_a_frame_early() -> None:
    pace = Pace()
    laps = 0
    while not pace.is_late:
        pace.lap(Lap(MIB, MIB // 4, 0.05, 0.04, 0.0, MIB // 4))
        laps += 1
    assert laps < FRAME / 4
    assert pace.next_level() < START_LEVEL
    assert not pace.is_late


def test_the_costs_of_neighbours_are_learnt(monkeypatch: pytest.MonkeyPatch) -> None:
    """A level that turns out dearer than was thought is not tried over and over."""
    monkeypatch.setitem(SPEEDS, 17, 1.2e6)
    levels = Link(lambda _: 0.4e6).send(6000)
    assert 17 in levels
    assert changes(levels[len(levels) // 2 :]) <= 4


@pytest.mark.parametrize(
    ("rate", "expected"), [(80e3, PLAIN_LEAST), (300e3, 600_000), (5e6, SEGMENT_SIZE)]
)
def test_what_is_as_it_is_goes_in_what_a_link_takes_in_two_seconds(
    rate: float, expected: int
) -> None:
    pace = Pace()
    assert PLAIN_LEAST == pace.plain_size
    link = Link(lambda _: rate, pace=pace)
    link.send(100, compressible=False)
    assert expected == pytest.approx(pace.plain_size, rel=0.2)
