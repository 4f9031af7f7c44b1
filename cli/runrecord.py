"""What stays of a run: `runs/<run id>.json` in the store (docs/cli.md, "cas sync").

It is written when the run begins, with no exit code, and again when it ends: a run that was killed
is known of, too.
"""

from __future__ import annotations

import json
import platform
import socket
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict

from cas import __version__
from cas.messages import PROTOCOL
from cas.pull.state import SyncState
from cas.store.durable import commit_bytes
from cas.store.layout import Layout
from cas.store.writer import now_ms
from cli import output

EVENTS_KEPT = 1000
POINTS_KEPT = 512
RECORDS_READ = 20  # of the newest runs, for the numbers of lanes that did best

Point = tuple[float, int, int, int]  # seconds, plain bytes fetched, wire bytes in, lanes


class Series:
    """How a run went over time, as one of its displays (`cli/progress.py`): a point each second,
    and where these get too many, every second one, and so on."""

    def __init__(self, state: SyncState) -> None:
        self._state = state
        self._began = 0.0
        self._points: list[Point] = []
        self.seconds = 1.0

    @property
    def points(self) -> Sequence[Point]:
        """The points so far."""
        return self._points

    def begin(self, now: float) -> None:
        """See `Display.begin`."""
        self._began = now

    def tick(self, now: float) -> None:
        """See `Display.tick`."""
        state = self._state
        lanes = sum(lane.state == "up" for lane in state.lanes)
        fetched = sum(tier.fetched for tier in state.tiers)
        self._points.append((round(now - self._began, 1), fetched, state.wire_in, lanes))
        if len(self._points) > POINTS_KEPT:
            del self._points[1::2]
            self.seconds *= 2

    def end(self, now: float) -> None:
        """See `Display.end`."""
        self.tick(now)


def write_record(
    layout: Layout,
    run: bytes,
    started_ms: int,
    state: SyncState,
    points: Sequence[Point],
    outcome: Mapping[str, object],
) -> None:
    """Write the run's record. It is worth a line of talk if that fails, and no more."""
    events = list(zip(state.times, state.events, strict=True))[-EVENTS_KEPT:]
    fields = {
        "run": run.hex(),
        "command": sys.argv[1:],
        "host": socket.gethostname(),
        "cas": __version__,
        "protocol": PROTOCOL,
        "python": platform.python_version(),
        "started_ms": started_ms,
        "finished_ms": now_ms() if outcome.get("exit") is not None else None,
        "lanes": state.best_lanes,
        "sources": [{"name": name, **asdict(known)} for name, known in state.sources.items()],
        "events": [{"time_ms": at, "text": text} for at, text in events],
        "points": points,
        **outcome,
    }
    try:
        line = json.dumps(fields, separators=(",", ":")) + "\n"
        commit_bytes(layout.runs / f"{run.hex()}.json", line.encode("ascii"))
    except OSError as error:
        output.say(f"the run could not be recorded: {error.strerror}")


def remembered_lanes(layout: Layout) -> dict[str, int]:
    """How many lanes did best, by source, as the last runs recorded it."""
    found: dict[str, int] = {}
    try:
        records = sorted(layout.runs.glob("*.json"), key=lambda path: path.stat().st_mtime_ns)
    except OSError:
        return found
    for path in records[-RECORDS_READ:]:
        with suppress(OSError, ValueError, AttributeError):
            said = json.loads(path.read_text("ascii")).get("lanes", {})
            found |= {name: best for name, best in said.items() if isinstance(best, int)}
    return found
