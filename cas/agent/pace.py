"""How hard to compress: as hard as the link leaves time for.

A producer tells of each segment how long it worked on it, how long it then waited for room in the
outbox, and how much lies in the outbox that no lane has taken yet. While that never runs empty the
link is busy, and what it takes in that time is its rate; so one knows what it needs for a frame,
long before the outbox is full. When it does run empty, the link waits for the producer.

Rules, at the start of a frame, for what was seen since the last: one step *down* where the link was
idle for a good part of it, two where it always was (then the frame is ended early, too). One step
*up* where the next level would still be done in `FITS` of the time that the link needs. Between the
two lies room enough that a rate just between two levels does not make it go to and fro; and what a
level costs beside its neighbour is learnt when both have been used on what is being sent.

What does not compress goes in segments that the link takes in a few seconds: a segment can be
stored only when all of it has come, and a megabyte is a quarter of a minute on some links.

There is no clock and no thread in here.
"""

from __future__ import annotations

from dataclasses import dataclass

from cas.frame import SEGMENT_SIZE

# Those between take nearly as long as the next for a part of its gain, and 22 takes 640 MiB
# (docs/benchmarks.md, "Levels").
LEVELS = (3, 6, 9, 12, 17, 19)
COSTS = (1.0, 3.5, 5.0, 9.0, 65.0, 110.0)  # seconds of compressing beside those of the first
START_LEVEL = 12
FITS = 0.8
IDLE_SHARE = 0.25  # of the segments: the link waits for us
IDLE_ROW = 4  # segments in a row: it does so plainly
LEAST_SECONDS = 0.1  # of a busy link that tell its rate
PLAIN_LEAST, PLAIN_SECONDS = 256 * 1024, 2.0  # bytes: as many as the longest chunk has
WAITED = 0.25  # of the time that the work took: less may be the putting itself


@dataclass(frozen=True, slots=True)
class Lap:
    """One segment: `plain` and `stored` bytes; seconds spent reading and compressing it
    (`working`), `compressing` alone (none where it goes as it is), then `waiting` for room in the
    outbox; and the bytes `queued` there afterwards, itself included. `starved` is when there was
    nothing to read for some of the time: if the link was idle then, it was not for the level."""

    plain: int
    stored: int
    working: float
    compressing: float
    waiting: float
    queued: int
    starved: bool = False


@dataclass(slots=True)
class _Seen:
    """What laps come to."""

    laps: int = 0
    idle: int = 0
    taken: int = 0  # bytes, by a link that was busy
    busy: float = 0.0  # seconds of that
    stored: int = 0  # of what was compressed, as all that follows
    plain: int = 0
    working: float = 0.0
    compressing: float = 0.0


class Pace:
    """Chooses the level of one producer's frames. Not thread-safe."""

    def __init__(self, level: int = START_LEVEL) -> None:
        self._step = LEVELS.index(level)
        self._costs = list(COSTS)
        self._seen = _Seen()
        self._idle_row = 0
        self._queued = 0
        self._before: tuple[int, float] | None = None  # a step, and its seconds for a plain byte
        self._rate = 0.0  # bytes a second that the link took when it was last seen busy

    @property
    def level(self) -> int:
        """The level at present."""
        return LEVELS[self._step]

    @property
    def is_late(self) -> bool:
        """Whether the frame had better end here: the link waits, and could be fed faster."""
        return self._idle_row >= IDLE_ROW and self._step > 0

    @property
    def plain_size(self) -> int:
        """Where a segment that goes as it is had better end, in bytes: it can be stored only when
        all of it has come, so it is what the link takes in two seconds."""
        return min(max(PLAIN_LEAST, int(PLAIN_SECONDS * self._rate)), SEGMENT_SIZE)

    def lap(self, lap: Lap) -> None:
        """Take note of a segment that has been put into the outbox."""
        seen = self._seen
        taken = self._queued + lap.stored - lap.queued
        is_empty = lap.waiting <= WAITED * lap.working and lap.queued <= lap.stored
        is_idle = is_empty and not lap.starved
        self._queued = lap.queued
        self._idle_row = self._idle_row + 1 if is_idle else 0
        seen.laps += 1
        seen.idle += is_idle
        if not is_empty and not lap.starved:
            seen.taken += max(taken, 0)
            seen.busy += lap.working + lap.waiting
            if seen.busy >= LEAST_SECONDS:
                self._rate = seen.taken / seen.busy
        if lap.compressing:
            seen.plain += lap.plain
            seen.stored += lap.stored
            seen.working += lap.working
            seen.compressing += lap.compressing

    def next_level(self) -> int:
        """The level of the frame that begins now."""
        seen, self._seen = self._seen, _Seen()
        if seen.compressing:
            self._learn(seen.compressing / seen.plain)
        if seen.idle > IDLE_SHARE * seen.laps:
            self._step = max(self._step - (1 if seen.idle < seen.laps else 2), 0)
        elif self._step + 1 < len(LEVELS) and self._fits(seen, self._step + 1):
            self._step += 1
        self._idle_row = 0
        return self.level

    def _fits(self, seen: _Seen, step: int) -> bool:
        if not seen.compressing or seen.busy < LEAST_SECONDS:
            return False
        growth = self._costs[step] / self._costs[self._step]
        work = seen.working - seen.compressing + seen.compressing * growth
        return work * seen.taken <= FITS * seen.stored * seen.busy

    def _learn(self, cost: float) -> None:
        """What this step costs beside the one that was used before it."""
        if self._before is not None and self._before[0] != self._step:
            step, before = self._before
            measured = self._costs[step] * cost / before
            self._costs[self._step] = (self._costs[self._step] + measured) / 2
        self._before = (self._step, cost)
