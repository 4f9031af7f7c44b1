"""Deflate streams (RFC 1951), taken apart by the compiled core (cas/native/src/deflate).

A stream is cut into spans of about 1 MiB of plain bytes, each analysed by itself, several at a
time. What the encoder was like is found out with the first of them; if it is none that is known,
and telling what it did would take too many bytes, the stream is given up before anything came of
it. The plain bytes of a span come after it has been proved, so nothing has to be taken back.

What undoes it rebuilds spans side by side too. Each gives bits, not bytes; the last bits of one and
the first of the next share a byte, so spans hand them on in order.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field

from cas._native import Config, Span, choose, rebuild
from cas._native import Splitter as Cutter
from cas.codec.base import Event, Piece, SpanEvent
from cas.errors import FormatError
from cas.program import Codec

WINDOW = 32 * 1024
STEP = 16 * 1024  # compressed bytes at a time; they may be 16 MiB of plain ones
FIRST_SPANS = 4  # by which the encoder is judged
AHEAD = 2  # spans that are being analysed
# Of the compressed bytes, and bytes: more side information is too much. zstd makes of the plain
# bytes some 6 % less than deflate did, so up to here nothing is lost even if no byte comes twice.
WORTH, WORTH_FREE = 0.06, 24
# Of the compressed bytes: the encoder of an earlier stream need not be questioned. A long stream is
# worth finding out that its encoder was a close relation.
LIKELY, LIKELY_LONG, LIKELY_FREE = 0.01, 0.001, 48
LONG = 256 * 1024  # plain bytes
KNOWN = 3  # encoders that are remembered: to try one costs a millisecond, to find one out a second
GIVE_UPS = 8  # streams in a row
SMALL = 64 * 1024  # plain bytes that are done sooner than handed to another thread


@dataclass(slots=True)
class Encoder:
    """What is known of those who wrote the streams of an archive, or of the ones before it: the
    latest first."""

    configs: list[Config] = field(default_factory=list)
    given_up: int = 0  # streams, since one could be done

    def found(self, config: Config) -> None:
        """Remember who wrote a stream."""
        self.given_up = 0
        self.configs = [config, *(known for known in self.configs if known != config)][:KNOWN]

    @property
    def is_hopeless(self) -> bool:
        """Whether it is not worth trying once more."""
        return self.given_up >= GIVE_UPS


class DeflateSplitter:
    """Takes one raw deflate stream apart; `encoder` is what others in the archive taught, and is
    taught by this one. See `cas.codec.base.Splitter`."""

    codec = Codec.DEFLATE
    params = b""

    def __init__(self, pool: Executor, encoder: Encoder) -> None:
        self._pool = pool
        self._encoder = encoder
        self._cutter = Cutter()
        self._first: list[Span] | None = []  # until the encoder has been judged
        self._config: Config | None = None
        self._known: tuple[Config | None, list[bytes]] = (None, [])
        self._analysed: deque[tuple[Span, Future[bytes] | bytes]] = deque()
        self._rest = bytearray()  # fed, and not covered
        self._bits = self._covered = 0
        self._reason = ""

    @property
    def ended(self) -> bool:
        """Whether the stream has come to its end, and all of it is covered."""
        return self._cutter.finished and not self.failed

    @property
    def failed(self) -> str:
        """Why there is no more."""
        return self._reason or (self._cutter.failed or "")

    @property
    def unused(self) -> bytes:
        """What lies behind the stream."""
        return bytes(self._rest) if self.ended else b""

    @property
    def rest(self) -> bytes:
        """What no span covers."""
        return bytes(self._rest)

    def feed(self, data: bytes) -> Iterator[Event]:
        """The events of `data`."""
        self._rest += data
        for at in range(0, len(data), STEP):
            if self._cutter.finished or self.failed:
                break
            for span in self._cutter.feed(data[at : at + STEP]):
                yield from self._take(span)
        if self._cutter.finished or self.failed:
            yield from self.finish()

    def finish(self) -> Iterator[Event]:
        """The events that are left; of a stream that was cut off, down to its last symbol."""
        if not self._reason and (span := self._cutter.finish()) is not None:
            yield from self._take(span)
        if self._first and not self._reason:
            yield from self._judge()
        while self._analysed:
            yield from self._tell()

    def _take(self, span: Span) -> Iterable[Event]:
        if self._reason:
            return []
        if self._first is not None:
            self._first.append(span)
            # Of an encoder that is known one span is enough: others would only take memory.
            is_known = len(self._first) == 1 and self._is_recognised(span)
            return self._judge() if is_known or len(self._first) == FIRST_SPANS else []
        self._analysed.append((span, self._pool.submit(span.analyse, self._config)))
        return self._tell() if len(self._analysed) > AHEAD else []

    def _judge(self) -> Iterable[Event]:
        """Find out about the encoder; then the first spans can be told, or nothing can."""
        spans, self._first = self._first or [], None
        config, sides = self._known
        if config is None:
            config = self._pool.submit(choose, spans).result()
        sides += self._analyse(spans[len(sides) :], config)
        if _share(sides, spans, WORTH, WORTH_FREE) > 1:
            self._encoder.given_up += 1
            self._reason = "written by no known encoder"
            return []
        self._encoder.found(config)
        self._config = config
        self._analysed.extend(zip(spans, sides, strict=True))
        return self._tell()

    def _is_recognised(self, span: Span) -> bool:
        """Whether an encoder that is known wrote the stream's first span."""
        self._known = self._recognise(span)
        return self._known[0] is not None

    def _recognise(self, span: Span) -> tuple[Config | None, list[bytes]]:
        """The encoder that is known and wrote `span`, if one did, with the side information."""
        likely = LIKELY_LONG if span.plain_size >= LONG else LIKELY
        for config in self._encoder.configs:
            sides = self._analyse([span], config)
            if _share(sides, [span], likely, LIKELY_FREE) <= 1:
                return config, sides
        return None, []

    def _analyse(self, spans: list[Span], config: Config) -> list[bytes]:
        if len(spans) == 1 and spans[0].plain_size <= SMALL:
            return [spans[0].analyse(config)]
        futures = [self._pool.submit(span.analyse, config) for span in spans]
        return [future.result() for future in futures]

    def _tell(self) -> Iterator[Event]:
        """The oldest span that has been analysed."""
        if not self._analysed:
            return
        span, side = self._analysed.popleft()
        self._bits += span.compressed_bits
        covered = (self._bits + 7) // 8 if span.last else self._bits // 8
        del self._rest[: covered - self._covered]
        self._covered = covered
        yield SpanEvent(
            span.plain_size, side if isinstance(side, bytes) else side.result(), covered
        )
        yield span.plain


