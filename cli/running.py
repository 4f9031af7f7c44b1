"""The record of a running sync (`cas/pull/record.py`): written by it, shown by `cas status`.

What is recorded is what the live display shows, so another terminal can show the same.
"""

from __future__ import annotations

import base64
import shutil
import sys
import time
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from typing import Any

from cas.pull.record import Limit, Record, Running
from cas.pull.state import Phase, SyncState
from cli import output
from cli.frames import status_lines
from cli.meter import LaneReading, Meter, Reading, TierReading
from cli.stages import Stages

EVENTS_KEPT = 20
STALE_MS = 10_000
ENDLESS = 1000  # cells, for a file or a pipe


class Recorder:
    """Keeps a run's record, as one of its displays (`cli/progress.py`)."""

    seconds = 1.0

    def __init__(self, state: SyncState, record: Record, limit: Limit) -> None:
        self._state = state
        self._record = record
        self._limit = limit
        self._stages = Stages(state)
        self._events: deque[dict[str, object]] = deque(maxlen=EVENTS_KEPT)
        self._meter: Meter | None = None
        self._has_failed = False

    def begin(self, now: float) -> None:
        """See `Display.begin`."""
        self._meter = Meter(self._state, now)

    def tick(self, now: float) -> None:
        """See `Display.tick`. A record that cannot be written is worth a line, and no more."""
        if self._meter is None:
            return
        self._events.extend({"time_ms": at, "text": note} for at, note in self._stages.notes())
        try:
            self._record.write(self._fields(self._meter.read(now)))
        except OSError as error:
            if not self._has_failed:
                output.say(f"other terminals cannot be told how it goes: {error.strerror}")
            self._has_failed = True

    def end(self, now: float) -> None:
        """See `Display.end`."""
        del now
        self._record.remove()

    def _fields(self, reading: Reading) -> dict[str, object]:
        rate = self._limit.rate_now()  # before its text: it looks for orders
        return {
            "command": sys.argv[1:],
            "limit": self._limit.text,
            "rate_limit": rate,
            **fields_of(reading),
            "events": list(self._events),
        }


def fields_of(reading: Reading) -> dict[str, object]:
    """A reading for JSON; `reading_of` is its inverse."""
    return {
        **asdict(reading),
        "tiers": [_tier_fields(tier) for tier in reading.tiers],
        "lanes": [asdict(lane) for lane in reading.lanes],
    }


def _tier_fields(tier: TierReading) -> dict[str, object]:
    return {
        **asdict(tier),
        "phase": tier.phase.value,
        **output.name_fields("path", b"/" + tier.path),
    }


def reading_of(fields: Mapping[str, Any]) -> Reading | None:
    """What `fields_of` made `fields` from; None when they are of another version of cas."""
    with suppress(KeyError, TypeError, ValueError):
        rest = {name: fields[name] for name in Reading.__dataclass_fields__}
        tiers = tuple(_tier_of(tier) for tier in fields["tiers"])
        lanes = tuple(LaneReading(**lane) for lane in fields["lanes"])
        return Reading(**{**rest, "tiers": tiers, "lanes": lanes})
    return None


def _tier_of(fields: Mapping[str, Any]) -> TierReading:
    known = {name: fields[name] for name in TierReading.__dataclass_fields__}
    named = fields.get("path_b64")
    path = base64.b64decode(named) if named is not None else str(fields["path"]).encode()
    return TierReading(**{**known, "path": path[1:], "phase": Phase(fields["phase"])})


def show_running(found: Running) -> None:
    """Say how a running sync goes, on standard output."""
    is_terminal = sys.stdout.isatty()
    width = shutil.get_terminal_size().columns if is_terminal else ENDLESS
    said = found.fields.get("command")
    command = [str(word) for word in said] if isinstance(said, list) else []
    since = output.moment(found.started_ms)
    title = f"running since {since}, pid {found.pid}: cas {' '.join(command)}"
    output.result(output.paint(output.printable(title), output.BOLD, sys.stdout))
    reading = reading_of(found.fields)
    if reading is not None:
        for line in status_lines(reading, width):
            output.result(line)
    limit = found.fields.get("limit")
    if isinstance(limit, str) and limit != "off":
        output.result(f"limited to {output.printable(limit)}")
    silent_ms = time.time_ns() // 1_000_000 - found.updated_ms
    if silent_ms > STALE_MS:
        output.result(f"no news from it for {output.duration(silent_ms / 1000)}")
