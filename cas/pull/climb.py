"""How many lanes to a source: a climb in steps, each kept only if it brings enough more.

Over a lossy link TCP gives each lane a small rate of its own, so goodput grows with their number.
Over a link with a true limit more lanes bring nothing, and far too many do harm: their logins alone
take it. Which of the two it is shows only by trying, and one lane's rate is so noisy that a short
try says nothing. So:

- The levels are 12 and 24 lanes: what doubling promises stands out of the noise.
- A level is measured when its lanes are up and have had 2 s: for 10 s, longer while the total has
  grown fewer than 8 times (what is verified grows in lumps), at most 30 s.
- From n0 to n1 lanes goodput must grow by 0.3 of what n1 / n0 promises. If it does not, the level
  is measured a second time, and the mean of both decides; 0.7 of it are enough after 4 s. Refused
  with less than 15 % more, the climb goes back; with more, the level is held for a while.
- A level is held for 3 measurements, twice as many after each refusal, at most for 24. The next
  try is compared with the mean of the last three.
- Fewer lanes are not tried for their own sake: a lane too many costs little, one too few its whole
  share. But a level that brings no more than a lower one did when it was held got there by luck, or
  the link has got worse: then the lower one is measured, and kept if it brings 0.95 of the same.
  Else that has cost some 12 s at half the goodput, and what was known of lower levels is forgotten.
- When goodput rises by half, twice in a row, the link is another one too: climb, without waiting.
- A run begins at the level that a former one found, and looks once whether the one below does.
- Lanes that bring 4 MB/s each are not limited by loss: no more of them are tried.

Time in which the link did not set the pace says nothing: a measurement that meets some is begun
anew. So it is with lanes missing, but for one in eight, one in four after 20 s: on a bad link some
lane is always being replaced. A level whose lanes do not come up in 60 s is refused: the host may
not let in so many.

The constants come from a model of measured links, `tests/pull/test_lanes_model.py`; shares of the
goodput of the best fixed number of lanes there, 40 seeds, means of ten minutes (and the worst), and
of the first 170 s: 5 % loss 0.97 (0.94), 0.89; 1 %, 400 kB/s for all 0.99 (0.99), 0.98; 80 kB/s
policed 0.94 (0.94), 0.89; 10 % with the whole link swinging by 30 % 0.95 (0.87), 0.83. With levels
8 and 24 the last was at 0.79 after 170 s, with 8, 12, 24 at 0.73, and with 6, 8, 12, 16, 24 at 0.85
(0.26) after ten minutes: a step of a third drowns.
"""

from __future__ import annotations

import math
from collections import deque
from statistics import fmean

LEVELS = (12, 24)
SETTLE_SECONDS = 2.0
EPOCH_SECONDS = 10.0
EPOCH_LEAST_SECONDS = 4.0  # with PLENTY of what more lanes promise
PLENTY = 0.7
EPOCH_STEPS = 8  # growths of the total in one measurement
EPOCH_MOST_SECONDS = 30.0
SHARE = 0.3  # of the growth that more lanes promise
BETTER = 1.15  # a refused step that still brought this much is not taken back
HOLDS, HOLDS_MOST = 3, 24  # measurements
RISEN, TWICE = 1.5, 2  # of what a level had, in so many measurements in a row
SAME = 0.95  # of the goodput that fewer lanes must bring to be enough
UP_SECONDS = 60.0
ENOUGH_RATE = 4e6  # bytes a second of one lane
SPARE = 8  # one lane in so many may be missing,
SPARE_SECONDS = 20.0  # and twice as many after so long


