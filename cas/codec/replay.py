"""Codecs whose encoders are run again: bzip2, xz, zstd.

A `Replay` of the right settings, given the plain bytes, writes the compressed stream once more. The
settings are found by trying likely ones on the stream's beginning, and what the encoder writes is
compared with the stream all along, piece by piece, so a splitter needs no second pass and little
memory. Where they part, or at the end of a stream that was cut off, the span ends: its side
information says how much of the encoder's output is right, and all that follows in the stream is
left to others.

Side information of a span (docs/format.md, section 13): empty where all that the encoder writes is
right, its end included; else the number of right bytes, 8 bytes little-endian.

What an encoder has written when the comparison fails may be some way beyond the right bytes; a
joiner holds back as much as that can be (`HELD_BACK`) until it hears of the span's end.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Protocol

from cas._native import Replay
from cas.codec.base import Event, SpanEvent
from cas.errors import FormatError, LimitError

# More than what any encoder here can write at once: a zstd job of 32 MiB that does not compress.
HELD_BACK = 40 * 2**20
PIECE = 2**20  # plain bytes that an encoder is given at once
EXPANSION_LIMIT = 64 * 2**20  # plain bytes out of one piece of a stream
_TAKE_SIZE = 8


class Patience(Protocol):
    """How long a codec may work: what it is handed when it is asked for a splitter."""

    @property
    def patience_ns(self) -> int:
        """A processor's time for each plain byte."""


class Decoder(Protocol):
    """What decodes one stream: `bz2.BZ2Decompressor` and others of the kind."""

    @property
    def eof(self) -> bool:
        """Whether the stream's end was seen."""

    @property
    def unused_data(self) -> bytes:
        """What was given and lies after it."""

    def decompress(self, data: bytes, max_length: int = -1, /) -> bytes:
        """The plain bytes, no more than `max_length`; more may wait."""


class Comparison:
    """Runs an encoder beside a stream that is decoded, and compares."""

    def __init__(self, encoder: Replay) -> None:
        self._encoder = encoder
        self._stream = bytearray()  # of the compressed stream, what the encoder has yet to write
        self._written = bytearray()  # of the encoder's output, what the stream has yet to show
        self.right = 0  # bytes that agree
        self.plain = 0  # plain bytes that the encoder has
        self.parted = False

    def stream(self, data: bytes) -> None:
        """The next bytes of the compressed stream."""
        self._stream += data
        self._compare()

    def unstream(self, count: int) -> None:
        """The last `count` bytes were not of the stream after all."""
        if count:
            del self._stream[-count:]

    def write(self, plain: bytes) -> None:
        """The plain bytes that these held."""
        self.plain += len(plain)
        self._written += self._encoder.write(plain)
        self._compare()

    def finish(self) -> bool:
        """The stream has ended properly: whether it is all that the encoder writes. If not, what
        it wrote at the end counts for nothing: a joiner ends an encoder only where all is right."""
        right, stream = self.right, bytes(self._stream)
        self._written += self._encoder.finish()
        self._compare()
        if not (self._stream or self._written):
            return True
        self.right, self._stream = right, bytearray(stream)
        return False

    @property
    def rest(self) -> bytes:
        """What of the stream is not known to be right."""
        return bytes(self._stream)

    def _compare(self) -> None:
        count = min(len(self._stream), len(self._written))
        if not count or self.parted:
            return
        agree = count
        if self._stream[:count] != self._written[:count]:
            agree = _common(self._stream, self._written, count)
            self.parted = True
        del self._stream[:agree]
        del self._written[:agree]
        self.right += agree


def _common(one: bytearray, other: bytearray, count: int) -> int:
    """How many bytes both begin with, of `count`."""
    low, high = 0, count
    while low < high:
        middle = (low + high + 1) // 2
        if one[:middle] == other[:middle]:
            low = middle
        else:
            high = middle - 1
    return low


