"""bzip2 by replay. A file is one stream or several; the block size is in the header of each.

Parameters: version 1, then the block size's digit (1 to 9), a byte each.
"""

from __future__ import annotations

import bz2
from collections.abc import Sequence
from concurrent.futures import Executor

from cas._native import Replay
from cas.codec.base import Event, SpanEvent, VerbatimEvent
from cas.codec.replay import Patience, ReplayJoiner, StreamSplitter
from cas.errors import FormatError
from cas.program import Codec

MAGIC = b"BZh"
_HEADER_SIZE = 10
_BLOCK = bytes.fromhex("314159265359")
_NO_BLOCK = bytes.fromhex("177245385090")
VERSION = 1
COST_NS = 80  # of a processor's time for a plain byte: 12 to 20 MB/s


def is_bzip2(head: bytes) -> bool:
    """Whether a bzip2 stream begins here."""
    return (
        head[:3] == MAGIC
        and head[3:4] in b"123456789"
        and head[4:_HEADER_SIZE] in (_BLOCK, _NO_BLOCK)
        and len(head) >= _HEADER_SIZE
    )


def splitter(head: bytes, budget: Patience) -> Bzip2Splitter | None:
    """A splitter for the stream that begins with `head`, or None where none begins."""
    if not is_bzip2(head) or budget.patience_ns < COST_NS:
        return None
    return Bzip2Splitter(head[3] - ord("0"))


class Bzip2Splitter:
    """A `Splitter` for one bzip2 stream and those that follow it with the same block size."""

    codec = Codec.BZIP2

    def __init__(self, level: int) -> None:
        self._level = level
        self.params = bytes([VERSION, level])
        self._before = 0  # bytes of the streams that are done
        self._head = b""  # what was fed behind a stream, and is not yet part of another
        self._is_last = False  # no other stream follows
        self._stream = self._begin()

    def _begin(self) -> StreamSplitter:
        return StreamSplitter(bz2.BZ2Decompressor(), Replay.bzip2(self._level), OSError)

    @property
    def ended(self) -> bool:
        """See `Splitter.ended`. Known only when what follows, or that nothing does, is known."""
        return self._stream.ended and (self._is_last or len(self._head) >= _HEADER_SIZE)

    @property
    def failed(self) -> str:
        """See `Splitter.failed`."""
        return self._stream.failed

    @property
    def unused(self) -> bytes:
        """See `Splitter.unused`."""
        return self._head

    @property
    def rest(self) -> bytes:
        """See `Splitter.rest`."""
        return self._stream.rest + self._head

    def feed(self, data: bytes) -> Sequence[Event]:
        """See `Splitter.feed`."""
        if self._stream.failed:
            self._head += data
            return []
        events: list[Event] = []
        data, self._head = self._head + data, b""
        while data:
            if self._stream.ended:
                if not is_bzip2(data) or data[3] - ord("0") != self._level:
                    self._head = data
                    break
                self._before += self._stream.covered
                self._stream = self._begin()
            events += map(self._moved, self._stream.feed(data))
            data = self._stream.unused
            if self._stream.failed:
                self._head = data
                break
        return events

    def finish(self) -> Sequence[Event]:
        """See `Splitter.finish`."""
        self._is_last = True
        return [self._moved(event) for event in self._stream.finish()]

    def _moved(self, event: Event) -> Event:
        """The event as seen from the start of the first stream."""
        if isinstance(event, SpanEvent):
            return SpanEvent(event.plain, event.side, self._before + event.covered)
        assert not isinstance(event, VerbatimEvent)  # a stream has none
        return event


def joiner(params: bytes, _pool: Executor) -> ReplayJoiner:
    """What undoes a `Bzip2Splitter`. Raises FormatError for parameters that mean nothing."""
    if len(params) != 2 or params[0] != VERSION or not 1 <= params[1] <= 9:
        raise FormatError("unknown parameters of bzip2", advice="use a newer cas")
    level = params[1]
    return ReplayJoiner(lambda: Replay.bzip2(level))
