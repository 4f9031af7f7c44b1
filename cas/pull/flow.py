"""How many payload bytes the far end may send on each lane: credit, and a limit over all of it.

What is under way on a lane waits for that lane, however slow it turns out to be, while others could
have brought it. So a lane gets credit for what it brings in its round trip and 2 s more, which
leaves the far end time to find the next segment; at least 128 KiB (under loss, that much already
gives the rate of an endless stream: measured at 1 % and 5 %, 200 ms), at most 4 MiB (20 MB/s at
200 ms, on each lane). Credit is told as a total since the lane was opened, so that it can be
repeated and never be taken back; a new total is worth a message when a quarter of the window more
has become free, or 512 KiB: a quarter of 4 MiB would leave a fast long lane waiting.

The rate is that of the last 2 s, and of one second while there were less: what comes in the first
round trip then triples the window with each further one, and 4 MiB are reached after four.

A limit (`Throttle`) is kept by holding credit back: nothing is sent that was not allowed, and TCP
is not made to stall. It is a token bucket over all lanes, of a tenth of a second, in portions of a
twentieth, so that the average over each second keeps to it. What is outstanding on lanes that flow
is kept below the limit's round trip and a second: when it is lowered, what was allowed before is
soon over. Lanes that have brought nothing for 2 s do not count there: they would keep the others
from what is theirs. So that there is some for all, a limited lane has half a second instead of 2 s
in its window, and at least twice its share of all there may be.

While there is a limit, credit becomes free by time alone: `grant` must be asked of every lane each
`TICK_SECONDS`, not only when something has come. The far end has to cut pieces to the credit.
"""

from __future__ import annotations

from collections import deque

WINDOW_LEAST, WINDOW_MOST = 128 * 1024, 4 * 2**20
AHEAD_SECONDS, LIMITED_AHEAD_SECONDS = 2.0, 0.5
RATE_SECONDS, RATE_LEAST_SECONDS = 2.0, 1.0
BUCKET_SECONDS = 0.05  # arrivals within this count as one
RTT_SECONDS = 0.2  # as long as none is known
RTT_SAMPLES = 8  # the least of these: an echo waits behind the payload
UPDATE_SHARE, UPDATE_MOST = 4, 512 * 1024  # a message for a quarter of the window, or so much
FLOWING_SECONDS = 2.0

TICK_SECONDS = 0.05
BURST_SECONDS = 0.1
PORTION_SECONDS = 0.05
PORTION_LEAST, PORTION_MOST = 512, 16 * 1024
OUTSTANDING_SECONDS = 1.0  # and the round trip


class Throttle:
    """At most `rate` bytes a second over all lanes that share it; None is no limit."""

    def __init__(self, now: float, rate: int | None = None) -> None:
        self._rate: int | None = None
        self._tokens = 0.0
        self._at = now
        self._flows: list[LaneFlow] = []
        self.set_rate(rate, now)

    @property
    def rate(self) -> int | None:
        """The limit that holds now."""
        return self._rate

    def set_rate(self, rate: int | None, now: float) -> None:
        """Another limit from now on."""
        self._refill(now)
        self._rate = None if rate is None else max(1, rate)
        self._tokens = min(self._tokens, self._burst)

    def join(self, flow: LaneFlow) -> None:
        """A further lane shares the limit."""
        self._flows.append(flow)

    def leave(self, flow: LaneFlow) -> None:
        """One less; once for each `join`."""
        self._flows.remove(flow)

    def least_window(self, rtt: float) -> int:
        """What a lane may have outstanding however slow it is."""
        if self._rate is None:
            return WINDOW_LEAST
        share = 2 * self._outstanding_most(rtt) / max(1, len(self._flows))
        return max(int(self._portion), min(WINDOW_LEAST, int(share)))

    def take(self, wanted: int, rtt: float, now: float) -> int:
        """How many of the bytes `wanted` may be allowed now; they are taken."""
        if self._rate is None:
            return wanted
        self._refill(now)
        outstanding = sum(flow.outstanding for flow in self._flows if flow.is_flowing(now))
        free = int(min(wanted, self._tokens, self._outstanding_most(rtt) - outstanding))
        if free < min(wanted, self._portion):
            return 0
        self._tokens -= free
        return free

    @property
    def _portion(self) -> float:
        return min(max((self._rate or 0) * PORTION_SECONDS, PORTION_LEAST), PORTION_MOST)

    @property
    def _burst(self) -> float:
        return max((self._rate or 0) * BURST_SECONDS, self._portion)

    def _outstanding_most(self, rtt: float) -> float:
        return max((self._rate or 0) * (rtt + OUTSTANDING_SECONDS), 2 * self._portion)

    def _refill(self, now: float) -> None:
        if self._rate is not None:
            self._tokens = min(self._burst, self._tokens + self._rate * (now - self._at))
        self._at = now


class LaneFlow:
    """One lane's credit. `now` is in seconds of the monotonic clock."""

    def __init__(self, now: float, throttle: Throttle | None = None) -> None:
        self._throttle = throttle if throttle is not None else Throttle(now)
        self._throttle.join(self)
        self._received = 0
        self._granted = 0
        self._heard = now
        self._rtts: deque[float] = deque(maxlen=RTT_SAMPLES)
        self._came: deque[tuple[float, int]] = deque()  # since when, bytes

    @property
    def outstanding(self) -> int:
        """Bytes that were allowed and have not come."""
        return self._granted - self._received

    def close(self) -> None:
        """The lane is no more; to be called once."""
        self._throttle.leave(self)

    def arrived(self, size: int, now: float) -> bool:
        """So many payload bytes came; whether they were allowed."""
        if self._came and now - self._came[-1][0] < BUCKET_SECONDS:
            began, before = self._came.pop()
            self._came.append((began, before + size))
        else:
            self._came.append((now, size))
        self._received += size
        self._heard = now
        return self._received <= self._granted

    def echoed(self, seconds: float) -> None:
        """A beat has come back after so long."""
        self._rtts.append(seconds)

    def rate(self, now: float) -> float:
        """Payload bytes a second of late."""
        while self._came and self._came[0][0] <= now - RATE_SECONDS:
            self._came.popleft()
        if not self._came:
            return 0.0
        seconds = max(now - self._came[0][0], RATE_LEAST_SECONDS)
        return sum(size for _, size in self._came) / seconds

    def is_flowing(self, now: float) -> bool:
        """Whether something has come of late."""
        return now - self._heard < FLOWING_SECONDS

    def window(self, now: float) -> int:
        """How many bytes there may be outstanding."""
        ahead = AHEAD_SECONDS if self._throttle.rate is None else LIMITED_AHEAD_SECONDS
        wished = self.rate(now) * (self._rtt + ahead)
        least = self._throttle.least_window(self._rtt)
        return int(min(max(wished, least), WINDOW_MOST))

    def grant(self, now: float) -> int | None:
        """The total of payload bytes that the far end may have sent on this lane from now on, or
        None as long as it is not worth a message. It never falls."""
        window = self.window(now)
        wanted = self._received + window - self._granted
        if wanted < min(window // UPDATE_SHARE, UPDATE_MOST):
            return None
        taken = self._throttle.take(wanted, self._rtt, now)
        self._granted += taken
        return self._granted if taken else None

    @property
    def _rtt(self) -> float:
        return min(self._rtts, default=RTT_SECONDS)
