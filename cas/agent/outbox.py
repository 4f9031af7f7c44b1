"""The agent's one queue, which all lanes empty, and the segments that wait for their ack.

Threads put, lanes take. Messages go before pieces. A segment stays here until it is acknowledged,
so that what a lost lane had taken goes out again on another; `put_segment` waits while more than
`budget` stored bytes are unacknowledged, and that is what slows the compressor down to the link.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from cas.messages import PIECE_SIZE, Message, Piece

MESSAGES_LIMIT = 4 * 2**20  # bytes of pages and recipes queued before a scan waits
BUDGET = 8 * 2**20

SegmentKey = tuple[int, int]  # frame, number


@dataclass(slots=True)
class _Sent:
    data: bytes
    lanes: set[int] = field(default_factory=set)


class Outbox:
    """Thread-safe. `wake` is called, from any thread, whenever there is something new to take."""

    def __init__(self, wake: Callable[[], None]) -> None:
        self._wake = wake
        self._changed = threading.Condition()
        self._messages: deque[tuple[Message, int]] = deque()
        self._message_bytes = 0
        self._pieces: deque[tuple[SegmentKey, int]] = deque()
        self._unacked: dict[SegmentKey, _Sent] = {}
        self._unacked_bytes = 0
        self._closed = False
        self.budget = BUDGET

    def put_message(self, message: Message, size: int = 0) -> None:
        """Queue a message; waits while bulky ones (`size` bytes) are in plenty."""
        with self._changed:
            while size and self._message_bytes > MESSAGES_LIMIT and not self._closed:
                self._changed.wait()
            self._messages.append((message, size))
            self._message_bytes += size
        self._wake()

    def put_segment(self, key: SegmentKey, data: bytes) -> None:
        """Queue a segment's pieces; waits for acks while the budget is used up."""
        with self._changed:
            while self._unacked_bytes and self._unacked_bytes + len(data) > self.budget:
                if self._closed:
                    return
                self._changed.wait()
            self._unacked[key] = _Sent(data)
            self._unacked_bytes += len(data)
            self._queue(key)
        self._wake()

    def take(self, lane: int) -> Message | None:
        """What `lane` is to send next, or None when there is nothing."""
        with self._changed:
            if self._messages:
                message, size = self._messages.popleft()
                self._message_bytes -= size
                self._changed.notify_all()
                return message
            while self._pieces:
                key, offset = self._pieces.popleft()
                sent = self._unacked.get(key)
                if sent is not None:  # else acknowledged meanwhile: the piece is not needed
                    sent.lanes.add(lane)
                    data = sent.data[offset : offset + PIECE_SIZE]
                    return Piece(key[0], key[1], offset, len(sent.data), data)
            return None

    def has_work(self) -> bool:
        """Whether `take` might give something."""
        with self._changed:
            return bool(self._messages or self._pieces)

    def ack(self, keys: tuple[SegmentKey, ...]) -> None:
        """Forget segments that are durable at the client."""
        with self._changed:
            for key in keys:
                sent = self._unacked.pop(key, None)
                if sent is not None:
                    self._unacked_bytes -= len(sent.data)
            self._changed.notify_all()

    def lane_lost(self, lane: int) -> None:
        """Queue again, first, whatever `lane` had taken and nobody acknowledged."""
        with self._changed:
            lost = [key for key, sent in self._unacked.items() if lane in sent.lanes]
            self._pieces = deque(piece for piece in self._pieces if piece[0] not in lost)
            waiting, self._pieces = self._pieces, deque()
            for key in lost:
                self._unacked[key].lanes.clear()
                self._queue(key)
            self._pieces.extend(waiting)
        self._wake()

    def close(self) -> None:
        """Let nobody wait any more."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _queue(self, key: SegmentKey) -> None:
        size = len(self._unacked[key].data)
        self._pieces.extend((key, offset) for offset in range(0, size, PIECE_SIZE))
