"""One compressed stream being taken apart: a level of the recipe, and the source of what is in it.

Plain bytes go to whoever reads `plain`, which is how far the stream below is read. Spans go to the
recipe on the way, in order, each as soon as its side information is there; plain bytes are never
more than a few MiB ahead of it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future

from cas.codec.base import Event, SpanEvent, Splitter, VerbatimEvent
from cas.unpack.builder import Builder
from cas.unpack.limits import Budget, is_too_much
from cas.unpack.source import Source

FEED = 16 * 1024  # compressed bytes at a time: what they hold may be a thousand times as much
FEED_DENSE, DENSE = 1024, 50  # at a time, where they hold more than so many times as much
LAG = 8 * 2**20  # plain bytes of spans whose side information is not there yet


class BrokenPromise(Exception):
    """A codec did not do what it must (cas/codec/base.py): nothing built with it can be used."""


class Stream:
    """The stream that `below` is at. `begins` tries it; then `open`, read `plain` to its end, and
    `close`."""

    def __init__(self, below: Source, splitter: Splitter, builder: Builder, budget: Budget) -> None:
        self._below = below
        self._splitter = splitter
        self._builder = builder
        self._budget = budget
        self._events = self._run()
        self._first: Event | None = None
        self._level = 0
        self._waiting: deque[SpanEvent | VerbatimEvent] = deque()
        self._waiting_plain = 0
        self._fed = self._covered = 0
        self._given = self._spanned = 0
        self.plain = Source(self._more)
        self.reason = ""  # why it was not taken apart to its end

    def begins(self) -> bool:
        """Whether anything can be made of it. If not, nothing was read."""
        self._first = next(self._events, None)
        if self._first is None:
            rest = self._splitter.rest
            if len(rest) != self._fed:
                raise BrokenPromise(f"{self._splitter.codec.name}: bytes are lost")
            self._below.unread(rest)
            self.plain.close()
            self.reason = self._splitter.failed or "cut off"
        return self._first is not None

    def open(self) -> None:
        """Begin the level; what is written from now on goes through the codec."""
        self._level = self._builder.begin(self._splitter.codec, self._splitter.params)

    def close(self) -> bool:
        """End the level, when `plain` has been read to its end; what lies behind it is next in the
        source below. Whether it was the stream's proper end."""
        splitter, rest = self._splitter, self._splitter.rest
        while self._waiting:
            self._write_span()
        if self._spanned != self._given or self._covered + len(rest) != self._fed:
            raise BrokenPromise(f"{splitter.codec.name}: the spans do not come out at the stream")
        self._builder.end(self._covered)
        self._below.unread(rest)
        self.plain.close()
        self.reason = self.reason or splitter.failed
        if not (splitter.ended or self.reason):
            self.reason = "cut off"
        return splitter.ended

    def _more(self, _welcome: int) -> bytes:
        while (event := self._next()) is not None:
            if not isinstance(event, bytes):
                self._waiting.append(event)
                self._waiting_plain += event.plain if isinstance(event, SpanEvent) else 0
            self._write_spans()
            if isinstance(event, bytes) and event:
                self._given += len(event)
                self._budget.plain(len(event), self._splitter.codec)
                return event
        return b""

    def _next(self) -> Event | None:
        event, self._first = self._first, None
        return next(self._events, None) if event is None else event

    def _run(self) -> Iterator[Event]:
        """What the splitter says, until it has no more to say or there has been enough."""
        splitter, budget = self._splitter, self._budget
        while not (splitter.ended or splitter.failed):
            if is_too_much(self._given, self._fed) or budget.is_spent:
                self.reason = "it holds too much for its size"
                break
            is_dense = self._given > DENSE * self._fed
            data = self._below.read(FEED_DENSE if is_dense else FEED)
            if not data:
                break
            self._fed += len(data)
            yield from splitter.feed(data)
        if not (splitter.ended or splitter.failed):
            yield from splitter.finish()

    def _write_spans(self) -> None:
        """Write down what is ready; wait for it when too much is not."""
        while self._waiting and (self._waiting_plain > LAG or _is_ready(self._waiting[0])):
            self._write_span()

    def _write_span(self) -> None:
        event = self._waiting.popleft()
        self._covered = event.covered
        if isinstance(event, VerbatimEvent):
            self._builder.verbatim(self._level, event.data)
            return
        side = event.side if isinstance(event.side, bytes) else event.side.result()
        self._builder.span(self._level, event.plain, side)
        self._spanned += event.plain
        self._waiting_plain -= event.plain


def _is_ready(event: SpanEvent | VerbatimEvent) -> bool:
    return (
        not (isinstance(event, SpanEvent) and isinstance(event.side, Future)) or event.side.done()
    )
