"""One of several lanes, and what is known of it."""

from __future__ import annotations

import asyncio

from cas.messages import Credit
from cas.outbox import LEAST_PIECE
from cas.pull.flow import LaneFlow, Throttle
from cas.pull.lane import Lane
from cas.pull.state import LaneState

BEATS_KEPT = 64
SPENT_SECONDS = 5.0  # without a byte of what a lane was allowed


class Member:
    """A lane with its flow, and `shown`, where displays see how it is."""

    def __init__(self, lane: Lane, number: int, shown: LaneState, now: float) -> None:
        self.lane = lane
        self.number = number
        self.shown = shown
        self._flow = LaneFlow(now)
        self.waker = asyncio.Event()
        self.waker.set()
        self.retired: float | None = None  # since when it is given no more to do
        self._allowed = 0
        self._told = 0  # of what arrived, since it was retired
        self.noted = now  # when it was last found to have brought something
        self.tasks: tuple[asyncio.Task[None], ...] = ()  # that read and write it
        self._asked: dict[int, float] = {}  # when each beat was sent

    def came(self, size: int, now: float) -> None:
        """So many bytes of pieces came."""
        self.shown.payload += size
        self._flow.arrived(size, now)

    def credit(self, now: float, throttle: Throttle) -> Credit | None:
        """What the far end is to know of arrivals and allowances, if it is time to tell it."""
        if self.retired is None:
            allowed = self._flow.grant(now, throttle)
            self._allowed = self._allowed if allowed is None else allowed
            return None if allowed is None else Credit(self.shown.payload, allowed)
        told, self._told = self._told, self.shown.payload
        return Credit(self._told, self._allowed) if told != self._told else None

    def is_spent(self, now: float) -> bool:
        """Whether all has come that the far end was allowed to send, or no more of it seems to."""
        since = self._flow.heard if self.retired is None else max(self.retired, self._flow.heard)
        return self._flow.outstanding < LEAST_PIECE or now - since > SPENT_SECONDS

    def asked(self, beat: int, now: float) -> None:
        """A beat was sent."""
        self._asked[beat] = now
        if len(self._asked) > BEATS_KEPT:
            del self._asked[next(iter(self._asked))]

    def answered(self, beat: int, now: float) -> None:
        """A beat came back."""
        sent = self._asked.pop(beat, None)
        if sent is not None:
            self._flow.round_trip(now - sent)

    def show(self, now: float) -> None:
        """Bring `shown` up to date."""
        self.shown.bytes_in = self.lane.transport.bytes_in
        self.shown.heard = self.lane.heard
        self.shown.rate = self._flow.rate(now)
