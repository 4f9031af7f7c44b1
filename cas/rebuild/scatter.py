"""Rebuilds a large content in the order in which its chunks are stored.

A content that shares chunks with others finds them in many frames, and following its recipes would
open the same frames again and again, a second's work for a few MB. So its chunks are taken by
*windows* of about 100 MiB and more: all that lie in one frame are read together, by threads that
decode while this one hashes and writes. In one window no frame is decoded twice, and each run of
bytes is written where it belongs in the file.

The digest wants the bytes in order. Mostly they come so, and are hashed as they come; what came too
early is read back, out of the page cache, when its turn has come. Chunks are not hashed one by one
before that; the file counts for nothing until its digest has come out right.
"""

from __future__ import annotations

import hashlib
import os
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Executor, Future, wait
from dataclasses import dataclass, field
from heapq import heappop, heappush
from operator import attrgetter
from queue import SimpleQueue
from threading import Event, Lock, Semaphore

from cas.entry import Content
from cas.errors import DamageError
from cas.ids import Digest, digest_of
from cas.interfaces import ContentSource, Location, Read
from cas.rebuild.run import damage, zero_pieces
from cas.rebuild.spans import Span, Window, joined, windows

READY = 24  # runs of bytes, of about a megabyte each, that are read and wait to be written
TASKS_AHEAD = 8  # frames to be read, below which the next window is looked at
ALONE_MOST = 32 * 2**20  # bytes in a task, when what stands alone begins another one
READ_BACK_SIZE = 256 * 1024  # stays in a core's own cache between being read and being hashed

Run = tuple[int, memoryview]  # where in the file, and what
Stretch = tuple[int, int]  # from, to


class Scatter:
    """Writes one content into the empty file `fd`, open for reading too, reading with the threads
    of `pool`. Without `hashed` every chunk is hashed instead of the whole."""

    def __init__(
        self, content: Content, source: ContentSource, fd: int, pool: Executor, *, hashed: bool
    ) -> None:
        self._content = content
        self._source = source
        self._fd = fd
        self._pool = pool
        self._order = InOrder(fd) if hashed else None
        # What the readers hand over: runs, and at the end of each task None, or what it raised.
        self._ready: SimpleQueue[Run | BaseException | None] = SimpleQueue()
        self._free = Semaphore(READY)
        self._stop = Event()
        self._unfinished = 0

    def run(self, written: Callable[[int], None]) -> None:
        """Contract as of `write.write_content`."""
        os.ftruncate(self._fd, self._content.size)
        tasks: list[Future[None]] = []
        try:
            for window in windows(self._content, self._source):
                if self._order is not None:
                    self._order.expect(window)
                written(window.end - window.start - window.size)  # holes: nothing is to be done
                for group in _groups(window):
                    tasks.append(self._pool.submit(self._read, group))
                    self._unfinished += 1
                self._write(TASKS_AHEAD, written)
            self._write(0, written)
        finally:
            self._stop.set()
            self._free.release(READY + len(tasks))
            wait(tasks)
        if self._order is not None and self._order.digest() != self._content.digest:
            raise damage(self._content, self._source)

    def _read(self, group: _Group) -> None:
        try:
            if group.start is None:
                self._read_spans(group.spans, self._source.read)
            else:
                with self._source.scan(group.start) as read:
                    self._read_spans(group.spans, read)
        except BaseException as error:  # noqa: BLE001  # raised again by the thread that writes
            self._ready.put(error)
        else:
            self._ready.put(None)

    def _read_spans(self, spans: list[Span], read: Read) -> None:
        for span in spans if self._order is None else joined(spans):
            if self._stop.is_set():
                return
            data = read(span.location)
            if self._order is None and digest_of(data) != span.id:
                data = memoryview(self._source.chunk(span.id))  # or says what is wrong
            self._free.acquire()
            self._ready.put((span.at, data))

    def _write(self, leave: int, written: Callable[[int], None]) -> None:
        """Write what is read, until no more than `leave` tasks are unfinished."""
        while self._unfinished > leave:
            ready = self._ready.get()
            if isinstance(ready, BaseException):
                raise ready
            if ready is None:
                self._unfinished -= 1
                continue
            at, data = ready
            write_at(self._fd, data, at)
            if self._order is not None:
                self._order.add(at, data)
            written(len(data))
            self._free.release()


