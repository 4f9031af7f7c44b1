"""What an outbox knows of pieces that are under way: of each blob who has which of them, and of
each lane what it has taken and how fast that arrives (`cas/outbox.py`)."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from cas.messages import PIECE_SIZE, Message

RATE_SECONDS = 8.0  # by what arrived in so many the rest is judged
PIECE_SECONDS = 0.5  # a lane's pieces are what it brings in this, of at least PIECE_LEAST bytes
PIECE_LEAST = 16 * 1024
OWN_LIMIT = 256  # messages for one lane; of beats and credits the last ones tell all
ARRIVALS_LIMIT = 1024
NOBODY = -1

SegmentKey = tuple[int, int]  # frame, number
Extent = tuple[SegmentKey, int, int]  # and from where to where: a piece, as it was cut


@dataclass(frozen=True, slots=True)
class Taken:
    """Who has a piece that ends at `end` (NOBODY: it is queued again), since when, and at which
    count of the lane's bytes it will have arrived."""

    lane: int
    since: float
    end: int
    due: int


@dataclass(slots=True)
class Blob:
    """Something that goes in pieces. `taken` says of each piece who took it last."""

    data: bytes
    bulk: int  # what it counts for while messages are limited
    arrived: set[int] = field(default_factory=set)  # where the pieces begin
    arrived_size: int = 0
    taken: dict[int, Taken] = field(default_factory=dict)

    def note_arrival(self, start: int, end: int) -> None:
        if start not in self.arrived:
            self.arrived.add(start)
            self.arrived_size += end - start

    @property
    def is_whole_there(self) -> bool:
        return self.arrived_size == len(self.data)


@dataclass(slots=True)
class Lane:
    """What a lane has taken and is not known to have arrived, oldest first, each with the count of
    bytes at which it has."""

    own: deque[Message] = field(default_factory=lambda: deque(maxlen=OWN_LIMIT))
    on_the_way: deque[tuple[int, Extent]] = field(default_factory=deque)
    sent: int = 0
    allowed: int = 0
    arrived: int = 0
    arrivals: deque[tuple[float, int]] = field(default_factory=lambda: deque(maxlen=ARRIVALS_LIMIT))
    is_doubted: bool = False

    def note(self, now: float, total: int) -> None:
        """So many bytes have arrived by now."""
        if total > self.arrived:
            self.arrived = total
            self._forget(now)
            self.arrivals.append((now, total))

    def rate(self, now: float) -> float:
        """Bytes a second that arrived lately."""
        self._forget(now)
        if not self.arrivals:
            return 0.0
        since, before = self.arrivals[0]
        return (self.arrived - before) / max(now - since, 1.0)

    def piece_size(self, now: float) -> int:
        """How large a piece may be: what is late, and goes out again, is the less the smaller."""
        if not self.arrived:
            return PIECE_SIZE
        return int(min(max(self.rate(now) * PIECE_SECONDS, PIECE_LEAST), PIECE_SIZE))

    def _forget(self, now: float) -> None:
        while self.arrivals and self.arrivals[0][0] < now - RATE_SECONDS:
            self.arrivals.popleft()
