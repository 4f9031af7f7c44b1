"""When lanes are suspect, when all is silent, when to log in again and when to give up."""

from __future__ import annotations

import random

import pytest

from cas.pull.silence import (
    DROP_SECONDS,
    LOGINS_AT_ONCE,
    REFUSED_SECONDS,
    SUSPECT_MOST_SECONDS,
    SUSPECT_SECONDS,
    Silence,
)

GIVE_UP = 600.0
SYN_SECONDS = (0, 1, 3, 7, 15)  # when TCP tries to connect again
LOGIN_SECONDS = 2.5


def _over(*lanes: str, now: float = 0.0, seconds: float = 1.0) -> Silence[str]:
    """With these lanes open, which have brought their greeting."""
    silence: Silence[str] = Silence(0.0, give_up=GIVE_UP)
    for lane in lanes:
        silence.opened(lane, now, seconds=seconds)
        silence.came(lane, now)
    return silence


def _ping(silence: Silence[str], now: float) -> None:
    for lane in silence.pings_due(now):
        silence.asked(lane, now)


def test_a_lane_is_pinged_after_five_seconds_and_suspect_after_fifteen() -> None:
    silence = _over("a", "b")
    assert [] == silence.pings_due(4.9)
    assert ["a", "b"] == silence.pings_due(5.0)
    _ping(silence, 5.0)
    silence.came("b", 5.2)
    assert [] == silence.pings_due(9.0)
    assert [] == silence.suspects(14.9)
    assert ["a"] == silence.suspects(15.0)
    assert ["b"] == silence.healthy(15.0)
    assert not silence.is_outage(15.0)


def test_a_lane_that_owes_nothing_may_be_silent() -> None:
    silence = _over("a", "b")
    assert [] == silence.suspects(1000.0)


def test_a_late_question_gives_time_for_its_answer() -> None:
    silence = _over("a", "b")
    silence.asked("a", 100.0)
    assert [] == silence.suspects(109.0)
    assert ["a"] == silence.suspects(110.0)


def test_asking_again_and_again_does_not_put_the_suspicion_off() -> None:
    silence = _over("a", "b")
    for second in range(1, 16):
        silence.asked("a", float(second))
    assert ["a"] == silence.suspects(16.0)


def test_any_byte_ends_a_suspicion_and_a_long_gap_makes_patient() -> None:
    silence = _over("a", "b")
    _ping(silence, 5.0)
    for now in (5.0, 10.0, 15.0):
        silence.came("b", now)
    assert ["a"] == silence.suspects(20.0)
    silence.came("a", 20.0)
    silence.came("b", 20.0)
    assert [] == silence.suspects(20.0)
    assert 40.0 == silence.limit(20.0)
    _ping(silence, 25.0)
    for now in range(26, 60):
        silence.came("b", float(now))
    assert [] == silence.suspects(59.0)
    assert ["a"] == silence.suspects(60.0)
    assert SUSPECT_SECONDS == silence.limit(1000.0)


def test_patience_has_an_end() -> None:
    silence = _over("a", "b")
    silence.asked("a", 0.0)
    silence.came("b", 200.0)
    silence.came("a", 201.0)
    assert SUSPECT_MOST_SECONDS == silence.limit(201.0)


def test_the_gap_of_an_outage_makes_no_patience() -> None:
    silence = _over("a", "b")
    _ping(silence, 5.0)
    assert silence.is_outage(15.0)
    silence.came("a", 40.0)
    silence.came("b", 41.0)
    assert not silence.is_outage(41.0)
    assert SUSPECT_SECONDS == silence.limit(41.0)


def test_a_suspect_is_dropped_a_minute_after_a_newer_lane_has_delivered() -> None:
    silence = _over("a", "b", "c")
    _ping(silence, 5.0)
    silence.came("c", 6.0)
    silence.opened("d", 16.0, seconds=1.0)
    assert [] == silence.to_drop(100.0)
    silence.came("d", 17.0)
    silence.came("b", 40.0)
    silence.opened("e", 50.0, seconds=1.0)
    silence.came("e", 51.0)
    assert [] == silence.to_drop(16.9 + DROP_SECONDS)
    assert ["a"] == silence.to_drop(17.0 + DROP_SECONDS)
    silence.ended("a", 80.0)
    assert [] == silence.to_drop(80.0)