class StreamSplitter:
    """Decodes one stream and compares it: gives plain bytes, and at the end its one span.

    `errors` is what the decoder raises for a damaged stream. After the end or a failure, `rest` is
    what no span covers and `unused` what lies after the stream.
    """

    def __init__(self, decoder: Decoder, encoder: Replay, errors: type[Exception]) -> None:
        self._decoder = decoder
        self._comparison = Comparison(encoder)
        self._errors = errors
        self.ended = False
        self.failed = ""
        self.unused = b""

    @property
    def rest(self) -> bytes:
        """What of the stream no span covers."""
        return b"" if self.ended else self._comparison.rest

    @property
    def covered(self) -> int:
        """Bytes of the stream that are right."""
        return self._comparison.right

    def feed(self, data: bytes) -> list[Event]:
        """See `Splitter.feed`; `covered` of the span is counted from the stream's start."""
        if self.ended or self.failed:
            self._comparison.stream(data)
            return []
        events: list[Event] = []
        self._comparison.stream(data)
        left = EXPANSION_LIMIT
        plain = self._decode(data)
        while plain:
            events.append(plain)
            self._comparison.write(plain)
            left -= len(plain)
            self.failed = self.failed or self._doubt(left)
            is_all = bool(self.failed) or self._decoder.eof or len(plain) < PIECE
            plain = b"" if is_all else self._decode(b"")
        if self._decoder.eof and not self.failed:
            self._end(events)
        return events + self._cut() if self.failed else events

    def _decode(self, data: bytes) -> bytes:
        try:
            plain = self._decoder.decompress(data, PIECE)
        except self._errors as error:
            self.failed = f"damaged: {error}"
            return b""
        if self._decoder.eof:
            self.unused = self._decoder.unused_data
            self._comparison.unstream(len(self.unused))
        return plain

    def _doubt(self, left: int) -> str:
        """What speaks against going on, or nothing."""
        if self._comparison.parted:
            return "no known encoder writes it"
        return "it expands too much" if left < 0 else ""

    def _end(self, events: list[Event]) -> None:
        comparison = self._comparison
        self.ended = comparison.finish()
        if self.ended:
            events.append(SpanEvent(comparison.plain, b"", comparison.right))
        else:
            self.failed = "no known encoder writes its end"

    def finish(self) -> list[Event]:
        """The stream ends here, without its proper end."""
        if self.ended or self.failed:
            return []
        self.failed = "cut off"
        return self._cut()

    def _cut(self) -> list[Event]:
        comparison = self._comparison
        if not comparison.plain:
            return []
        side = comparison.right.to_bytes(_TAKE_SIZE, "little")
        return [SpanEvent(comparison.plain, side, comparison.right)]


class ReplayJoiner:
    """Writes streams again with encoders that `begin` makes, one for each span."""

    def __init__(self, begin: Callable[[], Replay]) -> None:
        self._begin = begin
        self._encoder: Replay | None = None
        self._spans: deque[tuple[int, bytes] | bytes] = deque()  # spans and verbatim bytes to come
        self._plain = bytearray()
        self._given = 0  # plain bytes that the encoder has
        self._held = bytearray()  # its output that is held back
        self._out = 0  # its output that is not

    def write(self, plain: bytes) -> Sequence[bytes]:
        """See `Joiner.write`."""
        self._plain += plain
        return self._work()

    def span(self, plain: int, side: bytes) -> Sequence[bytes]:
        """See `Joiner.span`."""
        if len(side) not in (0, _TAKE_SIZE):
            raise FormatError("side information of a wrong size")
        self._spans.append((plain, side))
        return self._work()

    def verbatim(self, data: bytes) -> Sequence[bytes]:
        """See `Joiner.verbatim`."""
        self._spans.append(data)
        return self._work()

    def end(self) -> Sequence[bytes]:
        """See `Joiner.end`."""
        pieces = self._work()
        if self._spans or self._plain or self._encoder is not None:
            raise FormatError("a level ends before its spans, or they before it")
        return pieces

    def _work(self) -> list[bytes]:
        pieces: list[bytes] = []
        while self._spans or self._plain:
            following = self._spans[0] if self._spans else None
            if isinstance(following, bytes):
                if self._encoder is not None:
                    raise FormatError("bytes between streams, in a stream")
                pieces.append(following)
                self._spans.popleft()
                continue
            room = len(self._plain) if following is None else following[0] - self._given
            if room < 0:
                raise FormatError("a span of fewer bytes than were there")
            piece = bytes(self._plain[: min(room, PIECE)])
            self._encode(piece, pieces)
            if following is not None and self._given == following[0]:
                self._end_span(following[1], pieces)
            elif not piece:
                break
        return pieces

    def _encode(self, piece: bytes, pieces: list[bytes]) -> None:
        del self._plain[: len(piece)]
        if self._encoder is None:
            self._encoder = self._begin()
        if piece:
            self._given += len(piece)
            self._held += self._encoder.write(piece)
        if len(self._held) > HELD_BACK:
            self._release(len(self._held) - HELD_BACK, pieces)

    def _end_span(self, side: bytes, pieces: list[bytes]) -> None:
        assert self._encoder is not None  # _encode made one
        if side:
            count = int.from_bytes(side, "little") - self._out
            if count > len(self._held):
                # When an encoder gives what it has ready depends on the pieces it is fed; one more
                # byte, which is not of the stream, has it give what it gave the splitter.
                self._held += self._encoder.write(b"\0")
            if not 0 <= count <= len(self._held):
                raise LimitError("more right bytes than the encoder writes")
        else:
            self._held += self._encoder.finish()
            count = len(self._held)
        self._release(count, pieces)
        self._held.clear()
        self._spans.popleft()
        self._encoder, self._given, self._out = None, 0, 0

    def _release(self, count: int, pieces: list[bytes]) -> None:
        if count:
            pieces.append(bytes(self._held[:count]))
            del self._held[:count]
            self._out += count
