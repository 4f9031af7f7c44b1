"""Data that does not compress, for a fixed time, beside the best fixed number of raw streams; what
came twice does not count."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from statistics import fmean

from tests.bench.link.setting import (
    LOSSY,
    NARROW,
    POLICED,
    WORST,
    Facts,
    Kind,
    LinkSetting,
    side_by_side,
)
from tests.bench.process import CommandFailed
from tests.bench.verdict import Verdict

STREAMS = Path(__file__).with_name("streams.py")
COUNTS = (2, 4, 8, 12, 16, 24)
KINDS = (LOSSY, NARROW, POLICED, WORST)
STEADY = 60.0  # seconds that raw streams are measured for
WHOLE = 170.0  # seconds that cas runs, the climb included
CLIMBED = 100.0  # by when the climb is over
AT_ONCE = 10


def run(setting: LinkSetting) -> list[Verdict]:
    """Measure."""
    jobs: dict[str, Callable[[], Facts]] = {}
    kinds = [kind for kind in KINDS if setting.link in kind.name]
    for kind in kinds:
        data = setting.random_data(kind.plenty)
        for number in range(setting.times):
            jobs[f"{kind.name} {number}"] = partial(cas_for_a_time, setting, kind, data)
        for count in COUNTS:
            jobs[_raw_name(kind, count)] = partial(raw, setting, kind, count, data)
    facts = side_by_side(jobs, AT_ONCE)
    return [verdict for kind in kinds for verdict in _verdicts(kind, facts, setting.times)]


def raw(setting: LinkSetting, kind: Kind, count: int, data: Path) -> Facts:
    """So many raw streams of the file in `data`: `rate` in bytes a second, when all are up."""

    def measure() -> Facts:
        seconds = 10.0 if setting.quick else STEADY
        with setting.site(kind) as site:
            command = [sys.executable, str(STREAMS), str(site.server.config), site.server.alias]
            command += [str(count), str(data / "data"), str(seconds)]
            process = site.near(command, stdout=subprocess.PIPE)
            output, _ = process.communicate()
        if process.returncode:
            raise CommandFailed(f"{count} raw streams: exit code {process.returncode}")
        facts: Facts = json.loads(output)
        return facts

    return setting.keep.get(_raw_name(kind, count), measure)


def _raw_name(kind: Kind, count: int) -> str:
    return f"{count} raw streams, {kind.name}"


def cas_for_a_time(setting: LinkSetting, kind: Kind, data: Path) -> Facts:
    """`cas sync` of `data` for WHOLE seconds: wire bytes a second `climbed` and on `average`, both
    without what came `again`; `durable` plain bytes a second; which share of the wire bytes was not
    durable after the climb, in the mean (`pending`) and at `worst`; `cpu` seconds a second."""
    whole = 40.0 if setting.quick else WHOLE
    with setting.site(kind) as site:
        site.plan({"one": data})
        running = site.sync(*setting.options)
        if running.until(lambda point: point.at >= whole, whole + 30) is None:
            running.stop()
            raise CommandFailed(f"{kind.name}: cas sync ended too early: {running.said}")
        climbed = min(CLIMBED, whole / 2)
        facts = {
            "climbed": running.rate(climbed, whole),
            "average": running.now.wire_in / running.now.at,
            "durable": running.now.fetched / running.now.at,
            "cpu": running.cpu / running.now.at,
            "lanes": float(running.lanes),
        }
        points = [point for point in running.points if climbed <= point.at <= whole]
        pending = [1 - point.fetched / max(point.wire_in, 1) for point in points] or [1.0]
        wire_in = max(running.now.wire_in, 1)
        running.stop()
        once = 1 - running.fetched_again / wire_in
        facts["climbed"] *= once
        facts["average"] *= once
        shares = {"again": 1 - once, "pending": fmean(pending), "worst": max(pending)}
        return {**facts, **shares}


def _verdicts(kind: Kind, facts: dict[str, Facts], times: int) -> list[Verdict]:
    rates = {count: facts[_raw_name(kind, count)]["rate"] for count in COUNTS}
    count = max(COUNTS, key=lambda each: rates[each])
    best = rates[count]
    runs = [facts[f"{kind.name} {number}"] for number in range(times)]
    beside = " ".join(f"{n}:{rate / 1e3:.0f}" for n, rate in rates.items())
    return [
        Verdict(
            f"{kind.name}: goodput after the climb / {count} raw streams",
            min(run["climbed"] for run in runs) / best, 0.9, at_least=True,
            detail=f"{_all(runs, 'climbed', 1e3)} kB/s; raw streams: {beside}; lanes at the end: "
            f"{_all(runs, 'lanes')}; came twice: {_all(runs, 'again', 0.01)} %",
            facts={"cas": runs, "raw": {str(n): rate for n, rate in rates.items()}},
        ),
        Verdict(
            f"{kind.name}: goodput of {WHOLE:.0f} s, climb included / {count} raw streams",
            min(run["average"] for run in runs) / best, 0.75, at_least=True,
            detail=f"{_all(runs, 'average', 1e3)} kB/s, durable {_all(runs, 'durable', 1e3)}",
        ),
        Verdict(
            f"{kind.name}: of what had come, not durable after the climb, in the mean",
            fmean(run["pending"] for run in runs), None,
            detail=f"at most {_all(runs, 'worst', 0.01)} %",
        ),
    ]  # fmt: skip


def _all(runs: Sequence[Facts], name: str, unit: float = 1.0) -> str:
    return " ".join(f"{run[name] / unit:.0f}" for run in runs)
