"""When a lane is suspect, when all is silent, when to log in again, and when to give up.

TCP does not say that a connection is dead: one that a stall or a forgetful NAT has cut off waits
for minutes, and when the link is back the old connection wakes late, since the far end's
retransmission timer has doubled up to 120 s. A fresh one has data 3-6 s after the link is back
(measured after stalls of 20 to 150 s; old ones took up to 98 s). So silence must be noticed early,
nothing be closed on suspicion alone, and a new connection be tried beside the old.

What counts is bytes on a lane, never requests:

- A lane that has brought nothing for 5 s is pinged; from then, as after any request, an answer is
  due. A lane that owes nothing may be silent for ever.
- It is suspect after 15 s without one byte (the longest silence of healthy connections: 4 s at 5 %
  loss, 11 s at 10 % and 300 ms, 17 s with loss in bursts), or twice the longest silence that a lane
  has come back from in the last ten minutes, at most 60 s. Silences that an outage explains do not
  count there. Any byte ends the suspicion.
- Its work goes to others and a further lane takes its place. It is dropped when it is still silent
  60 s after a lane that was opened since has delivered.
- All lanes suspect, or none open: an outage. Then one login at a time, of 15 s at most (30 s where
  logins were slow, none has succeeded yet, and every fourth time, for a link that has got slower),
  1-2 s apart.
- A refused login (sshd's MaxStartups, its penalties, a limit of the host) is no outage: wait 1, 2,
  4, 8, 15 s, and one at a time until one succeeds. One that was not answered is no refusal. Never
  more than 4 are in progress: with the default MaxStartups of 10 no login of 24 was lost then.

Two clocks end it all, and no peer can stop them. *Given up*: for `give_up` seconds no byte came
and no login succeeded. *Stalled*: bytes do come, and nothing useful has for `give_up` seconds
outside of outages, or for twice that in all. Useful is what the engine says is: verified bytes, a
new page, growing counters of a scan; not a login, a greeting, or an echo.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

PING_SECONDS = 5.0
SUSPECT_SECONDS, SUSPECT_MOST_SECONDS = 15.0, 60.0
GAPS_SECONDS = 600.0  # for so long a silence that was survived is remembered
DROP_SECONDS = 60.0
PROBE_SECONDS, PROBE_SLOW_SECONDS = 15.0, 30.0
SLOW_LOGIN_SECONDS = 5.0  # a third of a probe
PROBE_PAUSE_SECONDS = 1.0  # and up to as much again
REFUSED_SECONDS = (1.0, 2.0, 4.0, 8.0, 15.0)
LOGINS_AT_ONCE = 4
GIVE_UP_SECONDS = 600.0

L = TypeVar("L", bound=Hashable)


@dataclass(slots=True)
class Watch:
    """One lane: when it was opened and last heard, since when it owes an answer, whether it ever
    brought a byte, and when a newer lane did while it was silent."""

    opened: float
    heard: float
    owes: float | None = None
    has_delivered: bool = False
    relieved: float | None = None

    def asked(self, now: float) -> None:
        """An answer is due from now on, if none was."""
        if self.owes is None:
            self.owes = now

    def heard_at(self, now: float) -> float:
        """Bytes came; for how long there had been none while an answer was due."""
        gap = self.silent(now)
        self.heard, self.owes, self.relieved = now, None, None
        self.has_delivered = True
        return gap

    def silent(self, now: float) -> float:
        """Seconds without a byte; 0 if no answer is due. What went before a late question does not
        count, but for the time in which it should have been asked."""
        return 0.0 if self.owes is None else now - max(self.heard, self.owes - PING_SECONDS)

    def shift(self, seconds: float) -> None:
        """See `Silence.paused`."""
        self.opened += seconds
        self.heard += seconds
        self.owes = None if self.owes is None else self.owes + seconds
        self.relieved = None if self.relieved is None else self.relieved + seconds


class Logins:
    """Connections being made: how many at once, and how long to wait after a failure."""

    def __init__(self) -> None:
        self._seconds: deque[float] = deque(maxlen=4)  # what the last ones took
        self._failures = self._refusals = 0  # since the last success
        self._not_before = float("-inf")

    def succeeded(self, seconds: float) -> None:
        """One is there, after so long."""
        self._seconds.append(seconds)
        self._failures = self._refusals = 0
        self._not_before = float("-inf")

    def failed(self, now: float, *, is_refused: bool, jitter: float) -> None:
        """One was refused, or nobody answered; `jitter` is random, in [0, 1]."""
        self._failures += 1
        pause = PROBE_PAUSE_SECONDS * (1 + jitter)
        if is_refused:
            step = min(self._refusals, len(REFUSED_SECONDS) - 1)
            self._refusals += 1
            pause = max(pause, REFUSED_SECONDS[step])
        self._not_before = max(self._not_before, now + pause)

    def allowed(self, now: float, in_progress: int, *, is_outage: bool) -> int:
        """How many more may be begun now."""
        at_once = 1 if is_outage or self._refusals else LOGINS_AT_ONCE
        return max(0, at_once - in_progress) if now >= self._not_before else 0

    def limit(self) -> float:
        """Seconds that an attempt in an outage may take."""
        is_slow = not self._seconds or max(self._seconds) >= SLOW_LOGIN_SECONDS
        return PROBE_SLOW_SECONDS if is_slow or self._failures % 4 == 3 else PROBE_SECONDS

    def shift(self, seconds: float) -> None:
        """See `Silence.paused`."""
        self._not_before += seconds


class Silence(Generic[L]):
    """Over all lanes to one source; a lane is whatever the caller tells them apart by. Every `now`
    is in seconds of the monotonic clock, and none is before the last."""

    def __init__(self, now: float, *, give_up: float = GIVE_UP_SECONDS) -> None:
        self._give_up = give_up
        self._lanes: dict[L, Watch] = {}
        self._logins = Logins()
        self._gaps: deque[tuple[float, float]] = deque()  # when each ended, seconds
        self._heard = self._useful = now
        self._outage: float | None = now  # since when, for `stalled`
        self._outages = 0.0  # seconds since something useful came, over by now
        self._last_outage = float("-inf")

    def opened(self, lane: L, now: float, *, seconds: float) -> None:
        """A login succeeded, after so many seconds; the lane owes its greeting."""
        self._lanes[lane] = Watch(now, now, now)
        self._logins.succeeded(seconds)
        self._note(now)
        self._heard = now

    def ended(self, lane: L, now: float) -> None:
        """The lane is no more, whoever ended it."""
        self._lanes.pop(lane, None)
        self._note(now)

    def asked(self, lane: L, now: float) -> None:
        """A beat or a request is being sent: an answer is due. To be told before it is sent, as
        sending may take for ever."""
        if lane in self._lanes:
            self._lanes[lane].asked(now)

    def came(self, lane: L, now: float) -> None:
        """Bytes came on a lane, whatever they say."""
        watch = self._lanes.get(lane)
        if watch is None:
            return
        self._note(now)
        if not watch.has_delivered:
            self._relieve(watch, now)
        began, gap = watch.heard, watch.heard_at(now)
        if gap > SUSPECT_SECONDS / 2 and began > self._last_outage:
            self._gaps.append((now, gap))
        self._heard = now
        self._note(now)

    def progress(self, now: float) -> None:
        """Something useful came; or nothing is expected of the source."""
        self._useful = now
        self._outages = 0.0
        if self._outage is not None:
            self._outage = now

    def login_failed(self, now: float, *, is_refused: bool, jitter: float) -> None:
        """An attempt has failed; `is_refused` if the host answered at all, `jitter` in [0, 1]."""
        self._logins.failed(now, is_refused=is_refused, jitter=jitter)

    def paused(self, seconds: float) -> None:
        """For so long this process did not look (stopped, busy, suspended): no silence of others.
        To be told before anything else is asked."""
        for watch in self._lanes.values():
            watch.shift(seconds)
        self._heard += seconds
        self._useful += seconds
        self._last_outage += seconds
        self._outage = None if self._outage is None else self._outage + seconds
        self._logins.shift(seconds)

    def pings_due(self, now: float) -> list[L]:
        """Lanes to send a beat on."""
        return [
            lane
            for lane, watch in self._lanes.items()
            if watch.owes is None and now - watch.heard >= PING_SECONDS
        ]

    def suspects(self, now: float) -> list[L]:
        """Lanes that are suspect: to be given no work, and to be replaced."""
        limit = self.limit(now)
        return [lane for lane, watch in self._lanes.items() if watch.silent(now) >= limit]

    def healthy(self, now: float) -> list[L]:
        """The other lanes."""
        suspects = set(self.suspects(now))
        return [lane for lane in self._lanes if lane not in suspects]

    def to_drop(self, now: float) -> list[L]:
        """Suspects that there is no more reason to wait for."""
        return [
            lane
            for lane in self.suspects(now)
            if (relieved := self._lanes[lane].relieved) is not None
            and now - relieved >= DROP_SECONDS
        ]

    def limit(self, now: float) -> float:
        """After how many seconds of silence a lane is suspect."""
        while self._gaps and self._gaps[0][0] <= now - GAPS_SECONDS:
            self._gaps.popleft()
        worst = max((gap for _, gap in self._gaps), default=0.0)
        return min(max(SUSPECT_SECONDS, 2 * worst), SUSPECT_MOST_SECONDS)

    def heard(self, lane: L) -> float:
        """When a lane was last heard of."""
        return self._lanes[lane].heard

    def is_outage(self, now: float) -> bool:
        """Whether every lane is suspect, or none is open."""
        self._note(now)
        return self._outage is not None

    def logins_allowed(self, now: float, in_progress: int) -> int:
        """How many logins may be begun now, when so many are in progress."""
        return self._logins.allowed(now, in_progress, is_outage=self.is_outage(now))

    def probe_due(self, now: float, in_progress: int = 0) -> bool:
        """Whether there is an outage, and a login is to be tried now."""
        return self.is_outage(now) and self.logins_allowed(now, in_progress) > 0

    @property
    def login_limit(self) -> float:
        """Seconds that a login in an outage may take."""
        return self._logins.limit()

    def given_up(self, now: float) -> bool:
        """Whether nothing has come for too long."""
        return now - self._heard >= self._give_up

    def stalled(self, now: float) -> bool:
        """Whether bytes come and nothing useful has for too long."""
        since = now - self._useful
        outages = self._outages
        if self.is_outage(now) and self._outage is not None:
            outages += now - self._outage
        return since - outages >= self._give_up or since >= 2 * self._give_up

    def _relieve(self, by: Watch, now: float) -> None:
        """A new lane has brought its first byte: those silent since before it are in vain."""
        for watch in self._lanes.values():
            if watch.heard < by.opened and watch.relieved is None and watch is not by:
                watch.relieved = now

    def _note(self, now: float) -> None:
        """Keep account of outages."""
        is_outage = len(self.suspects(now)) == len(self._lanes)
        if is_outage:
            self._last_outage = now
            self._outage = now if self._outage is None else self._outage
        elif self._outage is not None:
            self._outages += now - self._outage
            self._outage = None
