import pytest
from hypothesis import given
from hypothesis import strategies as st

from cas.entry import Problem
from cas.pull.state import LaneState, Phase, SyncState, TierState
from cli.frames import bar, frame, lanes_text
from cli.meter import Meter, Reading
from cli.table import cell_width
from tests.cli.states import lane_states, tier_states, usual, with_lanes


def _read(state: SyncState) -> Reading:
    meter = Meter(state, 0.0)
    meter.read(0.0)
    return meter.read(1.0)


@given(
    st.lists(tier_states("04-llama.cpp-模型"), max_size=12),
    st.lists(lane_states(), max_size=30),
    st.integers(min_value=20, max_value=200),
    st.integers(min_value=4, max_value=60),
)
def test_a_frame_fits_its_terminal(
    tiers: list[TierState], lanes: list[LaneState], width: int, height: int
) -> None:
    shown = frame(_read(SyncState(tiers, lanes=lanes)), width, height)
    lines = shown.lines
    assert max(shown.titles) < len(lines)
    assert len(lines) <= max(6, height)
    assert all(cell_width(line) <= width for line in lines)
    assert all(line.isprintable() for line in lines)


def test_a_wide_terminal_shows_everything() -> None:
    lines = frame(_read(usual()), 120, 24).lines
    assert " ".join(lines[0].split()) == "tier logical unique here to fetch fetched wire left"
    assert lines[1].endswith("17.0 MB  17.0 MB  4.00 MB        done")
    assert lines[2].endswith("120 MB  33.0 MB        26.0 %")
    assert lines[3].endswith("waiting")
    assert lines[4] == "███████▊░░░░░░░░░░░░░░░░░░░░░░ 26.0 % of 01-tier, at /opt/models/a"
    assert "37.0 MB over the wire" in lines[5]


def test_a_path_keeps_its_end_and_is_left_out_where_it_has_no_room() -> None:
    state = usual()
    state.tiers[1].path = b"srv/" + b"x" * 100 + b"/weights.bin"
    line = frame(_read(state), 80, 24).lines[4]
    assert "26.0 % of 01-tier, at …xxx" in line
    assert line.endswith("xxx/weights.bin")
    assert frame(_read(state), 42, 24).lines[4].endswith("26.0 % of 01-tier")


def test_a_narrow_terminal_keeps_name_and_state() -> None:
    lines = frame(_read(usual()), 30, 24).lines
    assert lines[2].startswith("01-tier")
    assert lines[2].endswith("26.0 %")


@pytest.mark.parametrize("active", [0, 20, 39])
def test_a_low_terminal_shows_the_tiers_around_the_active_one(active: int) -> None:
    tiers = [TierState(f"{i:02}-tier", "npu", Phase.DONE) for i in range(active)]
    tiers += [TierState(f"{active:02}-tier", "npu", Phase.SCANNING)]
    tiers += [TierState(f"{i:02}-tier", "npu") for i in range(active + 1, 40)]
    lines = frame(_read(SyncState(tiers)), 80, 12).lines
    assert len(lines) <= 12
    assert any(line.startswith(f"{active:02}-tier") for line in lines)
    assert any("before these" in line for line in lines) == (active > 0)
    assert any("after these" in line for line in lines) == (active < 39)


def test_what_was_left_out_is_said_at_the_tier() -> None:
    state = usual()
    state.tiers[0].problems = (Problem(b"a", "x"), Problem(b"b", "y", left_out=False))
    assert frame(_read(state), 120, 24).lines[1].endswith("done, 1 left out")


@given(st.floats(min_value=-50, max_value=150), st.integers(min_value=1, max_value=60))
def test_a_bar_has_its_cells(percent: float, cells: int) -> None:
    assert len(bar(percent, cells)) == cells


def test_bars() -> None:
    assert bar(0, 4) == "░░░░"
    assert bar(50, 4) == "██░░"
    assert bar(100, 4) == "████"


def test_each_lane_has_a_row() -> None:
    shown = frame(_read(with_lanes(6)), 100, 24)
    assert shown.titles == (0, 4)
    rows = [" ".join(line.split()) for line in shown.lines[4:11]]
    assert rows == [
        "lane state rate last byte received content",
        "0 up 33.0 kB/s 0 s 1.00 MB 900 kB",
        "1 suspect 33.0 kB/s 17 s 1.00 MB 900 kB",
        "2 up 33.0 kB/s 0 s 1.00 MB 900 kB",
        "3 up 33.0 kB/s 0 s 1.00 MB 900 kB",
        "4 up 33.0 kB/s 0 s 1.00 MB 900 kB",
        "new login 3 s",
    ]


def test_lanes_of_several_sources_are_told_apart() -> None:
    state = with_lanes(3)
    state.lanes[0].source = "gpu"
    lines = frame(_read(state), 100, 24).lines
    assert [line.split()[:2] for line in lines[5:8]] == [["gpu", "0"], ["npu", "1"], ["npu", "new"]]


def test_one_lane_that_is_up_needs_no_row() -> None:
    state = with_lanes(2)
    del state.lanes[1]
    assert len(frame(_read(state), 100, 24).lines) == len(frame(_read(usual()), 100, 24).lines)


def test_where_lanes_have_no_room_those_in_trouble_are_shown_and_all_are_counted() -> None:
    lines = frame(_read(with_lanes(24)), 80, 18).lines
    assert len(lines) <= 17
    assert lines[5].startswith("1     suspect")
    assert lines[6].startswith("new   login")
    assert "24 lanes (22 up, 1 suspect, 1 login)" in lines


def test_every_lane_is_counted_whatever_its_state() -> None:
    state = with_lanes(5)
    state.lanes[0].state, state.lanes[2].state = "retiring", "lost"
    lanes = _read(state).lanes
    assert "5 lanes (1 up, 1 suspect, 1 lost, 1 retiring, 1 login)" == lanes_text(lanes)
    assert "1 lane" == lanes_text([lane for lane in lanes if lane.state == "up"])


def test_a_low_terminal_only_counts_lanes() -> None:
    lines = frame(_read(with_lanes(8)), 80, 10).lines
    assert "8 lanes (6 up, 1 suspect, 1 login)" in lines
    assert not any(line.startswith("lane") for line in lines)


def test_a_line_ends_where_a_part_does() -> None:
    state = usual()
    meter = Meter(state, 0.0)
    meter.read(0.0)
    state.tiers[1].wire_in += 80_000
    state.tiers[1].stored += 70_000
    state.tiers[1].fetched += 300_000
    reading = meter.read(1.0)
    assert frame(reading, 200, 24).lines[-1] == (
        "at least 18 min 52 s left, 80.0 kB/s, 70.0 kB/s of it content, 37.1 MB over the wire, "
        "1 s so far"
    )
    assert frame(reading, 42, 24).lines[-1] == "at least 18 min 52 s left, 80.0 kB/s"
    assert frame(reading, 10, 24).lines[-1] == "at least …"
