"""Charts of runs: how much new content came a second, and over how many lanes. Of a run that
recorded its course, over its time; of all, as a whole."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from cas.report.facts import Point, RunFacts, Words
from cas.report.figures import COLOURS, MARGIN, Figure, View, names_axis, sizes_axis

LEGEND = {"orientation": "h", "x": 0, "y": 1, "xanchor": "left", "yanchor": "bottom"}
DIGITS = 8  # of a run's id
SHORTEST = 0.5  # seconds
COURSE_LEAST = 3  # measurements; of a run with fewer the total says as much
TIMES = ((2 * 86400, 86400, "d"), (2 * 3600, 3600, "h"), (120, 60, "min"), (0, 1, "s"))


def totals(runs: Sequence[RunFacts], words: Words) -> Figure:
    """Each run as one bar of goodput and one of wire bytes a second, and a mark for its lanes."""
    timed = [run for run in runs if run.seconds]
    numbers = list(range(len(timed)))
    data: list[dict[str, Any]] = [
        _bars("new content", [round(run.goodput or 0) for run in timed], timed, words, COLOURS[2]),
        _bars("wire", [round(run.wire_in / (run.seconds or 1)) for run in timed], timed, words,
              COLOURS[4]),
    ]  # fmt: skip
    lanes = [run.lanes for run in timed]
    if any(lanes):
        data.append({
            "type": "scatter", "mode": "markers", "name": "lanes", "x": numbers, "y": lanes,
            "yaxis": "y2", "marker": {"color": COLOURS[1], "size": 9, "symbol": "diamond"},
            "hovertemplate": "%{y} lanes<extra></extra>",
        })  # fmt: skip
    layout = {
        "height": 360, "margin": {**MARGIN, "t": 34}, "barmode": "group",
        "bargap": max(0.3, 1 - 0.12 * len(timed)),
        "xaxis": names_axis(len(timed), tickvals=_some(numbers), tickangle=-45),
        "yaxis": sizes_axis("B/s"), "legend": LEGEND,
        **({"yaxis2": _lanes_axis(max(lane or 0 for lane in lanes))} if any(lanes) else {}),
    }  # fmt: skip
    names = [words.moment(timed[number].begun_ms)[5:] for number in _some(numbers)]
    return Figure("runs", [View("", data, layout, {"xaxis": names})] if timed else [])


def _bars(
    name: str, rates: list[int], runs: Sequence[RunFacts], words: Words, colour: str
) -> dict[str, Any]:
    return {
        "type": "bar", "name": name, "x": list(range(len(rates))), "y": rates,
        "marker": {"color": colour}, "hovertemplate": "%{customdata}<extra></extra>",
        "customdata": [
            f"{run.id.hex()[:DIGITS]}, {words.moment(run.begun_ms)}<br>{name}: {rate:,} bytes/s"
            for run, rate in zip(runs, rates, strict=True)
        ],
    }  # fmt: skip


def _some(numbers: list[int]) -> list[int]:
    """As many as have room for their names."""
    return numbers[:: 1 + len(numbers) // 20]


def courses(runs: Sequence[RunFacts], words: Words) -> Figure:
    """A view for each run that recorded its course, the newest first."""
    told = [run for run in reversed(runs) if len(rates(run.points)) >= COURSE_LEAST]
    return Figure("courses", [_course(run, words) for run in told])


def rates(points: Sequence[Point]) -> list[tuple[float, float, float]]:
    """Between points that are SHORTEST apart or more: from when, and new content and wire bytes a
    second."""
    return [
        (before.seconds, (after.fetched - before.fetched) / (after.seconds - before.seconds),
         (after.wire_in - before.wire_in) / (after.seconds - before.seconds))
        for before, after in pairwise(_apart(points))
    ]  # fmt: skip


def _apart(points: Sequence[Point]) -> list[Point]:
    """Those that are far enough from the one before, and the last: a rate over less is chance."""
    kept: list[Point] = []
    for point in points:
        if not kept or point.seconds - kept[-1].seconds >= SHORTEST:
            kept.append(point)
    if kept and kept[-1] != points[-1]:
        kept[-1:] = [points[-1]] if len(kept) > 1 else kept
    return kept


def _course(run: RunFacts, words: Words) -> View:
    unit, name = next((u, n) for least, u, n in TIMES if (run.seconds or 0) >= least)
    found = rates(run.points)
    found += [(run.points[-1].seconds, *found[-1][1:])]  # so that the last one is drawn, too
    data = [
        _line("new content", [(t / unit, content) for t, content, _ in found], COLOURS[2]),
        _line("wire", [(t / unit, wire) for t, _, wire in found], COLOURS[4]),
        {"type": "scatter", "mode": "lines", "name": "lanes", "yaxis": "y2",
         "x": [point.seconds / unit for point in run.points],
         "y": [point.lanes for point in run.points],
         "line": {"color": COLOURS[1], "shape": "hv", "width": 1.5, "dash": "dot"},
         "hovertemplate": "%{y} lanes<extra></extra>"},
    ]  # fmt: skip
    layout = {
        "height": 340, "margin": {**MARGIN, "t": 34, "b": 44}, "legend": LEGEND,
        "hovermode": "x", "xaxis": {"ticksuffix": f" {name}", "rangemode": "tozero",
                                    "fixedrange": True, "zeroline": False,
                                    "ticks": "outside", "ticklen": 8, "tickcolor": "rgba(0,0,0,0)"},
        "yaxis": sizes_axis("B/s"),
        "yaxis2": _lanes_axis(max(point.lanes for point in run.points)),
    }  # fmt: skip
    return View(f"{words.moment(run.begun_ms)}, {run.id.hex()[:DIGITS]}", data, layout, {})


def _line(name: str, points: list[tuple[float, float]], colour: str) -> dict[str, Any]:
    return {
        "type": "scatter", "mode": "lines", "name": name,
        "line": {"color": colour, "width": 2, "shape": "hv"},
        "x": [at for at, _ in points], "y": [round(rate) for _, rate in points],
        "hovertemplate": f"{name}: %{{y:,d}} bytes/s<extra></extra>",
    }  # fmt: skip


def _lanes_axis(most: int) -> dict[str, Any]:
    return {
        "overlaying": "y", "side": "right", "range": [0, most + 1], "showgrid": False,
        "dtick": max(1, (most + 1) // 6), "fixedrange": True, "zeroline": False,
        "title": {"text": "lanes"}, "automargin": True,
    }  # fmt: skip
