"""What one end has to say to the other, whichever lane takes it (docs/protocol.md, "Delivery").

Threads put, lanes take. With one lane (`shared` is false) a message is taken once and is lost with
the lane. With several, messages are cut into pieces like segments, as frame 0. A TCP connection
delivers in order, so the count of bytes that the far end has had from a lane says which of its
pieces have arrived: exactly the others go out again, over other lanes, when a lane is lost or in
doubt.

Some go out twice, because they are late. When everything was taken and a lane has nothing to do, it
takes pieces that another has had for HEDGE_SECONDS and that it would bring in half the time, so a
slow lane does not hold up the end of a tier, or a full budget. And before anything new it takes
such as have been on their way for OVERDUE_SECONDS, and for four times what pieces take of late:
all behind them waits to be stored. Where a link is full everything takes long, and each copy costs
what it carries; so while there is something new, no more than 3 % of what arrives goes out
twice. Pieces are small on slow lanes, so a copy is of little.

What goes first: what must go over this very lane, what may get lost, messages, segments. A lane may
send as many bytes of pieces as the far end has allowed it, and pieces are cut to that; small
messages go all the same.

A segment stays here until it is acknowledged, which is when it is durable there; `put_segment`
waits while more than `budget` bytes of them are here, and that is what slows the compressor down
to the link. Nor may too many frames be under way (`frames`): each takes a decoder there.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from math import inf

from cas.messages import MESSAGES, PIECE_SIZE, Message, Piece, encode_message
from cas.underway import NOBODY, Blob, Extent, Lane, SegmentKey, Taken

MESSAGES_LIMIT = 4 * 2**20  # bytes of bulky messages queued before whoever makes them waits
BUDGET = 8 * 2**20
FRAMES = 6
HEDGE_SECONDS = 2.0
SILENT_SECONDS = 4.0  # a lane that brings nothing for so long has no rate to judge it by
OVERDUE_SECONDS = 10.0  # healthy lanes at 10 % loss have been silent for 11 s, seldom for 5
OVERDUE_WAITS = 4.0  # and so many times what a piece takes of late
TWICE_SHARE = 0.03  # of what arrives, this much may be sent twice while there is something new,
TWICE_MOST = 256 * 1024  # bytes of it at once
WAITS = 16  # what a piece takes is the mean of about so many
LOOK_SECONDS = 0.5
ROUND_SECONDS = 0.8  # there, and for the news of it; what comes as soon is not worth a copy
HEDGE_GAIN = 2.0  # a piece goes out again where that brings it in half the time
SMALL_MESSAGE = 4 * 1024
LEAST_PIECE = 512
LOOSE_LIMIT = 256  # messages that may get lost
ALL = 2**62  # bytes: a lane that may send as many as it likes


class Outbox:
    """Thread-safe. `wake` is called, from any thread, whenever there is something new to take."""

    def __init__(
        self, wake: Callable[[], None], *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._wake = wake
        self._clock = clock
        self._changed = threading.Condition()
        self._lanes: dict[int, Lane] = {}
        self._messages: deque[tuple[Message, int]] = deque()
        self._message_bytes = 0
        self._message_number = 0
        self._first: deque[Extent] = deque()  # pieces of messages
        self._pieces: deque[Extent] = deque()
        self._blobs: dict[SegmentKey, Blob] = {}
        self._frames: dict[int, int] = {}  # how many segments of each are here
        self._unacked_bytes = 0
        self._look_again = 0.0
        self._wait = 0.0  # seconds from taking a piece to its arrival, of late
        self._twice = float(TWICE_MOST)  # bytes that may go out again before something new
        self._closed = False
        self.shared = False
        self.budget = BUDGET

    def put_now(self, message: Message, lane: int | None = None) -> None:
        """Queue a small message that may get lost; over `lane` and no other if one is named."""
        with self._changed:
            if lane is None:
                while self.shared and len(self._messages) >= LOOSE_LIMIT:
                    self._messages.popleft()  # no lane takes them: the last ones are worth most
                self._messages.append((message, 0))
            elif lane in self._lanes:
                self._lanes[lane].own.append(message)
        self._wake()

    def put_message(self, message: Message, size: int = 0) -> None:
        """Queue a message; waits while bulky ones (`size` bytes) are in plenty."""
        with self._changed:
            while size and self._message_bytes > MESSAGES_LIMIT and not self._closed:
                self._changed.wait()
            if self._closed:
                return
            self._message_bytes += size
            if self.shared:
                key, self._message_number = (
                    (MESSAGES, self._message_number),
                    self._message_number + 1,
                )
                self._add(key, Blob(encode_message(message), size), self._first)
            else:
                self._messages.append((message, size))
        self._wake()

    def put_segment(self, key: SegmentKey, data: bytes, most: int | None = None) -> None:
        """Queue a segment; waits for acks while the budget, or `most` if that is less, is used
        up."""
        with self._changed:
            while self._is_full(key[0], len(data), most):
                if self._closed:
                    return
                self._changed.wait()
            self._unacked_bytes += len(data)
            self._frames[key[0]] = self._frames.get(key[0], 0) + 1
            self._add(key, Blob(data, 0), self._pieces)
        self._wake()

    def lane_opened(self, lane: int) -> None:
        """There is one more lane; what is put for it from now on is for this one."""
        with self._changed:
            self._lanes[lane] = Lane()
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
            extent = (
                self._overdue(lane, mine)
                or self._next(self._first, mine)
                or self._next(self._pieces, mine)
                or self._late(lane, mine, HEDGE_SECONDS)
            )
            return None if extent is None else self._taken(lane, mine, extent)

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
            now = self._clock()
            self._twice = min(TWICE_MOST, self._twice + TWICE_SHARE * max(0, total - mine.arrived))
            mine.note(now, total)
            while mine.on_the_way and mine.on_the_way[0][0] <= total:
                _, (key, start, end) = mine.on_the_way.popleft()
                blob = self._blobs.get(key)
                if blob is not None:
                    if (taken := blob.taken[start]).lane == lane:
                        self._wait += (now - taken.since - self._wait) / WAITS
                    blob.note_arrival(start, end)
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
        """Let nobody wait any more, and take no more in."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _is_full(self, frame: int, size: int, most: int | None) -> bool:
        if self.shared and frame not in self._frames and len(self._frames) >= FRAMES:
            return True
        budget = self.budget if most is None else min(self.budget, most)
        return bool(self._unacked_bytes) and self._unacked_bytes + size > budget

    def _add(self, key: SegmentKey, blob: Blob, queue: deque[Extent]) -> None:
        self._blobs[key] = blob
        size = len(blob.data)
        starts = range(0, size, PIECE_SIZE)
        queue.extend((key, start, min(size, start + PIECE_SIZE)) for start in starts)

    def _forget(self, key: SegmentKey) -> None:
        blob = self._blobs.pop(key)
        if key[0] == MESSAGES:
            self._message_bytes -= blob.bulk
            return
        self._unacked_bytes -= len(blob.data)
        self._frames[key[0]] -= 1
        if not self._frames[key[0]]:
            del self._frames[key[0]]

    def _next(self, queue: deque[Extent], mine: Lane) -> Extent | None:
        while queue:
            key, start, end = queue[0]
            blob = self._blobs.get(key)
            if blob is None or start in blob.arrived:  # not needed any more
                queue.popleft()
                continue
            cut = start + self._room(mine, key, blob, start, end)
            if cut == start:
                return None
            if cut == end:
                queue.popleft()
            else:
                queue[0] = (key, cut, end)
            return key, start, cut
        return None

    def _room(self, mine: Lane, key: SegmentKey, blob: Blob, start: int, end: int) -> int:
        """How many of these bytes the lane may send now, 0 if too few to be worth a piece. What
        was sent before is cut no further, so that its arrivals can be told apart: it may pass what
        is allowed a little."""
        size = end - start
        if not self.shared or (key[0] == MESSAGES and len(blob.data) <= SMALL_MESSAGE):
            return size
        room = min(size, mine.allowed - mine.sent, mine.piece_size(self._clock()))
        if room < min(size, LEAST_PIECE):
            return 0
        return size if start in blob.taken else room

    def _taken(self, lane: int, mine: Lane, extent: Extent) -> Piece:
        key, start, end = extent
        blob = self._blobs[key]
        mine.sent += end - start
        if self.shared:
            mine.on_the_way.append((mine.sent, extent))
            blob.taken[start] = Taken(lane, self._clock(), end, mine.sent)
        return Piece(key[0], key[1], start, len(blob.data), blob.data[start:end])

    def _overdue(self, lane: int, mine: Lane) -> Extent | None:
        """A piece that keeps what is there already from being stored; looked for now and then."""
        if not self.shared or self._clock() < self._look_again:
            return None
        if mine.allowed - mine.sent < LEAST_PIECE:
            return None  # it could take nothing, and others would not be given what there is
        found = self._late(lane, mine, max(OVERDUE_SECONDS, OVERDUE_WAITS * self._wait))
        if found is None or found[2] - found[1] > self._twice:
            self._look_again = self._clock() + LOOK_SECONDS
            return None
        self._twice -= found[2] - found[1]
        return found

    def _late(self, lane: int, mine: Lane, seconds: float) -> Extent | None:
        """A piece that another lane has had for so long, and that this one would bring sooner; of
        the oldest blob first."""
        now = self._clock()
        usual = self._usual_rate(now)
        for key, start, blob in self._missing() if self.shared else ():
            taken = blob.taken[start]
            waits = now - taken.since
            if taken.lane in (lane, NOBODY) or waits <= seconds:
                continue
            holder = self._lanes[taken.lane]
            rate = holder.rate(now)
            if not rate and waits <= SILENT_SECONDS:
                continue
            # A lane with nothing to do has no rate of its own: it is taken for one like the others.
            mine_to_do = ROUND_SECONDS + (taken.end - start + mine.sent - mine.arrived) / usual
            if (taken.due - holder.arrived) / max(rate, 1.0) > HEDGE_GAIN * mine_to_do:
                is_room = self._room(mine, key, blob, start, taken.end)
                return (key, start, taken.end) if is_room else None
        return None

    def _usual_rate(self, now: float) -> float:
        rates = [rate for lane in self._lanes.values() if (rate := lane.rate(now))]
        return sum(rates) / len(rates) if rates else inf

    def _missing(self) -> Iterator[tuple[SegmentKey, int, Blob]]:
        for key, blob in self._blobs.items():
            if not blob.is_whole_there:
                for start in blob.taken:
                    if start not in blob.arrived:
                        yield key, start, blob

    def _hand_over(self, lane: int, mine: Lane) -> None:
        """Queue again, first, what `lane` took last and is not known to have arrived."""
        for _, (key, start, end) in reversed(mine.on_the_way):
            blob = self._blobs.get(key)
            if blob is None or start in blob.arrived or blob.taken[start].lane != lane:
                continue
            blob.taken[start] = Taken(NOBODY, 0.0, end, 0)
            (self._first if key[0] == MESSAGES else self._pieces).appendleft((key, start, end))
