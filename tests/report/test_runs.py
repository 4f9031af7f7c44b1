"""Runs as they were recorded, and what of a record is passed over."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cas.report.facts import Point
from cas.report.run_charts import rates
from cas.report.runs import POINTS_MOST, run_facts, thinned

RUN = bytes(16)


def test_a_record_becomes_facts() -> None:
    fields = {
        "command": ["sync", "minimal"], "exit": 3, "seconds": 4.0, "wire_in": 500, "wire_out": 7,
        "lanes": {"npu": 4, "other": 1}, "tiers": [{"name": "a", "fetched": 600},
                                                   {"name": "b", "fetched": 200}],
        "points": [[1.0, 100, 50, 1], [2.5, 400, 90, 4]],
    }  # fmt: skip
    run = run_facts(RUN, 5, fields, is_running=False)
    assert ("sync", "exit 3", 4.0, 800, 500, 7, 5) == (
        run.command, run.state, run.seconds, run.fetched, run.wire_in, run.wire_out, run.lanes
    )  # fmt: skip
    assert 200.0 == run.goodput
    assert [Point(1.0, 100, 50, 1), Point(2.5, 400, 90, 4)] == list(run.points)
    [(begun, content, wire)] = rates(run.points)
    assert (1.0, 200.0) == (begun, content)
    assert 40 / 1.5 == pytest.approx(wire)


def test_a_last_moment_is_no_interval_of_its_own() -> None:
    points = [Point(0.0, 0, 0, 1), Point(1.0, 100, 10, 1), Point(2.0, 200, 20, 1),
              Point(2.1, 320, 41, 1)]  # fmt: skip
    found = [(begun, round(content), round(wire)) for begun, content, wire in rates(points)]
    assert [(0.0, 100, 10), (1.0, 200, 28)] == found
    assert [] == rates(points[:1]) == rates([])
    assert [] == rates(points[2:])


def test_a_run_without_a_record_and_one_that_goes_on() -> None:
    assert "not ended" == run_facts(RUN, 0, {"exit": None}, is_running=False).state
    assert "no record" == run_facts(RUN, 0, {}, is_running=False).state
    lanes = [{"state": "up"}, {"state": "login"}, {"state": "up"}]
    run = run_facts(RUN, 0, {"lanes": lanes, "seconds": 1}, is_running=True)
    assert ("running", 2) == (run.state, run.lanes)


def test_lanes_are_the_most_there_were_where_none_did_best() -> None:
    fields = {"lanes": {}, "points": [[1, 1, 1, 3], [2, 2, 2, 1]]}
    assert 3 == run_facts(RUN, 0, fields, is_running=False).lanes


def test_points_that_go_back_or_are_none_are_passed_over() -> None:
    rows = [[0, 0, 0, 1], [5, 10, 10, 1], [4, 20, 20, 1], [6, 5, 30, 1], "x", [7], [8, 30, 40, 2],
            [9, True, 50, 1], [float("nan"), 60, 60, 1], [10, 60, 60, 3]]  # fmt: skip
    run = run_facts(RUN, 0, {"points": rows, "seconds": 10}, is_running=False)
    assert [0, 5, 8, 10] == [point.seconds for point in run.points]


def test_many_points_are_thinned_with_both_ends() -> None:
    points = [Point(n, n, n, 1) for n in range(10_000)]
    kept = thinned(points)
    assert (POINTS_MOST, points[0], points[-1]) == (len(kept), kept[0], kept[-1])
    assert kept == sorted(kept, key=lambda point: point.seconds)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)
KEYS = ("command", "exit", "seconds", "wire_in", "lanes", "tiers", "points", "error")


@given(st.dictionaries(st.sampled_from(KEYS), JSON))
def test_any_record_gives_facts(fields: dict[str, object]) -> None:
    run = run_facts(RUN, 0, fields, is_running=False)
    assert run.fetched >= 0
    assert run.wire_in >= 0
    assert run.seconds is None or 0 <= run.seconds < float("inf")
    assert all(one.seconds <= other.seconds for one, other in pairwise(run.points))
