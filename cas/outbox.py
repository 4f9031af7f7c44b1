"""What one end has to say to the other, whichever lane takes it (docs/protocol.md, "Delivery").

Threads put, lanes take. With one lane (`shared` is false) a message is taken once and is lost with
the lane. With several, messages are cut into pieces like segments, as frame 0. A TCP connection
delivers in order, so the count of bytes that the far end has had from a lane says which of its
pieces have arrived: exactly the others go out again, over other lanes, when a lane is lost or in
doubt. When everything was taken and a lane has nothing to do, it takes pieces that another has had
for long (HEDGE_SECONDS): so a slow lane does not hold up the end of a tier, or a full budget.

What goes first: what must go over this very lane, what may get lost, messages, segments. A lane may
send as many bytes of pieces as the far end has allowed it; small messages go all the same.

A segment stays here until it is acknowledged, which is when it is durable there; `put_segment`
waits while more than `budget` bytes of them are here, and that is what slows the compressor down
to the link. Nor may too many frames be under way (`frames`): each takes a decoder there.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from cas.messages import MESSAGES, PIECE_SIZE, Message, Piece, encode_message

MESSAGES_LIMIT = 4 * 2**20  # bytes of bulky messages queued before whoever makes them waits
BUDGET = 8 * 2**20
FRAMES = 6
HEDGE_SECONDS = 4.0
SMALL_MESSAGE = 4 * 1024

SegmentKey = tuple[int, int]  # frame, number
PieceKey = tuple[SegmentKey, int]  # and offset


@dataclass(slots=True)
class _Blob:
    """Something that goes in pieces. `taken` says who took each piece last, and when."""

    data: bytes
    bulk: int  # what it counts for while messages are limited
    arrived: set[int] = field(default_factory=set)  # offsets
    taken: dict[int, tuple[int, float]] = field(default_factory=dict)

    def size_at(self, offset: int) -> int:
        return min(PIECE_SIZE, len(self.data) - offset)

    @property
    def is_whole_there(self) -> bool:
        return len(self.arrived) * PIECE_SIZE >= len(self.data)


@dataclass(slots=True)
class _Lane:
    """What a lane has taken and is not known to have arrived, oldest first, each with the count of
    bytes at which it has."""

    own: deque[Message] = field(default_factory=deque)
    on_the_way: deque[tuple[int, PieceKey]] = field(default_factory=deque)
    sent: int = 0
    allowed: int = 0
    is_doubted: bool = False


class Outbox:
    """Thread-safe. `wake` is called, from any thread, whenever there is something new to take."""

    def __init__(
        self, wake: Callable[[], None], *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._wake = wake
        self._clock = clock
        self._changed = threading.Condition()
        self._lanes: dict[int, _Lane] = {}
        self._messages: deque[tuple[Message, int]] = deque()
        self._message_bytes = 0
        self._message_number = 0
        self._first: deque[PieceKey] = deque()  # pieces of messages
        self._pieces: deque[PieceKey] = deque()
        self._blobs: dict[SegmentKey, _Blob] = {}
        self._frames: dict[int, int] = {}  # how many segments of each are here
        self._unacked_bytes = 0
        self._closed = False
        self.shared = False
        self.budget = BUDGET

    def put_now(self, message: Message, lane: int | None = None) -> None:
        """Queue a small message that may get lost; over `lane` and no other if one is named."""
        with self._changed:
            if lane is None:
                self._messages.append((message, 0))
            elif lane in self._lanes:
                self._lanes[lane].own.append(message)
        self._wake()

    def put_message(self, message: Message, size: int = 0) -> None:
        """Queue a message; waits while bulky ones (`size` bytes) are in plenty."""
        with self._changed:
            while size and self._message_bytes > MESSAGES_LIMIT and not self._closed:
                self._changed.wait()
            self._message_bytes += size
            if self.shared:
                key, self._message_number = (
                    (MESSAGES, self._message_number),
                    self._message_number + 1,
                )
                self._add(key, _Blob(encode_message(message), size), self._first)
            else:
                self._messages.append((message, size))
        self._wake()

    def put_segment(self, key: SegmentKey, data: bytes) -> None:
        """Queue a segment; waits for acks while the budget is used up."""
        with self._changed:
            while self._is_full(key[0], len(data)):
                if self._closed:
                    return
                self._changed.wait()
            self._unacked_bytes += len(data)
            self._frames[key[0]] = self._frames.get(key[0], 0) + 1
            self._add(key, _Blob(data, 0), self._pieces)
        self._wake()

    def lane_opened(self, lane: int) -> None:
        """There is one more lane; what is put for it from now on is for this one."""
        with self._changed:
            self._lanes[lane] = _Lane()
        self._wake()

    def take(self, lane: int) -> Message | None:
        """What `lane` is to send next, or None when there is nothing for it."""
        with self._changed:
            mine = self._lanes.get(lane)
            if mine is None:
                return None
            if mine.own:
                return mine.own.popleft()
            if mine.is_doubted:
                return None
            if self._messages:
                message, size = self._messages.popleft()
                self._message_bytes -= size
                self._changed.notify_all()
                return message
            for queue in (self._first, self._pieces):
                piece = self._next(queue, mine)
                if piece is not None:
                    return self._taken(lane, mine, piece)
            late = self._late(lane, mine) if self.shared else None
            return None if late is None else self._taken(lane, mine, late)

    def has_work(self) -> bool:
        """Whether `take` might give something to a lane that may send."""
        with self._changed:
            return bool(self._messages or self._pieces or self._first)

    @property
    def waiting(self) -> int:
        """About how many bytes wait for a lane to take them."""
        with self._changed:
            return (len(self._first) + len(self._pieces)) * PIECE_SIZE

    def allow(self, lane: int, total: int) -> None:
        """`lane` may send up to `total` bytes of pieces, counted from its beginning."""
        with self._changed:
            if lane in self._lanes:
                self._lanes[lane].allowed = max(self._lanes[lane].allowed, total)
        self._wake()

    def arrived(self, lane: int, total: int) -> None:
        """The far end has had `total` bytes of pieces over `lane`: those are there."""
        with self._changed:
            mine = self._lanes.get(lane)
            if mine is None:
                return
            while mine.on_the_way and mine.on_the_way[0][0] <= total:
                _, (key, offset) = mine.on_the_way.popleft()
                blob = self._blobs.get(key)
                if blob is not None:
                    blob.arrived.add(offset)
                    if key[0] == MESSAGES and blob.is_whole_there:
                        self._forget(key)
            self._changed.notify_all()
        self._wake()

    def ack(self, keys: tuple[SegmentKey, ...]) -> None:
        """Forget segments that are durable at the client."""
        with self._changed:
            for key in keys:
                if key in self._blobs and key[0] != MESSAGES:
                    self._forget(key)
            self._changed.notify_all()
        self._wake()

    def doubt(self, lane: int) -> None:
        """Nothing seems to come over `lane`: let others take what it had, and give it no more."""
        with self._changed:
            mine = self._lanes.get(lane)
            if mine is not None:
                mine.is_doubted = True
                self._hand_over(lane, mine)
        self._wake()

    def trust(self, lane: int) -> None:
        """Something has come over `lane` after all."""
        with self._changed:
            if lane in self._lanes:
                self._lanes[lane].is_doubted = False
        self._wake()

    def lane_lost(self, lane: int) -> None:
        """`lane` has ended: others take what had not arrived over it."""
        with self._changed:
            mine = self._lanes.pop(lane, None)
            if mine is not None:
                self._hand_over(lane, mine)
        self._wake()

    def close(self) -> None:
        """Let nobody wait any more."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _is_full(self, frame: int, size: int) -> bool:
        if self.shared and frame not in self._frames and len(self._frames) >= FRAMES:
            return True
        return bool(self._unacked_bytes) and self._unacked_bytes + size > self.budget

    def _add(self, key: SegmentKey, blob: _Blob, queue: deque[PieceKey]) -> None:
        self._blobs[key] = blob
        queue.extend((key, offset) for offset in range(0, len(blob.data), PIECE_SIZE))

    def _forget(self, key: SegmentKey) -> None:
        blob = self._blobs.pop(key)
        if key[0] == MESSAGES:
            self._message_bytes -= blob.bulk
            return
        self._unacked_bytes -= len(blob.data)
        self._frames[key[0]] -= 1
        if not self._frames[key[0]]:
            del self._frames[key[0]]

    def _next(self, queue: deque[PieceKey], mine: _Lane) -> PieceKey | None:
        while queue:
            key, offset = queue[0]
            blob = self._blobs.get(key)
            if blob is None or offset in blob.arrived:  # not needed any more
                queue.popleft()
                continue
            return queue.popleft() if self._may_send(mine, key, blob, offset) else None
        return None

    def _may_send(self, mine: _Lane, key: SegmentKey, blob: _Blob, offset: int) -> bool:
        if not self.shared or (key[0] == MESSAGES and len(blob.data) <= SMALL_MESSAGE):
            return True
        return mine.sent + blob.size_at(offset) <= mine.allowed

    def _taken(self, lane: int, mine: _Lane, piece: PieceKey) -> Piece:
        key, offset = piece
        blob = self._blobs[key]
        data = blob.data[offset : offset + PIECE_SIZE]
        mine.sent += len(data)
        if self.shared:
            mine.on_the_way.append((mine.sent, piece))
            blob.taken[offset] = (lane, self._clock())
        return Piece(key[0], key[1], offset, len(blob.data), data)

    def _late(self, lane: int, mine: _Lane) -> PieceKey | None:
        """A piece that another lane has had for long, the oldest blob's first."""
        now = self._clock()
        for key, offset, blob in self._missing():
            holder, since = blob.taken[offset]
            if holder != lane and now - since > HEDGE_SECONDS:
                return (key, offset) if self._may_send(mine, key, blob, offset) else None
        return None

    def _missing(self) -> Iterator[tuple[SegmentKey, int, _Blob]]:
        for key, blob in self._blobs.items():
            if not blob.is_whole_there:
                for offset in blob.taken:
                    if offset not in blob.arrived:
                        yield key, offset, blob

    def _hand_over(self, lane: int, mine: _Lane) -> None:
        """Queue again, first, what `lane` took last and is not known to have arrived."""
        for _, (key, offset) in reversed(mine.on_the_way):
            blob = self._blobs.get(key)
            if blob is None or offset in blob.arrived or blob.taken.get(offset, (-1,))[0] != lane:
                continue
            del blob.taken[offset]
            (self._first if key[0] == MESSAGES else self._pieces).appendleft((key, offset))
