"""Runs, from the records that they left. Those are files that anything may have happened to, so
what does not have its right shape is passed over."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from cas.report.facts import Point, RunFacts

POINTS_MOST = 600  # of one run; more are thinned out
COUNT_MOST = 2**63 - 1

Fields = Mapping[str, object]


def run_facts(run: bytes, begun_ms: int, fields: Fields, *, is_running: bool) -> RunFacts:
    """A run by its record, `fields`, which are empty where it left none."""
    tiers = [tier for tier in _list(fields.get("tiers")) if isinstance(tier, dict)]
    command = " ".join(str(word) for word in _list(fields.get("command"))[:1])
    seconds = _number(fields.get("seconds"))
    points = thinned(list(_points(fields.get("points"))))
    return RunFacts(
        run,
        begun_ms,
        command,
        "running" if is_running else _state(fields),
        seconds if fields else None,
        sum(_count(tier.get("fetched")) for tier in tiers),
        _count(fields.get("wire_in")),
        _count(fields.get("wire_out")),
        _lanes(fields) or max((point.lanes for point in points), default=0) or None,
        [str(tier.get("name")) for tier in tiers],
        points,
    )


def thinned(points: list[Point]) -> list[Point]:
    """At most POINTS_MOST of them, evenly, with the first and the last."""
    if len(points) <= POINTS_MOST:
        return points
    last = len(points) - 1
    return [points[number * last // (POINTS_MOST - 1)] for number in range(POINTS_MOST)]


def _points(rows: object) -> Iterator[Point]:
    """`[[seconds, fetched, wire_in, lanes], ...]`, none of which goes back."""
    last = Point(0.0, 0, 0, 0)
    for row in _list(rows):
        if not isinstance(row, list) or len(row) < 4:
            continue
        point = Point(_number(row[0]) or 0.0, *map(_count, row[1:4]))
        if (point.seconds, point.fetched, point.wire_in) >= (last.seconds, 0, 0) and (
            point.fetched >= last.fetched and point.wire_in >= last.wire_in
        ):
            yield point
            last = point


def _state(fields: Fields) -> str:
    if not fields:
        return "no record"
    code = fields.get("exit")
    return "not ended" if code is None else f"exit {_count(code)}"


def _lanes(fields: Fields) -> int | None:
    """How many did best, of all sources, if that is known; of a run that goes on, how many are
    up."""
    lanes = fields.get("lanes")
    if isinstance(lanes, dict):
        return sum(map(_count, lanes.values())) or None
    up = [lane for lane in _list(lanes) if isinstance(lane, dict) and lane.get("state") == "up"]
    return len(up) or None


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if 0 <= value <= COUNT_MOST and math.isfinite(value) else None


def _count(value: object) -> int:
    return (
        int(_number(value) or 0) if not isinstance(value, int) else max(0, min(value, COUNT_MOST))
    )
