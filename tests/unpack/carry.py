"""Codecs that are toys: the side information of a span is the compressed bytes themselves, and a
checksum of the plain bytes, so that whatever a stream is, a wrong recipe of it is found out."""

from __future__ import annotations

import bz2
import lzma
import zlib
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, Future
from typing import Protocol

from cas.codec.base import Event, Piece, SpanEvent, Splitter
from cas.errors import FormatError
from cas.ids import DIGEST_SIZE, digest_of
from cas.program import Codec
from cas.unpack.detect import Form
from cas.unpack.limits import Budget

JOINERS = dict.fromkeys(
    (Codec.DEFLATE, Codec.BZIP2, Codec.XZ), ("tests.unpack.carry", "CarryJoiner")
)
STEP = 700  # compressed bytes in a span


class Decompressor(Protocol):
    @property
    def eof(self) -> bool: ...

    @property
    def unused_data(self) -> bytes: ...

    def decompress(self, data: bytes, /) -> bytes: ...


class CarrySplitter:
    """Spans of `STEP` compressed bytes, of which every other one is ready later."""

    params = b""

    def __init__(self, codec: Codec, decompressor: Decompressor) -> None:
        self.codec = codec
        self._decompressor = decompressor
        self._covered = 0
        self._late: deque[tuple[Future[bytes], bytes]] = deque()
        self.ended = False
        self.failed = ""
        self.unused = self.rest = b""

    def feed(self, data: bytes) -> Iterator[Event]:
        for at in range(0, len(data), STEP):
            piece = data[at : at + STEP]
            try:
                plain = self._decompressor.decompress(piece)
            except (zlib.error, OSError, lzma.LZMAError):
                self.failed = "broken"
                self.rest = data[at:]
                self._settle()
                return
            self.ended = self._decompressor.eof
            taken = len(piece) - len(self._decompressor.unused_data)
            yield from self._span(plain, piece[:taken])
            if self.ended:
                self.unused = self.rest = data[at + taken :]
                return

    def _span(self, plain: bytes, stream: bytes) -> Iterator[Event]:
        self._settle()
        self._covered += len(stream)
        side = digest_of(plain) + stream
        if self._covered // STEP % 2 or self.ended:
            yield SpanEvent(len(plain), side, self._covered)
        else:
            future = Future[bytes]()
            self._late.append((future, side))
            yield SpanEvent(len(plain), future, self._covered)
        yield plain[: len(plain) // 2]
        yield plain[len(plain) // 2 :]

    def _settle(self) -> None:
        while self._late:
            future, side = self._late.popleft()
            future.set_result(side)

    def finish(self) -> Sequence[Event]:
        self._settle()
        return []


class CarryJoiner:
    """Undoes `CarrySplitter`."""

    def __init__(self, params: bytes, pool: Executor) -> None:
        self._plain = bytearray()
        self._steps: deque[tuple[int, bytes] | bytes] = deque()

    def write(self, plain: bytes) -> Sequence[Piece]:
        self._plain += plain
        return self._ready()

    def span(self, plain: int, side: bytes) -> Sequence[Piece]:
        self._steps.append((plain, side))
        return self._ready()

    def verbatim(self, data: bytes) -> Sequence[Piece]:
        self._steps.append(data)
        return self._ready()

    def end(self) -> Sequence[Piece]:
        if self._plain or self._steps:
            raise FormatError("plain bytes or spans are left over")
        return []

    def _ready(self) -> list[Piece]:
        pieces: list[Piece] = []
        while self._steps:
            step = self._steps[0]
            if isinstance(step, bytes):
                pieces.append(step)
            elif step[0] <= len(self._plain):
                size, side = step
                if digest_of(bytes(self._plain[:size])) != side[:DIGEST_SIZE]:
                    raise FormatError("other plain bytes than there were")
                pieces.append(side[DIGEST_SIZE:])
                del self._plain[:size]
            else:
                break
            self._steps.popleft()
        return pieces


class CarrySplitters:
    """The toys, for all forms but zstd; `begin` counts them."""

    def __init__(self) -> None:
        self.begun = 0

    def begin_archive(self) -> None:
        self.begun = 0

    def deflate(self) -> Splitter:
        self.begun += 1
        return CarrySplitter(Codec.DEFLATE, zlib.decompressobj(-15))

    def other(self, form: Form, head: bytes, budget: Budget) -> Splitter | None:
        self.begun += 1
        if form is Form.BZIP2:
            return CarrySplitter(Codec.BZIP2, bz2.BZ2Decompressor())
        if form is Form.XZ:
            return CarrySplitter(Codec.XZ, lzma.LZMADecompressor())
        return None
