"""One of several lanes, and what is known of it."""

from __future__ import annotations

import asyncio

from cas.pull.flow import LaneFlow
from cas.pull.lane import Lane
from cas.pull.state import LaneState

BEATS_KEPT = 64


class Member:
    """A lane with its flow, and `shown`, where displays see how it is."""

    def __init__(self, lane: Lane, number: int, shown: LaneState, now: float) -> None:
        self.lane = lane
        self.number = number
        self.shown = shown
        self.flow = LaneFlow(now)
        self.waker = asyncio.Event()
        self.waker.set()
        self.noted = now  # when it was last found to have brought something
        self.tasks: tuple[asyncio.Task[None], ...] = ()  # that read and write it
        self._asked: dict[int, float] = {}  # when each beat was sent

    def came(self, size: int, now: float) -> None:
        """So many bytes of pieces came."""
        self.shown.payload += size
        self.flow.arrived(size, now)

    def asked(self, beat: int, now: float) -> None:
        """A beat was sent."""
        self._asked[beat] = now
        if len(self._asked) > BEATS_KEPT:
            del self._asked[next(iter(self._asked))]

    def answered(self, beat: int, now: float) -> None:
        """A beat came back."""
        sent = self._asked.pop(beat, None)
        if sent is not None:
            self.flow.round_trip(now - sent)

    def show(self, now: float) -> None:
        """Bring `shown` up to date."""
        self.shown.bytes_in = self.lane.transport.bytes_in
        self.shown.heard = self.lane.heard
        self.shown.rate = self.flow.rate(now)
