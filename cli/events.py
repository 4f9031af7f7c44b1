"""The progress of a sync as JSON, one object a line on standard output (docs/cli.md, `--json`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cas.entry import Problem
from cas.pull.state import SyncState, TierState
from cli import output
from cli.meter import Meter, Reading
from cli.stages import Stage, Stages, stage_of

if TYPE_CHECKING:
    from cli.forecast import Forecast


class EventDisplay:
    """See `progress.Display`."""

    seconds = 1.0

    def __init__(self, state: SyncState) -> None:
        self._state = state
        self._stages = Stages(state)
        self._meter: Meter | None = None

    def begin(self, now: float) -> None:
        """See `Display.begin`."""
        self._meter = Meter(self._state, now)

    def tick(self, now: float) -> None:
        """See `Display.tick`."""
        self._report()
        if self._meter is None:
            return
        reading = self._meter.read(now)
        tier = reading.active
        if tier is not None:
            output.json_event(
                "progress",
                {
                    "tier": tier.name,
                    "phase": tier.phase.value,
                    **output.name_fields("path", b"/" + tier.path),
                    "names": tier.names,
                    "logical": tier.logical,
                    "unique": tier.unique,
                    "here": tier.here,
                    "to_fetch": tier.to_fetch,
                    "fetched": tier.fetched,
                    "percent": tier.percent,
                    "wire_in": reading.wire_in,
                    "wire_out": reading.wire_out,
                    **rate_fields(reading),
                    "lanes": sum(lane.state == "up" for lane in reading.lanes),
                },
            )

    def end(self, now: float) -> None:
        """See `Display.end`."""
        del now
        self._report()
        for tier in self._state.tiers:
            if stage_of(tier) is not Stage.FINISHED:
                _report_problems(tier)

    def _report(self) -> None:
        for at_ms, note in self._stages.notes():
            output.json_event("note", {"time_ms": at_ms, "text": note})
        for tier, stage in self._stages.news():
            output.json_event("tier", {"stage": stage.name.lower(), **tier_fields(tier)})
            if stage is Stage.FINISHED:
                _report_problems(tier)


def _report_problems(tier: TierState) -> None:
    for problem in tier.problems:
        output.json_event("problem", {"tier": tier.name, **problem_fields(problem)})


def rate_fields(reading: Reading) -> dict[str, object]:
    """How fast a sync is at one moment, and for how long it will last."""
    return {
        "rate": round(reading.rate),
        "content": round(reading.content),
        "left": None if reading.left is None else round(reading.left),
    }


def tier_fields(tier: TierState) -> dict[str, object]:
    """A tier's counters, as in `tier` events and in the summary."""
    return {
        "name": tier.name,
        "source": tier.source,
        "phase": tier.phase.value,
        "names": tier.names,
        "logical": tier.logical,
        "unique": tier.unique,
        "here": tier.here,
        "to_fetch": tier.to_fetch,
        "fetched": tier.fetched,
        "fetched_again": tier.fetched_again,
        "stored": tier.stored,
        "wire_in": tier.wire_in,
        "wire_out": tier.wire_out,
        "seconds": round(max(0.0, tier.finished - tier.started), 3),
        "left_out": tier.left_out,
        "left_packed": tier.packed,
        "complete": tier.complete,
    }


def problem_fields(problem: Problem) -> dict[str, object]:
    """A problem for JSON; `left_out` is false for what was taken with a doubt."""
    return {
        **output.name_fields("path", b"/" + problem.path),
        "reason": problem.reason,
        "hint": problem.hint,
        "left_out": problem.left_out,
    }


def summary_fields(
    state: SyncState, seconds: float, exit_code: int, forecast: Forecast | None = None
) -> dict[str, object]:
    """The last line of a sync's JSON, and the core of its record in the store."""
    return {
        "wire_in": state.wire_in,
        "wire_out": state.wire_out,
        "seconds": round(seconds, 3),
        "tiers": [{**tier_fields(tier), **_estimate(forecast, tier)} for tier in state.tiers],
        **_estimate(forecast),
        "exit": exit_code,
    }


def _estimate(forecast: Forecast | None, tier: TierState | None = None) -> dict[str, object]:
    """What a tier would cost, or all together, and then at what rate."""
    if forecast is None:
        return {}
    if tier is not None:
        return {"estimate": forecast.fields(forecast.costs[tier.name])}
    rate = forecast.rate
    return {
        "estimate": {
            **forecast.fields(forecast.total),
            "rate": None if rate is None else round(rate.value),
            "run": None if rate is None else rate.run or None,
        }
    }
