"""Credit for lanes and the limit over all of them, alone and on a model of a link."""

from __future__ import annotations

from collections import deque

import pytest

from cas.pull.flow import (
    TICK_SECONDS,
    UPDATE_MOST,
    WINDOW_LEAST,
    WINDOW_MOST,
    LaneFlow,
    Throttle,
)

STEP = 0.005


class Link:
    """Lanes whose far end sends at once what it may: `total` bytes a second over all, `lane` on
    each. Counts what arrives in each second."""

    def __init__(
        self,
        *,
        rtt: float,
        total: float,
        lanes: int = 1,
        lane: float = 1e12,
        limit: int | None = None,
        seconds: int = 8,
    ) -> None:
        self.throttle = Throttle(0.0, limit)
        self.flows = [LaneFlow(0.0, self.throttle) for _ in range(lanes)]
        self.came = [0] * (seconds + 1)
        self.most = 0  # outstanding
        self.messages = 0
        self._rtt, self._total, self._lane = rtt, total, lane
        self._sent, self._credit = [0] * lanes, [0] * lanes
        self._up: deque[tuple[float, int, int]] = deque()
        self._down: deque[tuple[float, int, int]] = deque()
        self._ticked = -1.0
        for flow in self.flows:
            flow.echoed(rtt)

    def step(self, now: float, *, is_down: bool = False) -> None:
        while self._up and self._up[0][0] <= now:
            _, lane, self._credit[lane] = self._up.popleft()
        self._send(now, 0 if is_down else int(self._total * STEP))
        asked: set[int] = set()
        while self._down and self._down[0][0] <= now:
            _, lane, size = self._down.popleft()
            assert self.flows[lane].arrived(size, now)
            self.came[int(now)] += size
            asked.add(lane)
        if now - self._ticked >= TICK_SECONDS:
            asked.update(range(len(self.flows)))
            self._ticked = now
        self._ask(asked, now)

    def _send(self, now: float, room: int) -> None:
        start = int(now / STEP)
        for turn in range(len(self.flows)):
            lane = (start + turn) % len(self.flows)
            free = self._credit[lane] - self._sent[lane]
            size = min(free, room, int(self._lane * STEP))
            if size > 0:
                self._sent[lane] += size
                room -= size
                self._down.append((now + self._rtt / 2, lane, size))

    def _ask(self, lanes: set[int], now: float) -> None:
        for lane in sorted(lanes):
            before = self.flows[lane].outstanding
            total = self.flows[lane].grant(now)
            if total is not None:
                assert self.flows[lane].outstanding > before
                self.messages += 1
                self._up.append((now + self._rtt / 2, lane, total))
        self.most = max(self.most, *(flow.outstanding for flow in self.flows))

    def run(self, seconds: float, begin: float = 0.0, *, is_down: bool = False) -> None:
        for number in range(round(begin / STEP), round((begin + seconds) / STEP)):
            self.step((number + 1) * STEP - STEP / 2, is_down=is_down)


@pytest.mark.parametrize(
    ("rtt", "total", "lanes", "share"),
    [(0.02, 100e6, 1, 0.99), (0.2, 20e6, 1, 0.85), (0.2, 20e6, 4, 0.99), (0.001, 300e6, 1, 0.99)],
)
def test_a_clean_link_is_filled(rtt: float, total: float, lanes: int, share: float) -> None:
    link = Link(rtt=rtt, total=total, lanes=lanes, seconds=4)
    link.run(4)
    assert min(link.came[1:4]) >= share * total
    assert WINDOW_MOST >= link.most
    assert link.messages <= sum(link.came) / UPDATE_MOST + 50 * lanes


def test_a_lossy_link_is_filled_with_little_under_way_on_each_lane() -> None:
    link = Link(rtt=0.2, total=2.5e6, lanes=24, lane=33e3, seconds=4)
    link.run(4)
    assert min(link.came[1:4]) >= 0.99 * 24 * 33e3
    assert WINDOW_LEAST == link.most


@pytest.mark.parametrize("limit", [10_000, 50_000, 200_000, 1_000_000, 20_000_000])
@pytest.mark.parametrize("rtt", [0.02, 0.2])
def test_a_limit_is_kept_and_used(limit: int, rtt: float) -> None:
    link = Link(rtt=rtt, total=100e6, lanes=6, limit=limit)
    link.run(8)
    assert max(link.came[2:8]) <= 1.05 * limit
    assert min(link.came[2:8]) >= 0.93 * limit
    assert sum(link.came[2:8]) >= 0.95 * 6 * limit


