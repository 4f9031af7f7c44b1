"""Data that does not compress, for a fixed time, beside the best fixed number of raw streams."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

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
    for kind in KINDS:
        data = setting.random_data(kind.plenty)
        jobs[kind.name] = partial(cas_for_a_time, setting, kind, data)
        for count in COUNTS:
            jobs[_raw_name(kind, count)] = partial(raw, setting, kind, count, data)
    facts = side_by_side(jobs, AT_ONCE)
    return [verdict for kind in KINDS for verdict in _verdicts(kind, facts)]


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
    """`cas sync` of `data` for WHOLE seconds: wire bytes a second `climbed` and on `average`,
    `durable` plain bytes a second, `cpu` seconds a second."""
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
        }
        facts["lanes"] = float(running.lanes)
        running.stop()
        return {**facts, "again": float(running.fetched_again)}


def _verdicts(kind: Kind, facts: dict[str, Facts]) -> list[Verdict]:
    rates = {count: facts[_raw_name(kind, count)]["rate"] for count in COUNTS}
    count = max(COUNTS, key=lambda each: rates[each])
    best = rates[count]
    cas = facts[kind.name]
    beside = " ".join(f"{n}:{rate / 1e3:.0f}" for n, rate in rates.items())
    detail = f"raw streams, kB/s: {beside}; lanes at the end: {cas['lanes']:.0f}"
    return [
        Verdict(
            f"{kind.name}: goodput after the climb / {count} raw streams",
            cas["climbed"] / best, 0.9, at_least=True,
            detail=f"{cas['climbed'] / 1e3:.0f} beside {best / 1e3:.0f} kB/s; {detail}",
            facts={"cas": cas, "raw": {str(n): rate for n, rate in rates.items()}},
        ),
        Verdict(
            f"{kind.name}: goodput of {WHOLE:.0f} s, climb included / {count} raw streams",
            cas["average"] / best, 0.75, at_least=True,
            detail=f"{cas['average'] / 1e3:.0f} kB/s, of which {cas['durable'] / 1e3:.0f} durable",
        ),
    ]  # fmt: skip