def test_a_suspect_that_comes_back_is_kept_and_needs_a_new_reason() -> None:
    silence = _over("a", "b")
    _ping(silence, 5.0)
    silence.opened("c", 16.0, seconds=1.0)
    silence.came("c", 17.0)
    silence.came("a", 70.0)
    silence.asked("a", 71.0)
    assert "a" in silence.suspects(300.0)
    assert "a" not in silence.to_drop(300.0)


def test_nothing_open_is_an_outage_and_so_is_everything_suspect() -> None:
    silence: Silence[str] = Silence(0.0)
    assert silence.is_outage(0.0)
    silence.opened("a", 1.0, seconds=1.0)
    assert not silence.is_outage(1.0)
    silence.came("a", 1.5)
    silence.asked("a", 2.0)
    assert silence.is_outage(17.0)
    silence.opened("b", 20.0, seconds=1.0)
    assert not silence.is_outage(20.0)
    silence.ended("b", 21.0)
    silence.ended("a", 21.0)
    assert silence.is_outage(21.0)


def test_in_an_outage_one_login_at_a_time_with_a_pause() -> None:
    silence = _over("a")
    silence.asked("a", 0.0)
    assert not silence.probe_due(10.0)
    assert silence.probe_due(15.0)
    assert not silence.probe_due(15.0, in_progress=1)
    silence.login_failed(30.0, is_refused=False, jitter=0.5)
    assert not silence.probe_due(31.4)
    assert silence.probe_due(31.5)
    assert 1 == silence.logins_allowed(31.5, 0)
    silence.opened("b", 33.0, seconds=1.5)
    assert not silence.probe_due(33.0)
    assert LOGINS_AT_ONCE == silence.logins_allowed(33.0, 0)


def test_a_probe_has_longer_where_logins_are_slow_or_probes_fail() -> None:
    assert 30.0 == Silence(0.0).login_limit
    assert 30.0 == _over("a", seconds=7.0).login_limit
    silence = _over("a", seconds=1.0)
    silence.asked("a", 0.0)
    limits = []
    for attempt in range(8):
        limits.append(silence.login_limit)
        silence.login_failed(20.0 * (attempt + 1), is_refused=False, jitter=0.0)
    assert [15.0, 15.0, 15.0, 30.0] * 2 == limits


def test_refused_logins_wait_longer_each_time_and_go_one_by_one() -> None:
    silence = _over("a")
    now = 0.0
    assert 3 == silence.logins_allowed(now, 1)
    for pause in (*REFUSED_SECONDS, REFUSED_SECONDS[-1]):
        silence.login_failed(now, is_refused=True, jitter=0.0)
        assert 0 == silence.logins_allowed(now + pause - 0.1, 0)
        now += pause
        assert 1 == silence.logins_allowed(now, 0)
        assert 0 == silence.logins_allowed(now, 1)
    silence.opened("b", now, seconds=1.0)
    assert LOGINS_AT_ONCE - 1 == silence.logins_allowed(now, 1)
    assert 0 == silence.logins_allowed(now, LOGINS_AT_ONCE + 1)


def test_logins_that_nobody_answers_are_no_refusals() -> None:
    silence = _over("a")
    for now in (40.0, 40.1, 40.2, 40.3):  # begun before an outage that is over
        silence.came("a", now)
        silence.login_failed(now, is_refused=False, jitter=0.5)
    assert 0 == silence.logins_allowed(41.0, 0)
    assert LOGINS_AT_ONCE == silence.logins_allowed(42.0, 0)


def test_given_up_ten_minutes_after_the_last_byte_or_login() -> None:
    silence = _over("a")
    silence.asked("a", 1.0)
    assert not silence.given_up(GIVE_UP - 1)
    assert silence.given_up(GIVE_UP)
    silence.came("a", 100.0)
    assert not silence.given_up(GIVE_UP)
    silence.opened("b", 650.0, seconds=1.0)
    assert not silence.given_up(700.0 + GIVE_UP / 2)
    assert silence.given_up(650.0 + GIVE_UP)


def test_bytes_without_progress_are_a_stall() -> None:
    silence = _over("a")
    silence.progress(10.0)
    now = 10.0
    while not silence.stalled(now):
        assert now < 700
        now += 5
        silence.came("a", now)
        silence.opened(f"{now}", now, seconds=0.1)  # nor do logins help
        assert not silence.given_up(now)
    assert 10.0 + GIVE_UP == now


