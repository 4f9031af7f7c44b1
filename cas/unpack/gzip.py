"""The framing of gzip files (RFC 1952): headers, trailers, and several members in one file.

All members together are one stream to whoever unpacks them, since a tar may run across them (that
is how eStargz is made, and what `cat` does), so they are one level of a recipe: `GzipSplitter`
goes from each deflate stream to the next, and what lies between them is verbatim.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from cas.codec.base import Event, SpanEvent, Splitter, VerbatimEvent
from cas.program import Codec

TRAILER_SIZE = 8
HEADER_LIMIT = 256 * 1024  # bytes: the extra field has 64 KiB at most, names have no limit
_MAGIC = b"\x1f\x8b\x08"
_FIXED = 10
_CHECK, _EXTRA, _NAME, _COMMENT, _RESERVED = 2, 4, 8, 16, 0xE0

NO_HEADER, CUT_OFF = -1, 0


def is_header(head: bytes) -> bool:
    """Whether a gzip header could begin like `head`."""
    return head[:3] == _MAGIC and len(head) >= _FIXED and not head[3] & _RESERVED


def header_size(data: bytes) -> int:
    """How long the header at the start of `data` is, or `NO_HEADER`, or `CUT_OFF`: it may be one
    that goes on behind the end of `data`."""
    if not is_header(data):
        is_short = len(data) < _FIXED and _MAGIC.startswith(data[:3])
        return CUT_OFF if is_short else NO_HEADER
    flags, at = data[3], _FIXED
    if flags & _EXTRA:
        at += 2 + int.from_bytes(data[at : at + 2], "little")
    for _ in range(bool(flags & _NAME) + bool(flags & _COMMENT)):
        at = data.find(b"\0", at) + 1
        if not at:
            return CUT_OFF if len(data) < HEADER_LIMIT else NO_HEADER
    at += 2 * bool(flags & _CHECK)
    return at if at <= len(data) else CUT_OFF


class GzipSplitter:
    """Takes the deflate streams of a gzip file apart as one. It is fed from the first header's end
    on, and has ended before the last trailer. `begin` gives a splitter for each stream, or nothing
    when there have been too many."""

    codec = Codec.DEFLATE
    params = b""

    def __init__(self, begin: Callable[[], Splitter | None]) -> None:
        self._begin = begin
        self._inner = begin()
        self._between: bytes | None = None  # what came after a stream, while that is not enough
        self._verbatim = b""  # between the streams, and not said yet
        self._base = 0  # what the streams before this one cover, and what is between them
        self._covered = 0
        self.ended = False
        self.failed = "" if self._inner else "too many streams"

    def feed(self, data: bytes) -> Iterable[Event]:
        """The events of `data`, as `Splitter` says; they come as they are asked for."""
        while True:
            if self._between is not None:
                self._between += data
                if not self._begin_next(self._between):
                    return
                data, self._between = self._between[len(self._verbatim) :], None
            if self._inner is None:
                return
            yield from self._pass_on(self._inner.feed(data))
            self.failed = self._inner.failed
            if not self._inner.ended:
                return
            data, self._between = self._inner.unused, b""
            self._base = self._covered

    def _begin_next(self, between: bytes) -> bool:
        """Begin another stream if `between`, what came after one, ends in front of it; know whether
        that was the last one."""
        size = header_size(between[TRAILER_SIZE:])
        if size > 0 and (inner := self._begin()) is not None:
            self._inner, self._verbatim = inner, between[: TRAILER_SIZE + size]
            return True
        # A trailer that is not all there yet is followed by nothing one could judge by.
        self.ended = size != CUT_OFF
        return False

    def _pass_on(self, events: Iterable[Event]) -> Iterator[Event]:
        for event in events:
            if self._verbatim:
                self._base += len(self._verbatim)
                yield VerbatimEvent(self._verbatim, self._base)
                self._verbatim = b""
            if isinstance(event, SpanEvent):
                self._covered = self._base + event.covered
                yield SpanEvent(event.plain, event.side, self._covered)
            else:
                yield event

    def finish(self) -> Iterable[Event]:
        """The events that are left."""
        if self._between is not None:
            self.ended = True
        elif self._inner is not None:
            yield from self._pass_on(self._inner.finish())

    @property
    def unused(self) -> bytes:
        """What lies after the last stream: its trailer, and more."""
        return self._between or b""

    @property
    def rest(self) -> bytes:
        """What no span and no verbatim covers."""
        if self._between is not None:
            return self._between
        return self._verbatim + (self._inner.rest if self._inner else b"")