class Climb:
    """The number of lanes to one source. `now` is in seconds of the monotonic clock.

    `start` lanes at first, never more than `most`; always `fixed` lanes, if given; `remembered` is
    what `best` was in a former run.
    """

    def __init__(
        self,
        now: float,
        *,
        start: int = LEVELS[0],
        most: int = LEVELS[-1],
        fixed: int | None = None,
        remembered: int | None = None,
    ) -> None:
        most = max(1, most)
        start = min(max(1, start), most)
        self._levels = sorted({level for level in (*LEVELS, start, most) if start <= level <= most})
        known = [at for at, level in enumerate(self._levels) if level <= (remembered or 0)]
        self._is_fixed = fixed is not None
        self._at = known[-1] if known else 0
        self._is_hearsay = self._at > 0  # that the level is the right one
        self._wanted = self._levels[self._at] if fixed is None else fixed
        self._best: int | None = None
        self._measure = _Measure(now)
        self._from: int | None = None  # while a level is tried: the one that was held
        self._tried: list[float] = []  # what this try has measured
        self._rates: deque[float] = deque(maxlen=HOLDS)  # the last of the level held
        self._base: float | None = None  # what the level held had when that was last decided
        self._known: dict[int, float] = {}  # by level, when it was last left for another
        self._left = 1  # measurements until the next try
        self._holds = HOLDS
        self._rises = 0  # in a row

    @property
    def wanted(self) -> int:
        """How many lanes there should be now."""
        return self._wanted

    @property
    def best(self) -> int | None:
        """What to remember for the next run; None as long as nothing was learnt."""
        return self._best

    def observe(self, now: float, *, verified: int, open_lanes: int, is_hungry: bool) -> None:
        """Take in, about once a second, how far we are: payload bytes `verified` so far, lanes that
        are up, and whether the link alone has set the pace since the last call."""
        if self._is_fixed:
            return
        if not is_hungry:
            self._measure.disturb(now)
        elif open_lanes < self._wanted - self._wanted // self._spare(now):
            self._measure.miss(now)
            if self._measure.is_late(now):
                self._refuse(now)
        elif (rate := self._measure.take(now, verified, self._plenty)) is not None:
            self._measure = _Measure(now, settled=True)
            self._judge(now, rate)

    def _spare(self, now: float) -> int:
        return SPARE if self._measure.waited(now) < SPARE_SECONDS else SPARE // 2

    @property
    def _plenty(self) -> float:
        """The goodput at which a try upward need not be measured to its end."""
        if self._from is None or self._from > self._at:
            return math.inf
        growth = self._levels[self._at] / self._levels[self._from] - 1
        return fmean(self._rates) * (1 + PLENTY * growth)

    def _judge(self, now: float, rate: float) -> None:
        if self._from is None:
            self._hold(now, rate)
            return
        self._tried.append(rate)
        mean, old = fmean(self._tried), fmean(self._rates)
        growth = self._levels[self._at] / self._levels[self._from] - 1
        if growth < 0:
            now_there = min(old, self._rates[-1])  # it may just have become a worse link
            self._keep() if mean >= now_there * SAME else self._refuse(now)
        elif mean >= old * (1 + SHARE * growth):
            self._keep()
            self._holds = HOLDS
            self._climb(now)
        elif len(self._tried) == 2:
            self._keep() if mean >= old * BETTER else self._refuse(now)

    def _hold(self, now: float, rate: float) -> None:
        self._rates.append(rate)
        self._left -= 1
        base = self._base or rate
        self._rises = self._rises + 1 if rate > base * RISEN else 0
        if self._rises == TWICE:
            self._begin_anew(rate)
            self._climb(now)
        elif self._left <= 0:
            doubted = self._doubted()
            self._climb(now) if doubted is None else self._try(now, doubted)

    def _doubted(self) -> int | None:
        """The next lower level that brought as much when it was held as the one held does now."""
        if self._is_hearsay:
            self._is_hearsay = False
            return self._at - 1
        mean = fmean(self._rates)
        lower = reversed(range(self._at if len(self._rates) == HOLDS else 0))
        return next((level for level in lower if self._known.get(level, 0.0) >= mean), None)

    def _climb(self, now: float) -> None:
        """Try the next level, if there is one and a lane has not enough already."""
        if self._at + 1 == len(self._levels) or self._rates[-1] >= ENOUGH_RATE * self._wanted:
            self._settle()
        else:
            self._try(now, self._at + 1)

    def _try(self, now: float, level: int) -> None:
        self._known[self._at] = fmean(self._rates)
        self._from, self._at = self._at, level
        self._tried = []
        self._want(now)

    def _keep(self) -> None:
        """The level tried is the one held from now on."""
        self._from = None
        self._rates.clear()
        self._rates.append(fmean(self._tried))
        self._settle()

    def _refuse(self, now: float) -> None:
        """Back to where the try began, or one down when it was none."""
        held = max(0, self._at - 1) if self._from is None else self._from
        self._is_hearsay = False
        is_upward = held < self._at
        if not is_upward:
            self._known.clear()  # the link was a better one then
        self._at, self._from = held, None
        self._want(now)
        if is_upward:
            self._holds = min(HOLDS_MOST, self._holds * 2)
        self._settle()

    def _settle(self) -> None:
        self._best = self._wanted
        self._left = self._holds
        self._rises = 0
        self._base = fmean(self._rates) if self._rates else None

    def _begin_anew(self, rate: float) -> None:
        """The link is another one: nothing measured before the last rate counts."""
        self._rates.clear()
        self._rates.append(rate)
        self._known.clear()
        self._holds = HOLDS
        self._settle()

    def _want(self, now: float) -> None:
        self._wanted = self._levels[self._at]
        self._measure = _Measure(now)


class _Measure:
    """One measurement of one level: from a growth of the total to a growth of it, since a total
    that grows in lumps is known only then."""

    def __init__(self, now: float, *, settled: bool = False) -> None:
        self._waits = now  # since when lanes have been missing
        self._settled = now if settled else math.inf
        self._came_up = now
        self._first: tuple[float, int] | None = None
        self._last = (now, 0)
        self._steps = 0

    def waited(self, now: float) -> float:
        """For how long lanes have been missing, or did before they were measured."""
        return self._came_up - self._waits if self._settled < math.inf else now - self._waits

    def is_late(self, now: float) -> bool:
        """Whether lanes have been missing for too long."""
        return now - self._waits >= UP_SECONDS

    def disturb(self, now: float) -> None:
        """What was measured does not count."""
        self._waits = now
        self._settled = math.inf
        self._first = None

    def miss(self, now: float) -> None:
        """Lanes are missing: so too, but the waiting began earlier."""
        self.disturb(now if self._settled < math.inf else self._waits)

    def take(self, now: float, total: int, plenty: float) -> float | None:
        """Bytes a second when the measurement is done, None until then; `plenty` of them end it
        early."""
        if math.isinf(self._settled):
            self._settled = now + SETTLE_SECONDS
            self._came_up = now
        if now < self._settled:
            return None
        if self._first is None:
            self._first = self._last = (now, total)
            self._steps = -1  # the first growth only begins it
        elif total > self._last[1]:
            self._last = (now, total)
            self._steps += 1
            if not self._steps:
                self._first = self._last
        return self._rate(now, plenty)

    def _rate(self, now: float, plenty: float) -> float | None:
        began, before = self._first or (now, 0)
        ended, after = self._last
        rate = (after - before) / (ended - began) if ended > began else 0.0
        least = EPOCH_LEAST_SECONDS if rate >= plenty else EPOCH_SECONDS
        is_done = now - began >= least and self._steps >= EPOCH_STEPS
        return rate if is_done or now - began >= EPOCH_MOST_SECONDS else None