def _share(sides: Sequence[bytes], spans: Sequence[Span], share: float, free: int) -> float:
    """How the side information compares with `free` bytes and a share of the compressed ones."""
    compressed = sum(span.compressed_bits for span in spans) / 8
    return sum(map(len, sides)) / (share * compressed + free)


@dataclass(slots=True)
class _Tail:
    """The last bits of a span, which lack some to fill a byte: that byte, or nothing."""

    byte: int = 0


class DeflateJoiner:
    """Writes deflate streams again. See `cas.codec.base.Joiner`."""

    def __init__(self, params: bytes, pool: Executor) -> None:
        if params:
            raise FormatError("parameters of deflate that mean nothing")
        self._pool = pool
        self._plain = bytearray()
        self._steps: deque[tuple[int, bytes] | bytes] = deque()
        self._history = b""
        self._before: tuple[Future[bytes], _Tail] | None = None

    def write(self, plain: bytes) -> Sequence[Piece]:
        """The next plain bytes."""
        self._plain += plain
        return self._ready()

    def span(self, plain: int, side: bytes) -> Sequence[Piece]:
        """The next span."""
        self._steps.append((plain, side))
        return self._ready()

    def verbatim(self, data: bytes) -> Sequence[Piece]:
        """What lies between two streams."""
        self._steps.append(data)
        return self._ready()

    def end(self) -> Sequence[Piece]:
        """No more comes."""
        if self._plain or self._steps:
            raise FormatError("a recipe's deflate stream ends in the middle of a span")
        return []

    def _ready(self) -> list[Piece]:
        """Begin whatever has all that it needs."""
        pieces: list[Piece] = []
        while self._steps:
            step = self._steps[0]
            if isinstance(step, bytes):
                pieces.append(step)
                self._history, self._before = b"", None
            elif step[0] <= len(self._plain):
                pieces.append(self._begin(*step))
            else:
                break
            self._steps.popleft()
        return pieces

    def _begin(self, size: int, side: bytes) -> Future[bytes]:
        plain = bytes(memoryview(self._plain)[:size])
        del self._plain[:size]
        tail = _Tail()
        piece = self._pool.submit(_rebuild, self._history, plain, side, self._before, tail)
        self._before = (piece, tail)
        self._history = (self._history + plain[-WINDOW:])[-WINDOW:]
        return piece


def _rebuild(
    history: bytes,
    plain: bytes,
    side: bytes,
    before: tuple[Future[bytes], _Tail] | None,
    tail: _Tail,
) -> bytes:
    """The whole bytes that a span brings to an end; the others are left in `tail`. A span waits for
    the one before it, which was begun earlier, so somebody is always at work."""
    try:
        bits, used = rebuild(history, plain, side)
    except ValueError as error:
        raise FormatError(f"a deflate stream cannot be rebuilt: {error}") from error
    joined = bytearray(bits)
    if before is not None:
        before[0].result()
        if joined:
            joined[0] |= before[1].byte
        else:
            joined.append(before[1].byte)
            used = used or 1
    if used and joined:
        tail.byte = joined.pop()
    return bytes(joined)
