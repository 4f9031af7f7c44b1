"""Credit for lanes and the limit over all of them, alone and on a model of a link."""

from __future__ import annotations

from collections import deque

import pytest

from cas.messages import PIECE_SIZE
from cas.outbox import LEAST_PIECE
from cas.pull.flow import (
    PORTION_LEAST,
    TICK_SECONDS,
    UPDATE_LEAST,
    UPDATE_MOST,
    WINDOW_LEAST,
    WINDOW_MOST,
    WINDOW_START,
    LaneFlow,
    Throttle,
)
from cas.underway import PIECE_LEAST, PIECE_SECONDS

STEP = 0.005


class Link:
    """Lanes whose far end sends pieces, cut to what it may: `total` bytes a second over all, `lane`
    on each. Counts what arrives in each second, in whole pieces."""

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
        self.flows = [LaneFlow(0.0) for _ in range(lanes)]
        self.came = [0] * (seconds + 1)
        self.most = 0  # outstanding
        self.messages = 0
        self._rtt, self._total, self._lane = rtt, total, lane
        self._credit, self._sent = [0] * lanes, [0] * lanes  # sent in pieces that were begun
        self._left = [0] * lanes  # of the piece under way
        self._size = [0] * lanes  # of that piece
        self._up: deque[tuple[float, int, int]] = deque()
        self._down: deque[tuple[float, int, int]] = deque()
        self._ticked = -1.0
        self._now = 0.0
        for flow in self.flows:
            flow.round_trip(rtt)

    def step(self, now: float, *, is_down: bool = False) -> None:
        self._now = now
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
        """A share of `room` for each lane that has something to send, then what is left of it."""
        lanes = range(len(self.flows))
        most = dict.fromkeys(lanes, int(self._lane * STEP))
        while room and (busy := [lane for lane in lanes if most[lane] and self._begun(lane)]):
            share = max(1, room // len(busy))
            for lane in busy:
                size = min(share, room, self._left[lane], most[lane])
                most[lane] -= size
                room -= size
                self._left[lane] -= size
                if size and not self._left[lane]:
                    self._down.append((now + self._rtt / 2, lane, self._size[lane]))

    def _begun(self, lane: int) -> bool:
        """Whether a piece is under way, or another may be begun, cut as the outbox does."""
        size = min(self._credit[lane] - self._sent[lane], self._piece_size(lane))
        if not self._left[lane] and size >= LEAST_PIECE:
            self._left[lane] = self._size[lane] = size
            self._sent[lane] += size
        return self._left[lane] > 0

    def _piece_size(self, lane: int) -> int:
        rate = self.flows[lane].rate(self._now)
        return int(min(max(rate * PIECE_SECONDS, PIECE_LEAST), PIECE_SIZE)) if rate else PIECE_SIZE

    def _ask(self, lanes: set[int], now: float) -> None:
        for lane in sorted(lanes):
            total = self.flows[lane].grant(now, self.throttle)
            if total is not None:
                self.messages += 1
                self._up.append((now + self._rtt / 2, lane, total))
        self.most = max(self.most, *(flow.outstanding for flow in self.flows))

    def run(self, seconds: float, begin: float = 0.0, *, is_down: bool = False) -> None:
        for number in range(round(begin / STEP), round((begin + seconds) / STEP)):
            self.step((number + 1) * STEP - STEP / 2, is_down=is_down)


@pytest.mark.parametrize(
    ("rtt", "total", "lanes", "share"),
    [(0.02, 100e6, 1, 0.99), (0.2, 20e6, 1, 0.83), (0.2, 20e6, 4, 0.93), (0.001, 300e6, 1, 0.99)],
)
def test_a_clean_link_is_filled(rtt: float, total: float, lanes: int, share: float) -> None:
    link = Link(rtt=rtt, total=total, lanes=lanes, seconds=4)
    link.run(4)
    assert min(link.came[1:4]) >= share * total
    assert WINDOW_MOST >= link.most
    assert link.messages <= 2 * sum(link.came) / UPDATE_MOST + 50 * lanes


def test_a_lossy_link_is_filled_with_little_under_way_on_each_lane() -> None:
    link = Link(rtt=0.2, total=2.5e6, lanes=24, lane=33e3, seconds=22)
    link.run(22)
    assert sum(link.came[2:22]) >= 0.95 * 20 * 24 * 33e3
    assert link.most <= 2 * 33e3 * 2.3


def _keeps(link: Link, limit: int, begin: int, end: int) -> None:
    """Each second within 5 % of the limit and the least portion, and the whole within 5 %."""
    seconds = link.came[begin:end]
    mean = sum(seconds) / len(seconds)
    assert max(seconds) <= 1.05 * limit + PORTION_LEAST
    assert abs(mean - limit) <= 0.05 * limit


@pytest.mark.parametrize("limit", [10_000, 50_000, 200_000, 1_000_000, 20_000_000])
@pytest.mark.parametrize(("rtt", "lanes"), [(0.02, 6), (0.2, 24)])
def test_a_limit_is_kept_and_used(limit: int, rtt: float, lanes: int) -> None:
    link = Link(rtt=rtt, total=50e6, lanes=lanes, limit=limit, seconds=22)
    link.run(22)
    _keeps(link, limit, 2, 22)


def test_a_limit_is_used_where_it_needs_many_slow_lanes() -> None:
    link = Link(rtt=0.2, total=2.5e6, lanes=24, lane=33e3, limit=400_000, seconds=24)
    link.run(24)
    assert 400_000 * 0.93 <= sum(link.came[4:24]) / 20 <= 400_000 * 1.02


@pytest.mark.parametrize("before", [None, 10_000_000])
@pytest.mark.parametrize(("rtt", "total"), [(0.02, 100e6), (0.2, 20e6)])
def test_a_limit_that_is_lowered_holds_after_a_moment(
    before: int | None, rtt: float, total: float
) -> None:
    link = Link(rtt=rtt, total=total, lanes=24, limit=before, seconds=12)
    link.run(3)
    link.throttle.set_rate(1_000_000, 3.0)
    assert 1_000_000 == link.throttle.rate
    link.run(9, 3.0)
    _keeps(link, 1_000_000, 6, 12)


def test_a_limit_that_is_lifted_is_gone_at_once() -> None:
    link = Link(rtt=0.02, total=20e6, lanes=6, limit=1_000_000)
    link.run(3)
    assert link.throttle.holds(3.0)
    link.throttle.set_rate(None, 3.0)
    assert not link.throttle.holds(3.0)
    link.run(2, 3.0)
    assert link.came[3] >= 0.7 * 20e6
    assert link.came[4] >= 0.98 * 20e6


def test_an_outage_saves_up_no_more_than_a_second_or_two_of_a_limit() -> None:
    link = Link(rtt=0.2, total=50e6, lanes=6, limit=1_000_000, seconds=16)
    link.run(3)
    link.run(7, 3.0, is_down=True)
    link.run(6, 10.0)
    assert link.came[10] <= 2.5e6
    _keeps(link, 1_000_000, 11, 16)


def test_a_limit_above_what_the_link_brings_does_not_hold() -> None:
    link = Link(rtt=0.2, total=1e6, lanes=6, limit=5_000_000)
    link.run(8)
    assert not link.throttle.holds(8.0)
    assert sum(link.came[2:8]) >= 0.93 * 6e6


def test_a_lane_begins_with_a_window_of_its_own_and_says_so_once() -> None:
    flow, free = LaneFlow(0.0), Throttle(0.0)
    assert WINDOW_START == flow.grant(0.0, free)
    assert flow.grant(0.0, free) is None
    assert WINDOW_START == flow.outstanding
    size = WINDOW_START // 2
    assert flow.arrived(size, 1.0)  # half of it in a second
    assert size + flow.window(1.0, free) == flow.grant(1.0, free)
    assert 2.2 * size == pytest.approx(flow.window(1.0, free), abs=1)


def test_what_has_arrived_is_told_within_two_seconds_even_if_nothing_is_allowed() -> None:
    flow, free = LaneFlow(0.0), Throttle(0.0)
    assert WINDOW_START == flow.grant(0.0, free)
    flow.arrived(100, 0.2)
    assert flow.grant(1.9, free) is None
    assert WINDOW_START == flow.grant(2.0, free)
    assert flow.grant(5.0, free) is None
    limited = Throttle(5.0, 1)
    flow.arrived(UPDATE_LEAST, 5.0)
    assert WINDOW_START == flow.grant(5.0, limited)


def test_what_a_gap_held_back_is_no_rate() -> None:
    """TCP fills a gap after some seconds, and what waited behind it is there at once."""
    flow, free = LaneFlow(0.0), Throttle(0.0)
    for second in range(1, 9):
        flow.arrived(5_000, float(second))
    flow.arrived(30_000, 14.0)
    assert flow.rate(14.0) == 30_000
    assert flow.window(14.0, free) <= 2.2 * 1.5 * 8_000


def test_a_lane_that_pauses_keeps_what_it_usually_has() -> None:
    flow, free = LaneFlow(0.0), Throttle(0.0)
    for second in range(1, 9):
        flow.arrived(30_000, float(second))
    assert 0.0 == flow.rate(11.0)
    assert flow.window(11.0, free) >= 2.2 * 30_000 * 0.6
    assert WINDOW_LEAST == flow.window(17.0, free)


def test_more_than_was_allowed_is_noticed() -> None:
    flow, free = LaneFlow(0.0), Throttle(0.0)
    assert not flow.arrived(1, 0.0)
    total = flow.grant(0.0, free)
    assert total is not None
    assert flow.arrived(total - 1, 0.1)
    assert not flow.arrived(1, 0.1)


def test_a_window_that_shrinks_takes_nothing_back() -> None:
    flow, free = LaneFlow(0.0), Throttle(0.0)
    total = 0
    for tenth in range(40):
        granted = flow.grant(tenth / 10, free)
        assert granted is None or granted >= total
        total = granted or total
        flow.arrived(flow.outstanding, tenth / 10)
    assert WINDOW_MOST == flow.window(4.0, free)
    flow.grant(4.0, free)
    assert WINDOW_MOST == flow.outstanding
    assert WINDOW_LEAST == flow.window(60.0, free)
    assert flow.grant(60.0, free) is None
    assert WINDOW_MOST == flow.outstanding


def test_the_window_follows_rate_and_the_least_of_the_round_trips() -> None:
    flow, free = LaneFlow(0.0), Throttle(0.0)
    for tenth in range(1, 41):
        flow.arrived(50_000, tenth / 10)
    assert 500_000 == pytest.approx(flow.rate(4.0), rel=0.06)
    assert flow.rate(4.0) * 2.2 == pytest.approx(flow.window(4.0, free), abs=1)
    for seconds in (3.0, 0.5, 1.7):
        flow.round_trip(seconds)
    assert flow.rate(4.0) * 2.5 == pytest.approx(flow.window(4.0, free), abs=1)
    assert 0.0 == flow.rate(6.1)


def test_many_small_arrivals_take_no_memory() -> None:
    flow = LaneFlow(0.0)
    for number in range(100_000):
        flow.arrived(1, number / 25_000)
    assert 50_000 == pytest.approx(2 * flow.rate(4.0), rel=0.06)
    assert 2 + 41 + 17 >= len(flow._lately) + len(flow._usually)


def test_a_lane_that_is_gone_shares_no_limit() -> None:
    throttle = Throttle(0.0, 100_000)
    flows = [LaneFlow(0.0) for _ in range(10)]
    for flow in flows:
        flow.grant(0.0, throttle)
    del flow, flows[1:]
    assert 1 == throttle.lanes


def test_the_least_limit_lets_a_piece_through_in_the_end() -> None:
    throttle = Throttle(0.0, 0)
    assert 1 == throttle.rate
    flow = LaneFlow(0.0)
    assert flow.grant(100.0, throttle) is None
    assert throttle.holds(100.0)
    assert PORTION_LEAST == flow.grant(PORTION_LEAST + 1.0, throttle)
