import pytest
from hypothesis import given
from hypothesis import strategies as st

from cas.entry import Problem
from cas.pull.state import Phase, SyncState, TierState
from cli.frames import bar, frame
from cli.meter import Meter, Reading
from cli.table import cell_width
from tests.cli.states import tier_states, usual


def _read(state: SyncState) -> Reading:
    meter = Meter(state, 0.0)
    meter.read(0.0)
    return meter.read(1.0)


@given(
    st.lists(tier_states("04-llama.cpp-模型"), max_size=12),
    st.integers(min_value=20, max_value=200),
    st.integers(min_value=4, max_value=60),
)
def test_a_frame_fits_its_terminal(tiers: list[TierState], width: int, height: int) -> None:
    lines = frame(_read(SyncState(tiers)), width, height)
    assert len(lines) <= max(6, height)
    assert all(cell_width(line) <= width for line in lines)
    assert all(line.isprintable() for line in lines)


def test_a_wide_terminal_shows_everything() -> None:
    lines = frame(_read(usual()), 120, 24)
    assert " ".join(lines[0].split()) == "tier logical unique here to fetch fetched wire"
    assert lines[1].endswith("17.0 MB  17.0 MB  4.00 MB  done")
    assert lines[2].endswith("120 MB  33.0 MB  26.0 %")
    assert lines[3].endswith("waiting")
    assert lines[4] == "███████▊░░░░░░░░░░░░░░░░░░░░░░ 26.0 % of 01-tier"
    assert "37.0 MB over the wire" in lines[5]


def test_a_narrow_terminal_keeps_name_and_state() -> None:
    lines = frame(_read(usual()), 30, 24)
    assert lines[2].startswith("01-tier")
    assert lines[2].endswith("26.0 %")


@pytest.mark.parametrize("active", [0, 20, 39])
def test_a_low_terminal_shows_the_tiers_around_the_active_one(active: int) -> None:
    tiers = [TierState(f"{i:02}-tier", "npu", Phase.DONE) for i in range(active)]
    tiers += [TierState(f"{active:02}-tier", "npu", Phase.SCANNING)]
    tiers += [TierState(f"{i:02}-tier", "npu") for i in range(active + 1, 40)]
    lines = frame(_read(SyncState(tiers)), 80, 12)
    assert len(lines) <= 12
    assert any(line.startswith(f"{active:02}-tier") for line in lines)
    assert any("before these" in line for line in lines) == (active > 0)
    assert any("after these" in line for line in lines) == (active < 39)


def test_what_was_left_out_is_said_at_the_tier() -> None:
    state = usual()
    state.tiers[0].problems = (Problem(b"a", "x"), Problem(b"b", "y", left_out=False))
    assert frame(_read(state), 120, 24)[1].endswith("done, 1 left out")


@given(st.floats(min_value=-50, max_value=150), st.integers(min_value=1, max_value=60))
def test_a_bar_has_its_cells(percent: float, cells: int) -> None:
    assert len(bar(percent, cells)) == cells


def test_bars() -> None:
    assert bar(0, 4) == "░░░░"
    assert bar(50, 4) == "██░░"
    assert bar(100, 4) == "████"
