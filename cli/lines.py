"""The progress of a sync where no terminal is: a line with its time every few seconds.

Every 5 seconds in the first minute, then every 30: a sync may take days, and this goes to a log.
Nothing is written while nothing changes, but for one line that says so.
"""

from __future__ import annotations

import time

from cas.pull.state import Phase, SyncState, TierState
from cli import output
from cli.frames import lanes_text, left_text, rate_texts
from cli.meter import Meter, Reading
from cli.stages import Stage, Stages

SOON, LATER = 5.0, 30.0
LATER_FROM = 60.0
MUCH = 10_000_000  # bytes over the wire during a scan, that are worth a word


class LineDisplay:
    """See `progress.Display`."""

    seconds = 1.0

    def __init__(self, state: SyncState) -> None:
        self._state = state
        self._stages = Stages(state)
        self._meter: Meter | None = None
        self._began = self._said = 0.0
        self._last = ""

    def begin(self, now: float) -> None:
        """See `Display.begin`."""
        self._meter = Meter(self._state, now)
        self._began = self._said = now

    def tick(self, now: float) -> None:
        """See `Display.tick`."""
        if self._meter is None:
            return
        reading = self._meter.read(now)
        for at_ms, note in self._stages.notes():
            output.say(f"{output.clock(at_ms)} {output.printable(note)}")
        for tier, stage in self._stages.news():
            _log(step_text(tier, stage))
            self._said = now
        if now - self._said >= (SOON if now - self._began < LATER_FROM else LATER):
            self._said = now
            line = progress_text(reading)
            if line != self._last:
                _log(line)
            self._last = line

    def end(self, now: float) -> None:
        """See `Display.end`."""
        self.tick(now)


def step_text(tier: TierState, stage: Stage) -> str:
    """What a tier's step means."""
    if stage is Stage.STARTED:
        return f"{tier.name}: scanning {tier.source}"
    if stage is Stage.SCANNED:
        return (
            f"{tier.name}: scanned, {output.plural(tier.names, 'name')}, "
            f"{output.size(tier.logical)}, {output.size(tier.unique)} unique, "
            f"{output.size(tier.here)} here, {output.size(tier.to_fetch)} to fetch"
        )
    if tier.phase is Phase.FAILED:
        return f"{tier.name}: failed; {output.size(tier.fetched)} fetched are kept"
    left = f", {tier.left_out} left out" if tier.left_out else ""
    if not tier.fetched:
        return f"{tier.name}: done{left}"
    wire = output.size(tier.wire_in)
    return f"{tier.name}: done, {output.size(tier.fetched)} fetched, {wire} over the wire{left}"


def progress_text(reading: Reading) -> str:
    """One line on the tier that is being worked on, and on the wire."""
    tier = reading.active
    if tier is None:
        return f"{output.size(reading.wire_in)} over the wire"
    if tier.percent is None:
        # Over SFTP content comes while it is scanned, whole, and that may take days.
        wire = f", {output.size(reading.wire_in)} over the wire" if reading.wire_in >= MUCH else ""
        what = f"{tier.phase.value}{wire}, {output.plural(tier.names, 'name')}"
        return f"{tier.name}: {what}, at {output.show_path(tier.path)}"
    parts = [
        f"{tier.name}: {tier.percent:.1f} %",
        f"{output.size(tier.fetched)} of {output.size(tier.to_fetch)}",
        *rate_texts(reading),
        lanes_text(reading.lanes) if len(reading.lanes) > 1 else "",
        left_text(reading),
    ]
    return ", ".join(part for part in parts if part)


def _log(text: str) -> None:
    output.say(f"{time.strftime('%H:%M:%S')} {text}")
