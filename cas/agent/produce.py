"""From wants to segments: reads wanted chunks again, in source order, and compresses them.

A producer fills one frame at a time; several may work side by side, each on jobs of its own.
Chunks that do not compress are gathered in segments of their own, so two segments grow side by
side; their runs say which chunks they hold, so the order between them does not matter.

At level 0 the level is the link's to say (`cas.agent.pace`).
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from cas.agent.pace import Lap, Pace
from cas.agent.read import Found
from cas.agent.read import Missed as Lost
from cas.frame import FAST_LEVEL, SEGMENT_SIZE, Codec, FrameEncoder, Sampler
from cas.messages import Missed
from cas.outbox import Outbox
from cas.segment import SegmentHead, encode_segment

MISSES_AT_ONCE = 1000
MISS_SIZE = 32  # bytes of one on the wire, about
SAMPLE_EVERY = 256 * 1024  # bytes, as long as they compress: what does not costs little there
# How many bytes may be unacknowledged where an encoder takes memory itself: up to the level some
# 10, 70 and 110 MiB. The higher the level, the less it brings in the time that an answer takes.
BUDGETS = ((FAST_LEVEL, None), (12, 16 * 2**20), (22, 8 * 2**20))
JOB_CHUNKS = 1024  # of one job: small enough to be shared out, large enough to fill frames


@dataclass(frozen=True, slots=True)
class Job:
    """Wanted chunks of one page: `indexes` into its chunk space, ascending."""

    scan: int
    page: int
    indexes: list[int]


class Jobs:
    """The wants that wait, first come first served; thread-safe."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._jobs: deque[Job] = deque()
        self._closed = False

    def put(self, job: Job) -> None:
        """Add a want, in parts that several producers can share."""
        with self._changed:
            for at in range(0, len(job.indexes), JOB_CHUNKS):
                self._jobs.append(replace(job, indexes=job.indexes[at : at + JOB_CHUNKS]))
            self._changed.notify_all()

    def take(self, *, wait: bool) -> Job | None:
        """The next job; None when there is none (without `wait`) or all is over."""
        with self._changed:
            while wait and not self._jobs and not self._closed:
                self._changed.wait()
            return self._jobs.popleft() if self._jobs and not self._closed else None

    def drop(self, scan: int) -> None:
        """Forget the wants of a scan."""
        with self._changed:
            self._jobs = deque(job for job in self._jobs if job.scan != scan)

    def close(self) -> None:
        """Let nobody wait any more."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()


@dataclass(slots=True)
class _Growing:
    """A segment that is being gathered."""

    chunks: list[bytes | memoryview] = field(default_factory=list)
    size: int = 0
    runs: list[tuple[int, int, int, int]] = field(default_factory=list)

    def add(self, job: Job, index: int, data: bytes | memoryview) -> None:
        self.chunks.append(data)
        self.size += len(data)
        if self.runs:
            scan, page, first, count = self.runs[-1]
            if (scan, page, first + count) == (job.scan, job.page, index):
                self.runs[-1] = (scan, page, first, count + 1)
                return
        self.runs.append((job.scan, job.page, index, 1))


class FrameNumbers:
    """Gives every frame of an agent its own number; thread-safe."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._next = 0

    def __call__(self) -> int:
        with self._guard:
            self._next += 1
            return self._next


class Producer:
    """Turns jobs into segments in the outbox. `read` gives the chunks of a job; `level` is zstd's,
    or 0 for what the link leaves time for; `clock` counts seconds."""

    def __init__(
        self,
        jobs: Jobs,
        outbox: Outbox,
        read: Callable[[Job], Iterator[Found | Lost]],
        number: FrameNumbers,
        level: int,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._jobs = jobs
        self._outbox = outbox
        self._read = read
        self._number = number
        self.level = level
        self._clock = clock
        self._pace = Pace()
        self._since = clock()  # the last segment was put then, or there was work again
        self._starved = False
        self._sampler = Sampler()
        self._unsampled = 0  # bytes that may still be taken to compress
        self._growing = {Codec.ZSTD: _Growing(), Codec.PLAIN: _Growing()}
        self._encoder: FrameEncoder | None = None
        self._spent: FrameEncoder | None = None
        self._frame = 0
        self._segments = 0
        self._frame_size = 0

    def run(self) -> None:
        """Work until the jobs are closed; for a thread of its own."""
        while True:
            job = self._jobs.take(wait=False)
            if job is None:
                # Nothing else to do: what has been gathered must not wait for more.
                self._flush()
                job = self._jobs.take(wait=True)
                self._since, self._starved = self._clock(), True
            if job is None:
                return
            self._serve(job)

    def _serve(self, job: Job) -> None:
        misses: list[tuple[int, str]] = []
        for result in self._read(job):
            if isinstance(result, Lost):
                misses.append((result.index, result.reason[:200]))
                continue
            codec = self._codec(result.data)
            growing = self._growing[codec]
            growing.add(job, result.index, result.data)
            if growing.size >= self._segment_size(codec):
                self._emit(codec)
        for at in range(0, len(misses), MISSES_AT_ONCE):
            some = tuple(misses[at : at + MISSES_AT_ONCE])
            self._outbox.put_message(Missed(job.scan, job.page, some), MISS_SIZE * len(some))

    def _segment_size(self, codec: Codec) -> int:
        is_given = bool(self.level) or codec is Codec.ZSTD
        return SEGMENT_SIZE if is_given else self._pace.plain_size

    def _codec(self, data: bytes | memoryview) -> Codec:
        self._unsampled -= len(data)
        if self._unsampled < 0:
            if not self._sampler.is_compressible(data):
                return Codec.PLAIN
            self._unsampled = SAMPLE_EVERY
        return Codec.ZSTD

    def _flush(self) -> None:
        for codec in Codec:
            if self._growing[codec].chunks:
                self._emit(codec)

    def _emit(self, codec: Codec) -> None:
        growing, self._growing[codec] = self._growing[codec], _Growing()
        encoder = self._encoder or self._begin_frame()
        self._frame_size += growing.size
        is_full = self._frame_size + 2 * SEGMENT_SIZE > encoder.limit
        last = is_full or (not self.level and self._pace.is_late)
        began = self._clock()
        if codec is Codec.ZSTD:
            payload = encoder.segment(growing.chunks, last=last)
        else:
            payload = b"".join(growing.chunks)
        compressing = self._clock() - began if codec is Codec.ZSTD else 0.0
        head = SegmentHead(codec, growing.size, last, tuple(growing.runs))
        most = next(budget for level, budget in BUDGETS if encoder.level <= level)
        self._put(encode_segment(head, payload), growing.size, compressing, most)
        if last:
            self._encoder, self._spent = None, encoder

    def _begin_frame(self) -> FrameEncoder:
        level = self.level or self._pace.next_level()
        spent, self._spent = self._spent, None
        if spent is not None and spent.level != level:
            spent = None  # not kept while another takes memory of its own
        self._encoder = FrameEncoder(level, spent)
        self._frame, self._segments, self._frame_size = self._number(), 0, 0
        return self._encoder

    def _put(self, segment: bytes, plain: int, compressing: float, most: int | None) -> None:
        """Hand a segment over, and tell the pace how that went."""
        ready = self._clock()
        self._outbox.put_segment((self._frame, self._segments), segment, most)
        self._segments += 1
        now = self._clock()
        working, waiting = ready - self._since, now - ready
        queued = self._outbox.waiting
        self._pace.lap(
            Lap(plain, len(segment), working, compressing, waiting, queued, self._starved)
        )
        self._since, self._starved = now, False
