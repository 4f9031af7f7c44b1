"""The climb on models of links that were measured (goodput of OpenSSH over emulated links, cubic).

Each lane has the rate that its losses allow, times noise that changes within seconds; all of them
together have at most what the link allows. Logins take their time, at most four at once.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from statistics import fmean

import pytest

from cas.pull.climb import LEVELS, Climb

RUN_SECONDS = 600
SEEDS = 30
LOGINS_AT_ONCE = 4


@dataclass(frozen=True)
class Link:
    """Rates in bytes a second. `hurt` is the part of the cap that each lane over twelve costs;
    `noise` of a lane is the deviation of its logarithm, `common` the range of what befalls all."""

    lane: float
    cap: float
    login: float  # seconds
    noise: float = 0.5
    common: float = 0.0
    hurt: float = 0.0
    lump: int = 1  # bytes by which the total grows

    def goodput(self, lanes: float, up: int) -> float:
        """What comes when the lanes' losses allow `lanes` in all. The knee is as measured."""
        cap = self.cap * max(0.2, 1 - self.hurt * max(0, up - 12))
        return lanes / (1 + (lanes / cap) ** 4) ** 0.25 if lanes else 0.0

    def mean(self, lanes: int) -> float:
        return self.goodput(self.lane * lanes, lanes)

    @property
    def best(self) -> float:
        return max(self.mean(lanes) for lanes in LEVELS)


LOSSY = Link(33e3, 2.5e6, login=2.5)  # 5 %, 200 ms
SHARED = Link(123e3, 385e3, login=2.0)  # 1 %, 200 ms, 400 kB/s for all
POLICED = Link(18e3, 66e3, login=8.0, hurt=0.025)  # 80 kB/s, dropping what is more
WORST = Link(13e3, 2.5e6, login=6.0, common=0.3)  # 10 %, 300 ms
CLEAN = Link(20e6, 60e6, login=0.2, noise=0.1)
LINKS = {"lossy": LOSSY, "shared": SHARED, "policed": POLICED, "worst": WORST}


class Run:
    """A link, and as many lanes as are wanted, second by second."""

    def __init__(self, link: Link, seed: int) -> None:
        self.link = link
        self.now = 0.0
        self.came = 0.0
        self.up = 0
        self._random = random.Random(seed)
        self._logins: list[float] = []  # when each is done
        self._noise = [self._random.gauss(0, 1) for _ in range(64)]
        self._common = self._random.uniform(-1, 1)

    def second(self, wanted: int) -> None:
        """Let one pass."""
        self.now += 1
        self.up = min(wanted, self.up + sum(done <= self.now for done in self._logins))
        self._logins = [done for done in self._logins if done > self.now]
        while self.up + len(self._logins) < wanted and len(self._logins) < LOGINS_AT_ONCE:
            seconds = self.link.login * self._random.uniform(0.7, 1.5)
            self._logins.append(self.now + seconds)
        self.came += self._rate()

    @property
    def verified(self) -> int:
        return int(self.came) // self.link.lump * self.link.lump

    def _rate(self) -> float:
        link, noise = self.link, self._noise
        for lane in range(self.up):  # correlated over some five seconds
            noise[lane] = 0.8 * noise[lane] + 0.6 * self._random.gauss(0, 1)
        drift = self._common + self._random.uniform(-0.5, 0.5)
        self._common = max(-1.0, min(1.0, drift))
        sigma = link.noise
        lanes = sum(math.exp(sigma * x - sigma**2 / 2) for x in noise[: self.up]) * link.lane
        return link.goodput(lanes, self.up) * (1 + link.common * self._common)


def run(
    link: Link,
    seed: int,
    *,
    seconds: int = RUN_SECONDS,
    becomes: Link | None = None,
    remembered: int | None = None,
) -> Iterator[tuple[Run, Climb]]:
    """The state after each second; half-way the link may become another."""
    climb = Climb(0.0, remembered=remembered)
    model = Run(link, seed)
    for second in range(seconds):
        if becomes is not None and second == seconds // 2:
            model.link = becomes
        model.second(climb.wanted)
        climb.observe(model.now, verified=model.verified, open_lanes=model.up, is_hungry=True)
        yield model, climb


def outcome(link: Link, seed: int, **how: object) -> tuple[float, float, int]:
    """Average of the run and goodput of the lanes in the end, as shares of the best; the lanes."""
    *_, (model, climb) = run(link, seed, **how)  # type: ignore[arg-type]
    lanes = climb.best or 0
    return model.came / model.now / link.best, link.mean(lanes) / link.best, lanes


@pytest.mark.parametrize("name", LINKS)
def test_the_climb_finds_enough_lanes_and_loses_little_on_the_way(name: str) -> None:
    outcomes = [outcome(LINKS[name], seed) for seed in range(SEEDS)]
    assert min(average for average, _, _ in outcomes) >= 0.75
    assert min(end for _, end, _ in outcomes) >= 0.9


@pytest.mark.parametrize("name", LINKS)
def test_a_total_that_grows_in_lumps_is_measured_all_the_same(name: str) -> None:
    outcomes = [outcome(replace(LINKS[name], lump=500_000), seed) for seed in range(SEEDS)]
    assert min(average for average, _, _ in outcomes) >= 0.7
    assert min(end for _, end, _ in outcomes) >= 0.9


def test_a_swinging_link_with_a_limit_is_not_flooded_for_long() -> None:
    swinging = replace(POLICED, common=0.3)
    outcomes = [outcome(swinging, seed) for seed in range(SEEDS)]
    assert fmean(average for average, _, _ in outcomes) >= 0.88
    assert sum(end >= 0.9 for _, end, _ in outcomes) >= 0.9 * SEEDS


def test_a_clean_fast_link_is_left_at_the_first_level() -> None:
    for seed in range(SEEDS):
        states = run(CLEAN, seed, seconds=120)
        assert {LEVELS[0]} == {climb.wanted for _, climb in states}


@pytest.mark.parametrize(
    ("before", "after", "lanes", "share"),
    [(LOSSY, POLICED, 12, 0.85), (LOSSY, WORST, 24, 0.8), (POLICED, LOSSY, 24, 0.85)],
    ids=["lossy to policed", "lossy to worst", "policed to lossy"],
)
def test_a_link_that_becomes_another_is_followed(
    before: Link, after: Link, lanes: int, share: float
) -> None:
    for seed in range(SEEDS):
        states = run(before, seed, seconds=2 * RUN_SECONDS, becomes=after)
        came = next(model.came for model, _ in states if model.now == RUN_SECONDS)
        *_, (model, climb) = states
        assert share <= (model.came - came) / RUN_SECONDS / after.best
        assert lanes == climb.best


@pytest.mark.parametrize(("link", "best"), [(LOSSY, 24), (POLICED, 12)], ids=["right", "wrong"])
def test_what_was_remembered_is_proved_anew(link: Link, best: int) -> None:
    for seed in range(SEEDS):
        for _, climb in run(link, seed, seconds=200, remembered=24):
            assert climb.wanted in LEVELS
        assert best == climb.best
