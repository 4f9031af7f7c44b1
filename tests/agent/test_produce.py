"""A producer follows its link: harder compression where the link is slow, and memory for one level
at a time."""

from __future__ import annotations

import weakref
from collections.abc import Iterator

import pytest

from cas.agent import produce
from cas.agent.pace import LEVELS, START_LEVEL
from cas.agent.produce import BUDGETS, FrameNumbers, Job, Jobs, Producer
from cas.agent.read import Found, Missed
from cas.frame import Codec, FrameDecoder, FrameEncoder
from cas.messages import Piece
from cas.outbox import Outbox
from cas.segment import decode_segment
from cas.underway import SegmentKey
from tests.vectors.cuts import noise, text

MIB = 2**20
CHUNK = 64 * 1024
JOBS = 8
FRAME = 8 * MIB
STEP = 0.01  # seconds


class Clock:
    """Seconds that pass when one looks at them, or says so."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += STEP
        return self.now


class LinkedOutbox(Outbox):
    """An outbox whose link needs `seconds` for a segment, and `leaves` a queue if it is slow."""

    def __init__(self, clock: Clock, seconds: float, *, leaves: bool) -> None:
        super().__init__(lambda: None)
        self.lane_opened(0)
        self.segments: dict[SegmentKey, bytes] = {}
        self.mosts: list[int | None] = []
        self._ticks = clock
        self._seconds = seconds
        self._leaves = leaves

    def put_segment(self, key: SegmentKey, data: bytes, most: int | None = None) -> None:
        """As an outbox does; then the link works, and what it took is durable at once."""
        self.segments[key] = data
        self.mosts.append(most)
        super().put_segment(key, data, most)
        self._ticks.now += self._seconds
        while self.waiting > (4 * MIB if self._leaves else 0) and isinstance(self.take(0), Piece):
            pass
        self.ack((key,))


def run(outbox: Outbox, clock: Clock, level: int = 0) -> None:
    """Have a producer send some `JOBS` frames, a quarter of them noise, which is not compressed."""
    jobs = Jobs()
    words, other = text(CHUNK), noise(CHUNK)
    mixed = b"".join(words[at : at + 512] + other[at : at + 512] for at in range(0, CHUNK, 512))

    def read(job: Job) -> Iterator[Found | Missed]:
        if job.page == JOBS - 1:
            jobs.close()
        for index in job.indexes:
            clock()
            yield Found(index, other if index % 64 > 47 else mixed[index:] + mixed[:index])

    for page in range(JOBS):
        jobs.put(Job(1, page, list(range(FRAME // len(mixed)))))
    Producer(jobs, outbox, read, FrameNumbers(), level, clock=clock).run()


@pytest.fixture
def levels(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Those of the frames that were begun. When one is, none of another level has memory."""
    begun: list[int] = []
    alive: weakref.WeakSet[FrameEncoder] = weakref.WeakSet()

    def begin(level: int, old: FrameEncoder | None = None) -> FrameEncoder:
        assert all(encoder.level == level for encoder in alive)
        encoder = FrameEncoder(level, old)
        encoder.limit = FRAME
        alive.add(encoder)
        begun.append(level)
        return encoder

    monkeypatch.setattr(produce, "FrameEncoder", begin)
    return begun


def test_a_slow_link_gets_the_highest_level(levels: list[int]) -> None:
    clock = Clock()
    outbox = LinkedOutbox(clock, 60.0, leaves=True)
    run(outbox, clock)
    # What the encoder takes is taken from the queue.
    budgets = [budget for level, budget in BUDGETS if level >= START_LEVEL]
    assert budgets == list(dict.fromkeys(outbox.mosts))
    first = LEVELS.index(START_LEVEL)
    assert [*LEVELS[first:]] == levels[: len(LEVELS) - first]
    assert {LEVELS[-1]} == set(levels[len(LEVELS) - first :])


def test_a_fast_link_gets_the_lowest_level(levels: list[int]) -> None:
    clock = Clock()
    outbox = LinkedOutbox(clock, 0.0, leaves=False)
    run(outbox, clock)
    assert START_LEVEL == levels[0]
    assert {LEVELS[0]} == set(levels[3:])
    check(outbox)


def test_a_fixed_level_stays(levels: list[int]) -> None:
    clock = Clock()
    run(LinkedOutbox(clock, 60.0, leaves=True), clock, level=5)
    assert {5} == set(levels)


def check(outbox: LinkedOutbox) -> None:
    """Frames that ended early can be read like others, and noise went as it is."""
    decoders: dict[int, FrameDecoder] = {}
    plain_size = noise_size = 0
    for (frame, _), data in outbox.segments.items():
        head, payload = decode_segment(data)
        plain_size += head.plain_size
        if head.codec == Codec.PLAIN:
            noise_size += len(payload)
        else:
            decoder = decoders.setdefault(frame, FrameDecoder())
            assert head.plain_size == len(decoder.segment(payload, head.plain_size))
    assert plain_size > JOBS * FRAME * 0.8
    assert noise_size > plain_size / 8
