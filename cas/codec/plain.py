"""The plain bytes of compressed streams, by the ordinary decompressors of the system.

For whoever knows from a recipe how many plain bytes there are and wants them again; nothing is
taken apart or proved here. Streams that follow one another are one: those of bzip2, xz and zstd
say where they end, and between deflate streams lies what a recipe has as `Verbatim`.
"""

from __future__ import annotations

import bz2
import lzma
import zlib
from collections.abc import Callable
from typing import Protocol

from cas.errors import FormatError
from cas.frame import ZstdReader
from cas.program import Codec

PIECE = 2**16  # compressed bytes that are asked for at a time
PLAIN_PIECE = 2**20  # plain bytes that are given at a time, at most
XZ_MEMORY = 2**28  # bytes; its own -9 needs 65 MiB

Between = Callable[[], int | None]
Take = Callable[[int], bytes]  # up to so many of the compressed bytes; nothing at their end
FAILURES = (zlib.error, lzma.LZMAError, OSError, EOFError, ValueError)  # of a decompressor


class Plain(Protocol):
    """Decompresses one level. It never takes more than `PIECE` bytes beyond what it needed for the
    plain bytes that it has given."""

    def more(self) -> bytes:
        """The next plain bytes, up to `PLAIN_PIECE`; nothing at the end. Raises FormatError, and
        what the taking of compressed bytes raises."""


def decompressor(codec: Codec, take: Take, between: Between) -> Plain:
    """What decompresses the bytes that `take` gives. Before each deflate stream `between` is asked
    how many bytes lie before it; None if no stream follows."""
    if codec is Codec.ZSTD:
        return _Zstd(take)
    if codec is Codec.DEFLATE:
        return _Streams(_Inflate, take, between)
    if codec is Codec.BZIP2:
        return _Streams(bz2.BZ2Decompressor, take, None)
    return _Streams(lambda: lzma.LZMADecompressor(memlimit=XZ_MEMORY), take, None)


class _Decoder(Protocol):
    """One stream; as in `bz2` and `lzma`."""

    def decompress(self, data: bytes, max_length: int = ...) -> bytes: ...
    @property
    def eof(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...


class _Inflate:
    """A raw deflate stream as a `_Decoder`."""

    def __init__(self) -> None:
        self._stream = zlib.decompressobj(-zlib.MAX_WBITS)

    def decompress(self, data: bytes, max_length: int = 0) -> bytes:
        waiting = self._stream.unconsumed_tail
        return self._stream.decompress(waiting + data if waiting else data, max_length)

    @property
    def eof(self) -> bool:
        return self._stream.eof

    @property
    def unused_data(self) -> bytes:
        return self._stream.unused_data


class _Streams:
    """Several streams of one kind, one after another; without `between` zeros may lie there."""

    def __init__(self, begin: Callable[[], _Decoder], take: Take, between: Between | None) -> None:
        self._begin = begin
        self._take = take
        self._between = between
        self._decoder: _Decoder | None = None
        self._data = b""  # taken, and not fed yet

    def more(self) -> bytes:
        """Contract as of `Plain`."""
        while True:
            decoder = self._decoder or self._next_stream()
            if decoder is None:
                return b""
            # What it still has to give comes before it is fed.
            plain = self._feed(decoder)
            if decoder.eof:
                self._data, self._decoder = decoder.unused_data, None
            if plain:
                return plain
            if not decoder.eof:
                self._data = self._take(PIECE)
                if not self._data:
                    raise FormatError("a compressed stream ends too early")

    def _feed(self, decoder: _Decoder) -> bytes:
        data, self._data = self._data, b""
        try:
            return decoder.decompress(data, PLAIN_PIECE)
        except FAILURES as error:
            raise FormatError(f"a compressed stream cannot be read: {error}") from error

    def _next_stream(self) -> _Decoder | None:
        """Begin the stream that follows, if there is one."""
        if self._between is None:
            data = self._data.lstrip(b"\0")
            while not data and (more := self._take(PIECE)):
                data = more.lstrip(b"\0")
        else:
            count = self._between()
            if count is None:
                return None
            data = self._pass_over(count)
        self._data = data
        if data or self._between is not None:
            self._decoder = self._begin()
        return self._decoder

    def _pass_over(self, count: int) -> bytes:
        data = self._data
        while len(data) < count:
            count -= len(data)
            data = self._take(PIECE)
            if not data:
                raise FormatError("a compressed stream ends too early")
        return data[count:]


class _Zstd:
    """Frames and what may be skipped between them."""

    def __init__(self, take: Take) -> None:
        self._reader = ZstdReader(take, PIECE)

    def more(self) -> bytes:
        """Contract as of `Plain`."""
        return self._reader.read(PLAIN_PIECE)
