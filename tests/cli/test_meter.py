import pytest
from hypothesis import given

from cas.pull.state import LaneState, Phase, SyncState, TierState
from cli.meter import Meter
from tests.cli.states import histories, usual


@given(histories())
def test_nothing_shown_goes_back_or_past_its_whole(history: list[list[TierState]]) -> None:
    state = SyncState()
    meter = Meter(state, 0.0)
    before = None
    for moment, tiers in enumerate(history):
        state.tiers = tiers
        reading = meter.read(float(moment))
        for number, tier in enumerate(reading.tiers):
            assert 0 <= tier.fetched <= tier.to_fetch
            assert tier.percent is None or 0 <= tier.percent <= 100
            if before is not None:
                last = before.tiers[number]
                assert tier.fetched >= last.fetched
                assert tier.wire_in >= last.wire_in
                assert tier.names >= last.names
                if tier.percent is not None and last.percent is not None:
                    assert tier.percent >= last.percent
        assert reading.percent is None or 0 <= reading.percent <= 100
        assert reading.left is None or reading.left >= 0
        assert reading.rate >= 0
        if before is not None:
            assert reading.wire_in >= before.wire_in
        before = reading


def test_percent_is_of_what_must_come_and_100_only_at_the_end() -> None:
    state = usual()
    tier = state.tiers[1]
    meter = Meter(state, 0.0)
    assert meter.read(1).tiers[1].percent == 26.0
    tier.fetched = tier.to_fetch
    assert meter.read(2).tiers[1].percent == 99.9
    tier.phase = Phase.DONE
    assert meter.read(3).tiers[1].percent == 100.0


def test_a_tier_that_stays_incomplete_is_not_rounded_up() -> None:
    state = usual()
    tier = state.tiers[1]
    tier.phase, tier.fetched = Phase.DONE, tier.to_fetch - 1
    assert Meter(state, 0.0).read(1).tiers[1].percent == 99.9


def test_a_tier_that_is_not_scanned_yet_has_no_percent() -> None:
    state = usual()
    state.tiers[1].scanned = False
    reading = Meter(state, 0.0).read(1)
    assert reading.tiers[1].percent is None
    assert reading.percent is None
    assert reading.more


def test_the_time_left_follows_the_wire() -> None:
    state = usual(2)
    tier = state.tiers[1]
    meter = Meter(state, 0.0)
    assert meter.read(0).left is None
    for second in range(1, 11):  # each second 1 MB on the wire, which is 10 MB of content
        tier.wire_in += 1_000_000
        tier.fetched += 10_000_000
        reading = meter.read(float(second))
    assert reading.rate == 1_000_000
    # 10 % of the 240 MB that are missing, whatever the tier before it cost
    assert reading.left == (460 - 220) / 10
    assert not reading.more


def test_a_silent_wire_gives_no_time_and_says_for_how_long() -> None:
    state = usual(2)
    meter = Meter(state, 0.0)
    meter.read(0)
    state.tiers[1].wire_in += 1_000_000
    state.tiers[1].fetched += 1_000_000
    assert meter.read(1).left is not None
    reading = meter.read(61)
    reading = meter.read(62)
    assert reading.rate == 0
    assert reading.left is None
    assert reading.silent == 61


def test_no_tiers_yet_is_no_percent() -> None:
    assert Meter(SyncState(), 0.0).read(1).percent is None


def test_content_is_told_from_what_else_the_wire_carries() -> None:
    state = usual(2)
    meter = Meter(state, 0.0)
    meter.read(0.0)
    for second in range(1, 11):
        state.tiers[1].wire_in += 100_000
        state.tiers[1].stored += 80_000
        reading = meter.read(float(second))
    assert reading.rate == 100_000
    assert reading.content == 80_000


def test_a_tier_is_over_when_those_before_it_are() -> None:
    state = usual()
    second, third = state.tiers[1:]
    third.scanned, third.to_fetch, third.fetched, third.wire_in = True, 2_000_000, 1, 1
    third.phase = Phase.FETCHING
    meter = Meter(state, 0.0)
    meter.read(0.0)
    second.wire_in += 100_000
    second.fetched += 1_000_000
    third.wire_in += 100_000
    third.fetched += 1_000_000
    reading = meter.read(1.0)
    first, middle, last = (tier.left for tier in reading.tiers)
    assert first is None
    assert middle == (460 - 121) * 100_000 / 200_000
    assert last is not None
    assert last - middle == pytest.approx(999_999 / 10 / 200_000)
    assert reading.left == last


def test_a_lane_tells_for_how_long_it_has_been_silent() -> None:
    state = usual()
    state.lanes = [LaneState("npu", 3, "up", 10, 5, 1.5, heard=2.0)]
    (lane,) = Meter(state, 0.0).read(7.5).lanes
    assert (lane.source, lane.number, lane.state, lane.silent) == ("npu", 3, "up", 5.5)
