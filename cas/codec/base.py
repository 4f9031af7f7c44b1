"""What a codec is: two halves that undo each other.

A `Splitter` takes a compressed stream in pieces and gives *events*, in the order of the stream:
plain bytes, and *spans*. A span says that a `Joiner`, given the same plain bytes and the span's
side information, writes exactly the compressed bytes that the span covers; the splitter has tried
that before it says so. Side information may be ready later than its plain bytes (a future), so
that several threads can work on it.

Spans cover the stream from its start without gaps. Where a stream is cut off, broken, or too much,
the splitter stops after the last span that holds, and what no span covers goes another way.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from cas.program import Codec


@dataclass(frozen=True, slots=True)
class SpanEvent:
    """The next `plain` bytes of those not yet in a span are one; with it the spans cover `covered`
    whole bytes of the compressed stream (a byte of which some bits are left over is not whole)."""

    plain: int
    side: Future[bytes] | bytes
    covered: int


@dataclass(frozen=True, slots=True)
class VerbatimEvent:
    """Bytes of the compressed stream between two spans that mean nothing to the codec."""

    data: bytes
    covered: int


Event: TypeAlias = bytes | SpanEvent | VerbatimEvent  # bytes: the next plain bytes


class Splitter(Protocol):
    """Takes one compressed stream apart. Not thread-safe; holds a bounded amount of memory."""

    @property
    def codec(self) -> Codec:
        """Which codec's joiner undoes it."""

    @property
    def params(self) -> bytes:
        """What the joiner must be begun with; known from the start, before any event."""

    def feed(self, data: bytes) -> Iterable[Event]:
        """The events that `data`, the next of the stream, brings. All of it is taken; what lies
        after the stream's end is in `unused`. Never raises for what the data is: see `failed`.

        The caller takes all events before anything else is asked; a generator need not hold the
        plain bytes of all at a time, however many there are."""

    def finish(self) -> Iterable[Event]:
        """No data follows, perhaps because nobody wants more of it: the events that are left. A
        stream that ends properly has ended by itself as a rule, and then there are none."""

    @property
    def ended(self) -> bool:
        """Whether the stream has come to its proper end."""

    @property
    def failed(self) -> str:
        """Why nothing more can be taken apart, or nothing. No more events come then."""

    @property
    def unused(self) -> bytes:
        """What was fed and lies after the stream's end; once `ended`."""

    @property
    def rest(self) -> bytes:
        """What was fed and no span covers, from the last whole byte on; whether or not the stream
        has ended. It is what must be kept as it is when there will be no more spans."""


class Joiner(Protocol):
    """Writes one compressed stream again. What it is told may be hostile: it raises FormatError
    (LimitError), and holds a bounded amount of memory.

    Calls return pieces of the compressed stream, in order; a future's piece comes when it is done.
    """

    def write(self, plain: bytes) -> Sequence[Piece]:
        """The next plain bytes."""

    def span(self, plain: int, side: bytes) -> Sequence[Piece]:
        """The next `plain` bytes, written already or still to come, are one span."""

    def verbatim(self, data: bytes) -> Sequence[Piece]:
        """After the spans before it, `data` as it is."""

    def end(self) -> Sequence[Piece]:
        """No more comes; raises FormatError where plain bytes or spans are left over."""


Piece: TypeAlias = bytes | Future[bytes]


class JoinerFactory(Protocol):
    """Begins joiners; `pool` is for work that can be done side by side."""

    def __call__(self, codec: Codec, params: bytes, pool: Executor) -> Joiner:
        """A joiner for one stream; raises FormatError for parameters that mean nothing."""
