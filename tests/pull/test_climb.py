"""How many lanes: the single rules; whether they serve is for `test_lanes_model.py`."""

from __future__ import annotations

from collections.abc import Callable

from cas.pull.climb import HOLDS, LEVELS, UP_SECONDS, Climb

FIRST, (SECOND, THIRD) = 4, LEVELS


class Driver:
    """Observes once a second a link that gives `rate(lanes)` bytes a second."""

    def __init__(self, climb: Climb, rate: Callable[[int], float]) -> None:
        self.climb = climb
        self.rate = rate
        self.now = 0.0
        self.verified = 0.0

    def go(self, seconds: int, *, open_lanes: int | None = None, is_hungry: bool = True) -> None:
        for _ in range(seconds):
            lanes = self.climb.wanted if open_lanes is None else open_lanes
            self.now += 1
            self.verified += self.rate(lanes)
            self.climb.observe(
                self.now, verified=int(self.verified), open_lanes=lanes, is_hungry=is_hungry
            )

    def until(self, wanted: int, within: int = 1000) -> float:
        """Go on until so many lanes are wanted; how long that took."""
        began = self.now
        while self.climb.wanted != wanted:
            assert self.now - began < within
            self.go(1)
        return self.now - began


def _each(lane: float) -> Callable[[int], float]:
    return lambda lanes: lane * lanes


def _limited(total: float) -> Callable[[int], float]:
    return lambda _: total


def test_lanes_that_add_up_are_climbed_to_the_last_level_one_epoch_each() -> None:
    driver = Driver(Climb(0.0, start=FIRST), _each(30e3))
    assert (FIRST, None) == (driver.climb.wanted, driver.climb.best)
    driver.go(30)
    assert THIRD == driver.climb.wanted
    driver.go(30)
    assert (THIRD, THIRD) == (driver.climb.wanted, driver.climb.best)


def test_a_refused_level_was_measured_twice_and_is_left_alone_ever_longer() -> None:
    driver = Driver(Climb(0.0, start=FIRST), _limited(70e3))
    waits = []
    for _ in range(5):
        waits.append(driver.until(SECOND))
        tried = driver.until(FIRST)
        assert tried >= 20  # two measurements
        assert FIRST == driver.climb.best
    assert waits == sorted(waits)
    assert waits[1] >= 2 * HOLDS * 10
    assert waits[4] >= 3 * waits[1]


def test_time_in_which_the_link_did_not_set_the_pace_does_not_count() -> None:
    driver = Driver(Climb(0.0, start=FIRST), _each(30e3))
    for _ in range(40):
        driver.go(9)
        driver.go(1, is_hungry=False)
    assert (FIRST, None) == (driver.climb.wanted, driver.climb.best)


def test_an_outage_in_a_try_is_no_verdict_on_it() -> None:
    driver = Driver(Climb(0.0, start=FIRST), _each(30e3))
    driver.until(SECOND)
    driver.go(5)
    rate, driver.rate = driver.rate, _limited(0.0)
    driver.go(300, open_lanes=0, is_hungry=False)
    driver.rate = rate
    assert SECOND == driver.climb.wanted
    driver.until(THIRD, within=20)


def test_a_level_is_measured_only_with_its_lanes_up_but_for_a_few() -> None:
    driver = Driver(Climb(0.0, start=FIRST), _each(30e3))
    driver.until(SECOND)
    driver.go(50, open_lanes=SECOND - 4)
    assert SECOND == driver.climb.wanted
    driver.go(20, open_lanes=SECOND - 3)  # after so long, three are not waited for
    assert THIRD == driver.climb.wanted


def test_a_level_whose_lanes_do_not_come_up_is_refused() -> None:
    driver = Driver(Climb(0.0, start=FIRST), _each(30e3))
    driver.until(SECOND)
    driver.go(int(UP_SECONDS) + 1, open_lanes=5)
    assert (FIRST, FIRST) == (driver.climb.wanted, driver.climb.best)


def test_a_remembered_level_that_never_comes_up_is_left() -> None:
    driver = Driver(Climb(0.0, start=FIRST, remembered=SECOND), _each(30e3))
    assert SECOND == driver.climb.wanted
    driver.go(int(UP_SECONDS) + 1, open_lanes=5)
    assert (FIRST, FIRST) == (driver.climb.wanted, driver.climb.best)
    driver.go(2 * HOLDS * 10 + 20)
    assert SECOND == driver.climb.wanted


def test_lanes_that_have_enough_are_not_added_to() -> None:
    driver = Driver(Climb(0.0, start=FIRST), _each(5e6))
    driver.go(600)
    assert (FIRST, FIRST) == (driver.climb.wanted, driver.climb.best)


def test_a_level_that_has_become_no_better_than_the_lower_one_was_is_left_for_it() -> None:
    driver = Driver(Climb(0.0, start=FIRST), _each(30e3))
    driver.until(THIRD)
    driver.go(60)
    driver.rate = _limited(70e3)
    driver.until(SECOND, within=100)
    driver.go(20)
    assert SECOND == driver.climb.best


def test_a_lower_level_that_brings_less_is_left_again() -> None:
    driver = Driver(Climb(0.0, start=FIRST), _each(30e3))
    driver.until(THIRD)
    driver.go(60)
    driver.rate = _each(10e3)
    driver.until(SECOND, within=100)
    driver.until(THIRD, within=20)
    assert THIRD == driver.climb.best


def test_when_goodput_rises_the_next_level_is_tried_without_waiting() -> None:
    driver = Driver(Climb(0.0, start=FIRST), _limited(70e3))
    for _ in range(4):
        driver.until(SECOND)
        driver.until(FIRST)
    driver.rate = _each(30e3)
    driver.until(THIRD, within=100)


def test_a_fixed_number_stays() -> None:
    driver = Driver(Climb(0.0, fixed=3), _each(30e3))
    driver.go(300)
    assert (3, None) == (driver.climb.wanted, driver.climb.best)


def test_never_more_than_allowed() -> None:
    driver = Driver(Climb(0.0, start=FIRST, most=15), _each(30e3))
    seen = set()
    for _ in range(300):
        driver.go(1)
        seen.add(driver.climb.wanted)
    assert {FIRST, SECOND, 15} == seen
    few = Driver(Climb(0.0, start=FIRST, most=2), _each(30e3))
    few.go(300)
    assert (2, 2) == (few.climb.wanted, few.climb.best)


def test_what_was_remembered_is_begun_with_and_compared_once_with_less() -> None:
    for remembered, first in ((THIRD, THIRD), (THIRD - 1, SECOND), (FIRST, FIRST)):
        assert first == Climb(0.0, start=FIRST, remembered=remembered).wanted
    assert 15 == Climb(0.0, most=15, remembered=100).wanted
    driver = Driver(Climb(0.0, start=FIRST, remembered=THIRD), _each(30e3))
    driver.until(SECOND, within=40)
    driver.until(THIRD, within=20)
    driver.go(300)
    assert (THIRD, THIRD) == (driver.climb.wanted, driver.climb.best)


def test_a_link_on_which_nothing_comes_is_survived() -> None:
    driver = Driver(Climb(0.0, start=FIRST), _limited(0.0))
    driver.go(1000)
    driver.rate = _each(30e3)
    driver.until(THIRD, within=400)
