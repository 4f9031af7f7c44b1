"""From segments to the store: decoded, every chunk hashed, given to the writer.

Nothing the agent says of a chunk is believed: which ids and lengths are due is known from the
recipes, and a segment whose bytes do not hash to them ends the sync. `Receiver` takes whole
segments in any order and keeps each frame's in theirs. It lives as long as the agent does: its
frames go on from one tier to the next.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from cas.errors import LimitError, PeerError
from cas.frame import SEGMENT_PLAIN_LIMIT, Codec, FrameDecoder
from cas.hashing import digests_of
from cas.ids import Digest
from cas.pack import Origin, PageRun, Segment
from cas.pull.planner import Expected
from cas.segment import SegmentHead, decode_segment
from cas.store.writer import Writer

EARLY_LIMIT = 64  # segments of a frame that may be here before one that must come first
EARLY_SIZE_LIMIT = 128 * 2**20  # bytes of such segments of all frames
FRAMES_LIMIT = 8  # that are coming in at a time: each has a window of up to 32 MiB

SegmentKey = tuple[int, int]


@dataclass(slots=True)
class _Frame:
    """A frame that is coming in: its number in the store, the segment due next."""

    stored_as: int
    decoder: FrameDecoder
    due: int = 0
    early: dict[int, bytes] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StoredSegment:
    """What was handed to the writer; it may be acknowledged after the next commit."""

    key: SegmentKey
    plain_size: int
    stored_size: int


class Awaiting(Protocol):
    """Whoever asked for the chunks that come."""

    def expected(self, scan: int, page: int) -> Expected:
        """What is awaited of a page; raises PeerError when that is nothing."""

    def origin(self, wire_size: int, runs: tuple[PageRun, ...]) -> Origin:
        """The origin of a segment that is being stored now."""


class Receiver:
    """Stores the segments of one agent."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._frames: dict[int, _Frame] = {}
        self._ended: set[int] = set()
        self._early_size = 0
        self._spent: FrameDecoder | None = None

    def store(self, key: SegmentKey, data: bytes, awaiting: Awaiting) -> list[StoredSegment]:
        """Store a segment and those that were waiting for it. Raises PeerError, FormatError when
        its bytes are not what they must be, StoreError when it cannot be written."""
        frame = self._frames.get(key[0])
        if frame is None and key[0] not in self._ended:
            frame = self._begin(key[0])
        if frame is None or key[1] < frame.due or key[1] in frame.early:
            return []  # it had come before
        frame.early[key[1]] = data
        self._early_size += len(data)
        if len(frame.early) > EARLY_LIMIT or self._early_size > EARLY_SIZE_LIMIT:
            raise LimitError("the agent sent segments too far out of order")
        stored = []
        while (ready := frame.early.pop(frame.due, None)) is not None:
            self._early_size -= len(ready)
            stored.append(self._store((key[0], frame.due), frame, ready, awaiting))
            frame.due += 1
        return stored

    def close(self) -> None:
        """No more will come from this agent: its frames end here."""
        for frame in self._frames.values():
            self._writer.end_frame(frame.stored_as)
        self._frames.clear()

    def _begin(self, number: int) -> _Frame:
        if len(self._frames) >= FRAMES_LIMIT:
            raise LimitError("the agent began too many frames at once")
        frame = self._frames[number] = _Frame(self._writer.begin_frame(), FrameDecoder(self._spent))
        self._spent = None
        return frame

    def _store(
        self, key: SegmentKey, frame: _Frame, data: bytes, awaiting: Awaiting
    ) -> StoredSegment:
        head, view = decode_segment(data)
        payload = bytes(view)
        ids, lengths, runs = _due(head, awaiting)
        if sum(lengths) != head.plain_size or head.plain_size > SEGMENT_PLAIN_LIMIT:
            raise PeerError("a segment's size is not that of the chunks it should hold")
        if head.codec == Codec.ZSTD:
            plain = frame.decoder.segment(payload, head.plain_size)
        else:
            plain = payload
        _check_chunks(plain, ids, lengths)
        if head.last and frame.early:
            raise PeerError("a segment follows the last one of its frame")
        segment = Segment(
            frame.stored_as,
            key[1],
            Codec(head.codec),
            False,
            head.plain_size,
            tuple(lengths),
            tuple(ids),
            awaiting.origin(len(data), tuple(runs)),
        )
        self._writer.add_segment(segment, payload)
        if head.last:
            self._writer.end_frame(frame.stored_as)
            del self._frames[key[0]]
            self._ended.add(key[0])
            self._spent = frame.decoder
        return StoredSegment(key, head.plain_size, len(payload))


def _due(head: SegmentHead, awaiting: Awaiting) -> tuple[list[Digest], list[int], list[PageRun]]:
    ids: list[Digest] = []
    lengths: list[int] = []
    runs: list[PageRun] = []
    for scan, page, first, count in head.runs:
        expected = awaiting.expected(scan, page)
        if count > len(expected.indexes):
            raise PeerError("a segment holds more chunks than were wanted")
        place = expected.place(first)
        ids.extend(expected.settle(index) for index in range(first, first + count))
        lengths.extend(expected.lengths[place : place + count])
        runs.append(PageRun(expected.page, first, count))
    return ids, lengths, runs


def _check_chunks(plain: bytes, ids: list[Digest], lengths: list[int]) -> None:
    if len(plain) != sum(lengths):
        raise PeerError("a segment is shorter or longer than it said")
    if (found := digests_of(plain, lengths)) != ids:
        wrong = next(id_ for id_, came in zip(ids, found, strict=True) if id_ != came)
        raise PeerError(
            f"chunk {wrong.hex()} arrived with other content",
            advice="nothing of it was stored; run it again, and check the far end's memory",
        )
