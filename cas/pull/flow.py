"""How many payload bytes the far end may send on each lane: credit, and a limit over all of it.

What is under way on a lane waits for that lane, however slow it turns out to be, while others could
have brought it. So a lane gets credit for what it brings in its round trip and 2 s more, which
leaves the far end time to find the next segment; at least 32 KiB (128 KiB on each of 24 lanes are
40 s of a link of 80 kB/s: much of what has come then waits for a slow lane), at most 4 MiB (20 MB/s
at 200 ms, on each lane). Credit is told as a total since the lane was opened, so that it can be
repeated and never be taken back. The same message says what has arrived, for the far end keeps it
until then: so there is one when a quarter of the window has come or is free, or 256 KiB, and within
a second after anything came.

The rate is that of the last 2 s, and of one second while there were less: what comes in the first
round trip then triples the window with each further one, and 4 MiB are reached after four or five.
A silence of 4 s or more before belongs to them: when TCP has filled a gap, all that waited behind
it is there at once, and a window for that rate would be minutes of work that is not taken back.

A limit (`Throttle`) is kept by holding credit back: nothing is sent that was not allowed, and TCP
is not made to stall. It is a token bucket over all lanes, given out in portions of a twentieth of a
second, 4 to 64 KiB; the far end cuts pieces to them. The bucket holds one and three tenths of a
second, as `grant` has to be asked of every lane each quarter of a second, not only when something
has come: credit ripens by itself.

What is outstanding beyond a portion, on lanes that flow, is kept below the limit's round trip and a
second: when it is lowered, what was allowed before is soon over. Lanes that have brought nothing
for 2 s do not count there: they would keep the others from what is theirs. So that there is some
for all, a limited lane has half a second instead of 2 s in its window, and at least twice its share
of all there may be.
"""

from __future__ import annotations

from collections import deque
from weakref import WeakSet

WINDOW_LEAST, WINDOW_MOST = 32 * 1024, 4 * 2**20
AHEAD_SECONDS, LIMITED_AHEAD_SECONDS = 2.0, 0.5
RATE_SECONDS, RATE_LEAST_SECONDS = 2.0, 1.0
GAP_SECONDS = 4.0
BUCKET_SECONDS = 0.05  # arrivals within this count as one
RTT_SECONDS = 0.2  # as long as none is known
RTT_SAMPLES = 8  # the least of these: an echo waits behind the payload
UPDATE_SHARE, UPDATE_MOST = 4, 256 * 1024  # a message for a quarter of the window, or so much
UPDATE_SECONDS = 1.0
FLOWING_SECONDS = 2.0

TICK_SECONDS = 0.25
BURST_SECONDS = 0.3
PORTION_SECONDS = 0.05
PORTION_LEAST, PORTION_MOST = 4 * 1024, 64 * 1024
OUTSTANDING_SECONDS = 1.0  # and the round trip
HELD_SECONDS = 1.0  # a limit that held something back so long ago is what sets the pace


