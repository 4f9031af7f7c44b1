"""How many payload bytes the far end may send on each lane: credit, and a limit over all of it.

What is under way on a lane waits for that lane, however slow it turns out to be, while others could
have brought it; and a segment, and all that follows it in its frame, waits for its last piece. So a
lane gets credit for what it brings in its round trip and 2 s more, which leaves the far end time to
find the next segment: 32 KiB at first, then at least 24 KiB (64 KiB on each of 24 lanes are 20 s of
a link of 80 kB/s), at most 4 MiB (20 MB/s at 200 ms, on each lane). Credit is told as a total since
the lane was opened, so that it can be repeated and never be taken back. The same message says what
has arrived, for the far end keeps it until then: so there is one when a quarter of the window has
come or is free, within 32 and 256 KiB, or half the window, and within 2 s after anything came. Each
is answered by an acknowledgement of TCP's, and where a queue is short, those drop payload.

The rate is that of the last 2 s, and of one second while there were less: what comes in the first
round trip then triples the window with each further one, and 4 MiB are reached after four or five.
But it is at least that of the last 8 s, so that a lane keeps its window over a pause, and at most
one and a half times as much: when TCP has filled a gap, all that waited behind it is there at once,
and a window for that rate would be minutes of work that is not taken back. The round trip counts as
half a second at most: an echo waits behind the payload, by 4 to 8 s where the link is full.

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

WINDOW_START, WINDOW_LEAST, WINDOW_MOST = 32 * 1024, 24 * 1024, 4 * 2**20
AHEAD_SECONDS, LIMITED_AHEAD_SECONDS = 2.0, 0.5
RATE_SECONDS, RATE_LEAST_SECONDS = 2.0, 1.0
USUAL_SECONDS, USUAL_BUCKET_SECONDS = 8.0, 0.5
USUAL_TIMES = 1.5  # more than usual is not trusted to last
BUCKET_SECONDS = 0.05  # arrivals within this count as one
RTT_SECONDS, RTT_MOST_SECONDS = 0.2, 0.5  # as long as none is known; to be believed
RTT_SAMPLES = 8  # the least of these: an echo waits behind the payload
UPDATE_SHARE = 4  # a message for a quarter of the window,
UPDATE_LEAST, UPDATE_MOST = 32 * 1024, 256 * 1024  # within these
UPDATE_SECONDS = 2.0
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

    def least_window(self, rtt: float, least: int) -> int:
        """What a lane may have outstanding however slow it is: `least` without a limit."""
        if self._rate is None:
            return least
        share = 2 * self._rate * (rtt + OUTSTANDING_SECONDS) / max(1, self.lanes)
        return max(self._portion, min(least, int(share)))

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


class _Recent:
    """What came within the last `seconds`, counted in buckets."""

    def __init__(self, seconds: float, bucket: float) -> None:
        self._seconds, self._bucket = seconds, bucket
        self._came: deque[tuple[float, int]] = deque()  # since when, bytes
        self._size = 0

    def add(self, size: int, now: float) -> None:
        """So many bytes came."""
        self._size += size
        if self._came and now - self._came[-1][0] < self._bucket:
            began, before = self._came.pop()
            self._came.append((began, before + size))
        else:
            self._came.append((now, size))

    def rate(self, now: float, since: float | None = None) -> float:
        """Bytes a second; of the time since `since`, or since the first of it came, at least a
        second, if that is less."""
        while self._came and self._came[0][0] <= now - self._seconds:
            self._size -= self._came.popleft()[1]
        if since is None:
            since = self._came[0][0] if self._came else now
        return self._size / min(self._seconds, max(now - since, RATE_LEAST_SECONDS))

    def __len__(self) -> int:
        return len(self._came)


class LaneFlow:
    """One lane's credit. `now` is in seconds of the monotonic clock."""

    def __init__(self, now: float) -> None:
        self._opened = now
        self._received = 0
        self._granted = 0
        self._told = (now, 0)  # when a message was last due, and what had come by then
        self.heard = now  # when something came
        self._rtts: deque[float] = deque(maxlen=RTT_SAMPLES)
        self._lately = _Recent(RATE_SECONDS, BUCKET_SECONDS)
        self._usually = _Recent(USUAL_SECONDS, USUAL_BUCKET_SECONDS)

    @property
    def outstanding(self) -> int:
        """Bytes that were allowed and have not come."""
        return self._granted - self._received

    @property
    def rtt(self) -> float:
        """The round trip, in seconds, as far as it is not a wait behind the payload."""
        return min(*self._rtts, RTT_MOST_SECONDS) if self._rtts else RTT_SECONDS

    def arrived(self, size: int, now: float) -> bool:
        """So many bytes of pieces came; whether they were allowed."""
        self._lately.add(size, now)
        self._usually.add(size, now)
        self._received += size
        self.heard = now
        return self._received <= self._granted

    def round_trip(self, seconds: float) -> None:
        """A beat has come back after so long."""
        self._rtts.append(seconds)

    def rate(self, now: float) -> float:
        """Bytes of pieces a second of late."""
        return self._lately.rate(now)

    def is_flowing(self, now: float) -> bool:
        """Whether something has come of late."""
        return now - self.heard < FLOWING_SECONDS

    def window(self, now: float, throttle: Throttle) -> int:
        """How many bytes there may be outstanding."""
        ahead = AHEAD_SECONDS if throttle.rate is None else LIMITED_AHEAD_SECONDS
        usual = self._usually.rate(now, self._opened)
        rate = min(max(self.rate(now), usual), USUAL_TIMES * usual)
        least = throttle.least_window(self.rtt, WINDOW_LEAST if self._received else WINDOW_START)
        return int(min(max(rate * (self.rtt + ahead), least), WINDOW_MOST))

    def grant(self, now: float, throttle: Throttle) -> int | None:
        """The total of bytes of pieces that the far end may have sent on this lane from now on, as
        far as `throttle` lets it, or None when it is not time for a message. It never falls."""
        window = self.window(now, throttle)
        step = min(max(window // UPDATE_SHARE, min(window // 2, UPDATE_LEAST)), UPDATE_MOST)
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
