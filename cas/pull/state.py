"""How far a sync is: numbers that the engine writes and a display reads, at any moment.

Plain bytes and wire bytes are counted apart. `to_fetch` is what must really cross, in plain bytes;
it grows while the scan goes on and is final when `scanned`. `fetched` counts plain bytes that are
durable here, so it never passes `to_fetch` and never goes back.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from enum import Enum

from cas.entry import Problem


class Phase(Enum):
    """Where a tier is."""

    WAITING = "waiting"
    CONNECTING = "connecting"
    SCANNING = "scanning"
    FETCHING = "fetching"
    DONE = "done"
    FAILED = "failed"


@dataclass(slots=True)
class TierState:
    """One tier of a sync. Sizes in bytes, times in seconds of the monotonic clock."""

    name: str
    source: str
    phase: Phase = Phase.WAITING
    scanned: bool = False  # the scan is over: logical, unique, here, to_fetch are final
    names: int = 0  # entries so far
    path: bytes = b""  # being scanned now, then being fetched
    logical: int = 0  # as the source counts, duplicates included
    unique: int = 0  # distinct chunks of the tier
    here: int = 0  # of `unique`, held before the tier was begun
    to_fetch: int = 0  # of `unique`, missing then
    fetched: int = 0  # of `to_fetch`, durable here now
    fetched_again: int = 0  # wire bytes of segments that came although they had come before
    stored: int = 0  # compressed bytes of what was fetched
    wire_in: int = 0
    wire_out: int = 0
    started: float = 0.0
    finished: float = 0.0
    missed: int = 0  # chunks that changed between scan and reading, all rounds
    problems: tuple[Problem, ...] = ()
    packed: int = 0  # notes on what was left as it is in archives
    complete: bool = False

    @property
    def left_out(self) -> int:
        """How many names the tier's scan could not take in, or whose content did not come."""
        return sum(1 for problem in self.problems if problem.left_out)


@dataclass(slots=True)
class LaneState:
    """One connection to a source. `heard` is when anything last came, by the monotonic clock."""

    source: str
    number: int
    state: str = "login"  # then "up", "suspect", "retiring", "lost"
    bytes_in: int = 0  # everything counted
    payload: int = 0  # of it, bytes of pieces
    rate: float = 0.0  # of payload, bytes a second lately
    heard: float = 0.0


@dataclass(slots=True)
class SourceState:
    """What is known of a source by its connections: what it calls itself, the host key that it
    proved to have ("" for this machine), its versions; the most lanes at a time, how many
    connections were made in all, and how many of them were lost."""

    host: str = ""
    host_key: str = ""
    cas: str = ""
    protocol: int = 0
    python: str = ""
    system: str = ""
    lanes: int = 0
    connections: int = 0
    lost: int = 0


@dataclass(slots=True)
class SyncState:
    """A whole sync. `events` are lines worth a log entry, oldest first, `times` when each was
    noted, in ms since 1970. `lanes` are those that are open or being opened now."""

    tiers: list[TierState] = field(default_factory=list)
    events: list[str] = field(default_factory=list)
    times: list[int] = field(default_factory=list)
    sources: dict[str, SourceState] = field(default_factory=dict)
    lanes: list[LaneState] = field(default_factory=list)
    best_lanes: dict[str, int] = field(default_factory=dict)  # by source, where known
    started: float = 0.0

    def note(self, text: str) -> None:
        """Something worth a log entry has happened."""
        self.events.append(text)
        self.times.append(time.time_ns() // 1_000_000)

    @property
    def wire_in(self) -> int:
        """Bytes received, everything counted."""
        return sum(tier.wire_in for tier in self.tiers)

    @property
    def wire_out(self) -> int:
        """Bytes sent, everything counted."""
        return sum(tier.wire_out for tier in self.tiers)