class Throttle:
    """At most `rate` bytes a second over all lanes that ask it; None is no limit."""

    def __init__(self, now: float, rate: int | None = None) -> None:
        self._rate: int | None = None
        self._tokens = 0.0
        self._at = now
        self._held = float("-inf")
        self._flows: WeakSet[LaneFlow] = WeakSet()
        self.set_rate(rate, now)

    @property
    def rate(self) -> int | None:
        """The limit that holds now."""
        return self._rate

    def set_rate(self, rate: int | None, now: float) -> None:
        """This limit from now on."""
        self._refill(now)
        self._rate = None if rate is None else max(1, rate)
        self._tokens = min(self._tokens, self._burst)

    def holds(self, now: float) -> bool:
        """Whether the limit, not the link, sets the pace."""
        return self._rate is not None and now - self._held < HELD_SECONDS

    @property
    def lanes(self) -> int:
        """How many share it."""
        return len(self._flows)

    def least_window(self, rtt: float) -> int:
        """What a lane may have outstanding however slow it is."""
        if self._rate is None:
            return WINDOW_LEAST
        share = 2 * self._rate * (rtt + OUTSTANDING_SECONDS) / max(1, self.lanes)
        return max(self._portion, min(WINDOW_LEAST, int(share)))

    def take(self, flow: LaneFlow, wanted: int, now: float) -> int:
        """How many of the bytes `wanted` a lane may be allowed now; they are taken."""
        self._flows.add(flow)
        if self._rate is None:
            return wanted
        self._refill(now)
        most = self._rate * (flow.rtt + OUTSTANDING_SECONDS)
        lacking = max(0, self._portion - flow.outstanding)
        free = int(min(wanted, self._tokens, max(lacking, most - self._under_way(now))))
        if free < wanted:
            self._held = now
        if free < min(wanted, max(lacking, PORTION_LEAST)):
            return 0
        self._tokens -= free
        return free

    @property
    def _burst(self) -> float:
        return (self._rate or 0) * BURST_SECONDS + self._portion

    @property
    def _portion(self) -> int:
        wished = (self._rate or 0) * PORTION_SECONDS
        return int(min(max(wished, PORTION_LEAST), PORTION_MOST))

    def _under_way(self, now: float) -> int:
        """What may be on its way over lanes that flow, but for a portion on each."""
        flows = [flow for flow in self._flows if flow.is_flowing(now)]
        return sum(max(0, flow.outstanding - self._portion) for flow in flows)

    def _refill(self, now: float) -> None:
        if self._rate is not None:
            self._tokens = min(self._burst, self._tokens + self._rate * (now - self._at))
        self._at = now


class LaneFlow:
    """One lane's credit. `now` is in seconds of the monotonic clock."""

    def __init__(self, now: float) -> None:
        self._received = 0
        self._granted = 0
        self._told = (now, 0)  # when a message was last due, and what had come by then
        self._heard = now
        self._rtts: deque[float] = deque(maxlen=RTT_SAMPLES)
        self._came: deque[tuple[float, int]] = deque()  # since when, bytes
        self._before = now  # when something had come before these

    @property
    def outstanding(self) -> int:
        """Bytes that were allowed and have not come."""
        return self._granted - self._received

    @property
    def rtt(self) -> float:
        """The round trip, in seconds."""
        return min(self._rtts, default=RTT_SECONDS)

    def arrived(self, size: int, now: float) -> bool:
        """So many bytes of pieces came; whether they were allowed."""
        if self._came and now - self._came[-1][0] < BUCKET_SECONDS:
            began, before = self._came.pop()
            self._came.append((began, before + size))
        else:
            self._came.append((now, size))
        self._received += size
        self._heard = now
        return self._received <= self._granted

    def round_trip(self, seconds: float) -> None:
        """A beat has come back after so long."""
        self._rtts.append(seconds)

    def rate(self, now: float) -> float:
        """Bytes of pieces a second of late."""
        while self._came and self._came[0][0] <= now - RATE_SECONDS:
            self._before = self._came.popleft()[0]
        if not self._came:
            return 0.0
        since = self._came[0][0]
        if since - self._before > GAP_SECONDS:
            since = self._before
        seconds = max(now - since, RATE_LEAST_SECONDS)
        return sum(size for _, size in self._came) / seconds

    def is_flowing(self, now: float) -> bool:
        """Whether something has come of late."""
        return now - self._heard < FLOWING_SECONDS

    def window(self, now: float, throttle: Throttle) -> int:
        """How many bytes there may be outstanding."""
        ahead = AHEAD_SECONDS if throttle.rate is None else LIMITED_AHEAD_SECONDS
        wished = self.rate(now) * (self.rtt + ahead)
        return int(min(max(wished, throttle.least_window(self.rtt)), WINDOW_MOST))

    def grant(self, now: float, throttle: Throttle) -> int | None:
        """The total of bytes of pieces that the far end may have sent on this lane from now on, as
        far as `throttle` lets it, or None when it is not time for a message. It never falls."""
        window = self.window(now, throttle)
        step = min(window // UPDATE_SHARE, UPDATE_MOST)
        wanted = self._received + window - self._granted
        taken = throttle.take(self, wanted, now) if wanted >= step else 0
        self._granted += taken
        when, before = self._told
        untold = self._received - before
        is_due = untold >= step or (untold and now - when >= UPDATE_SECONDS)
        if not (taken or is_due):
            return None
        self._told = (now, self._received)
        return self._granted
