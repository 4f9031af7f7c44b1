"""A sync of many files when nothing has changed: its time beside the first scan's, and the bytes on
the wire for each file."""

from __future__ import annotations

import os

from tests.bench.data import source_tree
from tests.bench.process import CommandFailed, Usage, in_turns
from tests.bench.product import Cas, summary
from tests.bench.verdict import Setting, Verdict

TIME_LIMIT = 0.2
WIRE_LIMIT = 64.0
MOST = 16 * 1024  # bytes in a file: the smaller they are, the harder it is


def run(setting: Setting) -> list[Verdict]:
    """See `Benchmark`."""
    count = 5_000 if setting.quick else 100_000
    data = setting.work / "tree"
    source_tree(data, count, seed=3, most=MOST)
    held = Cas(setting.work / "held", {"data": data})
    held.forget()
    first_sync = held.sync()
    fresh = Cas(setting.work / "fresh", {"data": data})

    def scan() -> Usage:
        fresh.forget()
        return fresh.scan()

    os.sync()
    best = in_turns(setting.rounds, {"first scan": scan, "second sync": held.sync})
    first, second = best["first scan"], best["second sync"]
    said = summary(second)
    if said["tiers"][0]["to_fetch"] or said["exit"]:
        raise CommandFailed("the second sync found something to fetch")
    wire = said["wire_in"] + said["wire_out"]
    facts: dict[str, object] = {
        "files": count,
        "first_scan_wall": first.wall,
        "first_scan_cpu": first.cpu,
        "first_sync_wall": first_sync.wall,
        "second_sync_wall": second.wall,
        "second_sync_cpu": second.cpu,
        "wire_in": said["wire_in"],
        "wire_out": said["wire_out"],
    }
    times = (
        f"{count} files: {second.wall:.2f} s beside {first.wall:.2f} s; "
        f"CPU {second.cpu:.2f} s beside {first.cpu:.2f} s"
    )
    return [
        Verdict("second sync / first scan, wall", second.wall / first.wall, TIME_LIMIT,
                detail=times, facts=facts),
        Verdict("second sync, wire per file", wire / count, WIRE_LIMIT, "B",
                detail=f"{wire} bytes in all", facts=facts),
    ]  # fmt: skip