def test_the_time_of_an_outage_does_not_count_as_a_stall() -> None:
    silence = _over("a")
    silence.progress(0.0)
    silence.asked("a", 0.0)
    for second in range(550):
        assert not silence.stalled(float(second))
    silence.came("a", 550.0)
    assert not silence.stalled(1100.0)
    assert silence.stalled(1140.0)


@pytest.mark.parametrize("seed", range(20))
def test_no_pattern_of_bytes_keeps_a_useless_source_for_ever(seed: int) -> None:
    chance = random.Random(seed)
    silence = _over("a")
    now = 0.0
    while not (silence.stalled(now) or silence.given_up(now)):
        now += chance.choice((0.5, 16.0, 100.0, 599.0))
        if chance.random() < 0.5:
            silence.came("a", now)
        if chance.random() < 0.3:
            silence.opened("b", now, seconds=1.0)
        for lane in silence.pings_due(now):
            silence.asked(lane, now)
    assert now < 2 * GIVE_UP + 600


def test_time_in_which_this_process_slept_is_nobodys_silence() -> None:
    silence = _over("a", "b")
    _ping(silence, 5.0)
    silence.paused(3600.0)
    assert not silence.given_up(3610.0)
    assert not silence.stalled(3610.0)
    assert [] == silence.suspects(3610.0)
    assert ["a", "b"] == silence.suspects(3615.0)


def test_what_comes_on_a_lane_that_is_no_more_is_nothing() -> None:
    silence = _over("a")
    silence.ended("a", 1.0)
    silence.came("a", 2.0)
    silence.asked("a", 2.0)
    silence.ended("a", 2.0)
    assert silence.is_outage(2.0)


def test_when_a_lane_was_last_heard() -> None:
    silence = _over("a")
    silence.came("a", 7.0)
    assert 7.0 == silence.heard("a")


class _Stalling:
    """Eight lanes over a link that is dead for a while: what opened before wakes late by a doubling
    timer, what is opened after is there at once (as measured)."""

    def __init__(self, stall: float, seed: int) -> None:
        self.random = random.Random(seed)
        self.began, self.ended = 60.0, 60.0 + stall
        self.wakes = {
            f"{lane}": self.ended + self.random.uniform(0.05, 0.9) * stall for lane in range(8)
        }
        self.silence = _over(*self.wakes)
        self.login: float | None = None
        self.recovered: float | None = None

    def second(self, now: float) -> None:
        for lane, wake in list(self.wakes.items()):
            alive = not self.began <= now < max(self.ended, wake)
            if alive and self.random.random() < 0.8:
                self.silence.came(lane, now)
        if self.recovered is None and now > self.ended and self.silence.healthy(now):
            self.recovered = now - self.ended
        for lane in self.silence.to_drop(now):
            self.silence.ended(lane, now)
            del self.wakes[lane]
        _ping(self.silence, now)
        self._log_in(now)

    def _log_in(self, now: float) -> None:
        if self.login is None and self.silence.probe_due(now):
            self.login = now
        if self.login is None:
            return
        tries = (self.login + wait for wait in SYN_SECONDS)
        heard = next((at for at in tries if not self.began <= at < self.ended), None)
        if heard is not None and now >= heard + LOGIN_SECONDS:
            self.silence.opened("new", now, seconds=LOGIN_SECONDS)
            self.wakes["new"] = now
            self.login = None
        elif now - self.login >= self.silence.login_limit:
            self.silence.login_failed(now, is_refused=False, jitter=self.random.random())
            self.login = None


@pytest.mark.parametrize("stall", [20.0, 60.0, 150.0, 500.0])
@pytest.mark.parametrize("seed", range(5))
def test_after_a_stall_data_flows_within_a_login_of_the_end(stall: float, seed: int) -> None:
    link = _Stalling(stall, seed)
    for tenth in range(1, 10 * 800):
        link.second(tenth / 10)
        assert not link.silence.given_up(tenth / 10)
    assert link.recovered is not None
    assert link.recovered <= 22.0  # the rest of one attempt, a pause, a login
    assert set(link.wakes) == set(link.silence.healthy(800.0))