@dataclass(slots=True)
class _Group:
    """What one task reads: what is wanted of one frame, and what stands alone between that."""

    start: Location | None = None  # the first of the frame
    spans: list[Span] = field(default_factory=list)
    size: int = 0

    def add(self, span: Span) -> None:
        self.spans.append(span)
        self.size += span.location.length

    def close(self) -> None:
        """Bring the spans of the frame into its order; mostly they are."""
        framed = [span for span in self.spans if not span.alone]
        order = sorted(framed, key=attrgetter("location.segment", "at"))
        if order != framed:
            self.spans = [*order, *(span for span in self.spans if span.alone)]
        self.start = order[0].location if order else None


def _groups(window: Window) -> Iterable[_Group]:
    """The spans of `window` by frames, in the order in which the file begins to need them."""
    groups: dict[int, _Group] = {}
    group = _Group()
    for number, span in enumerate(window.spans):
        if not span.alone:
            group = groups.setdefault(span.location.frame, _Group())
        elif group.size >= ALONE_MOST or not groups:
            group = groups[-1 - number] = _Group()  # a key that is no frame
        group.add(span)
    for group in groups.values():
        group.close()
    return groups.values()


class InOrder:
    """Hashes a file in order, while it is written in any order and by any thread.

    One thread hashes at a time, and goes on for as long as something follows; what others bring
    meanwhile they leave to it. So nobody waits, and once the last `add` has returned all is hashed.
    """

    def __init__(self, fd: int, holes: Iterable[Stretch] = ()) -> None:
        self._fd = fd
        self._hasher = hashlib.sha256()
        self._at = 0  # up to here all is hashed
        self._early: list[Stretch] = []  # written, and not hashed yet
        self._holes = deque(holes)
        self._busy = False  # who made it true has the hasher, the place and the holes
        self._lock = Lock()

    def expect(self, window: Window) -> None:
        """Learn the holes of the next window."""
        self._holes.extend(window.holes())

    def add(self, at: int, data: memoryview) -> None:
        """`data` has been written at `at`."""
        with self._lock:
            is_next = not self._busy and at == self._after_holes()
            if not is_next:
                heappush(self._early, (at, at + len(data)))
            if self._busy:
                return
            self._busy = True
        if is_next:
            self._zeros()
            self._hasher.update(data)
            self._at += len(data)
        self._advance()

    def digest(self) -> Digest:
        """The digest of the file, all of which is written."""
        self._zeros()
        return Digest(self._hasher.digest())

    def _advance(self) -> None:
        """Hash what came early and follows now, until nothing does."""
        while True:
            with self._lock:
                if not self._early or self._early[0][0] != self._after_holes():
                    self._busy = False
                    return
                _, end = heappop(self._early)
            self._zeros()
            self._read_back(end)
            self._at = end

    def _after_holes(self) -> int:
        """Where data goes on: here, or behind what holes begin here."""
        end = self._at
        for start, hole_end in self._holes:
            if start != end:
                break
            end = hole_end
        return end

    def _zeros(self) -> None:
        """Hash what holes begin here."""
        while self._holes and self._holes[0][0] == self._at:
            start, end = self._holes.popleft()
            for zeros in zero_pieces(end - start):
                self._hasher.update(zeros)
            self._at = end

    def _read_back(self, end: int) -> None:
        view = memoryview(bytearray(READ_BACK_SIZE))
        at = self._at
        while at < end:
            count = os.preadv(self._fd, [view[: end - at]], at)
            if not count:
                raise DamageError("the file was cut off while it was written")
            self._hasher.update(view[:count])
            at += count


def write_at(fd: int, data: memoryview, at: int) -> None:
    """Write all of `data` at `at`; a full disk raises OSError."""
    while data:
        written = os.pwrite(fd, data, at)
        data = data[written:]
        at += written