def test_a_limit_is_used_where_it_needs_many_slow_lanes() -> None:
    link = Link(rtt=0.2, total=2.5e6, lanes=24, lane=33e3, limit=400_000)
    link.run(8)
    assert max(link.came[2:8]) <= 1.05 * 400_000
    assert min(link.came[2:8]) >= 0.93 * 400_000


@pytest.mark.parametrize("before", [None, 10_000_000])
def test_a_limit_that_is_lowered_holds_after_a_moment(before: int | None) -> None:
    link = Link(rtt=0.2, total=20e6, lanes=24, limit=before, seconds=9)
    link.run(3)
    link.throttle.set_rate(1_000_000, 3.0)
    assert 1_000_000 == link.throttle.rate
    link.run(6, 3.0)
    assert max(link.came[6:9]) <= 1.05e6
    assert min(link.came[7:9]) >= 0.93e6


def test_a_limit_that_is_lifted_is_gone_at_once() -> None:
    link = Link(rtt=0.02, total=20e6, lanes=6, limit=1_000_000)
    link.run(3)
    link.throttle.set_rate(None, 3.0)
    link.run(2, 3.0)
    assert link.came[3] >= 0.9 * 20e6
    assert link.came[4] >= 0.99 * 20e6


def test_an_outage_saves_up_no_more_than_a_second_or_two_of_a_limit() -> None:
    link = Link(rtt=0.2, total=50e6, lanes=6, limit=1_000_000, seconds=15)
    link.run(3)
    link.run(7, 3.0, is_down=True)
    link.run(5, 10.0)
    assert link.came[10] <= 2.5e6
    assert max(link.came[11:15]) <= 1.05e6


def test_a_lane_begins_with_the_least_window_and_says_so_once() -> None:
    flow = LaneFlow(0.0)
    assert WINDOW_LEAST == flow.grant(0.0)
    assert flow.grant(0.0) is None
    assert WINDOW_LEAST == flow.outstanding
    assert flow.arrived(WINDOW_LEAST // 4 - 1, 1.0)
    assert flow.grant(1.0) is None
    assert flow.arrived(1, 1.0)
    assert WINDOW_LEAST // 4 + WINDOW_LEAST == flow.grant(1.0)


def test_more_than_was_allowed_is_noticed() -> None:
    flow = LaneFlow(0.0)
    assert not flow.arrived(1, 0.0)
    total = flow.grant(0.0)
    assert total is not None
    assert flow.arrived(total - 1, 0.1)
    assert not flow.arrived(1, 0.1)


def test_a_window_that_shrinks_takes_nothing_back() -> None:
    flow = LaneFlow(0.0)
    total = 0
    for tenth in range(40):
        granted = flow.grant(tenth / 10)
        assert granted is None or granted > total
        total = granted or total
        flow.arrived(flow.outstanding, tenth / 10)
    assert WINDOW_MOST == flow.window(4.0)
    flow.grant(4.0)
    assert WINDOW_MOST == flow.outstanding
    assert WINDOW_LEAST == flow.window(60.0)
    assert flow.grant(60.0) is None
    assert WINDOW_MOST == flow.outstanding


def test_the_window_follows_rate_and_the_least_of_the_round_trips() -> None:
    flow = LaneFlow(0.0)
    for tenth in range(1, 41):
        flow.arrived(50_000, tenth / 10)
    assert 500_000 == pytest.approx(flow.rate(4.0), rel=0.06)
    assert flow.rate(4.0) * 2.2 == pytest.approx(flow.window(4.0), abs=1)
    for seconds in (3.0, 0.5, 1.7):
        flow.echoed(seconds)
    assert flow.rate(4.0) * 2.5 == pytest.approx(flow.window(4.0), abs=1)
    assert 0.0 == flow.rate(6.1)


def test_many_small_arrivals_take_no_memory() -> None:
    flow = LaneFlow(0.0)
    for number in range(100_000):
        flow.arrived(1, number / 25_000)
    assert 50_000 == pytest.approx(2 * flow.rate(4.0), rel=0.06)
    assert len(flow._came) <= 41


def test_a_lane_that_ended_shares_no_limit() -> None:
    throttle = Throttle(0.0, 100_000)
    flows = [LaneFlow(0.0, throttle) for _ in range(10)]
    shared = throttle.least_window(0.2)
    for flow in flows[1:]:
        flow.close()
    assert shared < throttle.least_window(0.2)


def test_a_limit_of_nothing_is_a_limit_of_next_to_nothing() -> None:
    throttle = Throttle(0.0, 0)
    assert 1 == throttle.rate
    flow = LaneFlow(0.0, throttle)
    assert flow.grant(100.0) is None
