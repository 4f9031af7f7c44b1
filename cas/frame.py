"""Frames: chunks compressed together, the same bytes on the wire and on disk (docs/format.md,
section 6).

A frame is one zstd frame (RFC 8878) with a window over all of it, at most `FRAME_LIMIT` plain
bytes. About every `SEGMENT_SIZE` plain bytes the encoder flushes: that ends a *segment*, which can
be decoded, hashed, stored and acknowledged as soon as those before it are here. A segment whose
content does not compress is stored as it is (`Codec.PLAIN`), outside the zstd stream: it can be
read without the others.

A payload must hold its segment, all of it and nothing else. The decoder is told the plain size.
From the headers of a payload's blocks it sees what they can give at most: for an honest one that is
little more, and zstd gets it in one step. Any other it gets in small bites: what one of them can
give, however crafted, is what the decoder takes in beyond that size before it stops.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from enum import IntEnum
from typing import IO, Protocol, cast

import zstandard

from cas.errors import FormatError, LimitError

FRAME_LIMIT = 32 * 2**20  # plain bytes
WINDOW_LOG = 25
FOREIGN_WINDOW_LOG = 27  # the most that zstd(1) takes without --long or --memory
FAST_LEVEL = 4
FAST_WINDOW_LOG = 23  # costs 0.2 % of the bytes at level 3, and is decoded a seventh faster
# The hash tables of levels 5 to 11 are made for small windows: they forget what lies some MiB back.
# With one as large as level 12's, level 6 stores 11 % less of an image and level 9 5 % less, at
# some two thirds and four fifths of the speed (docs/benchmarks.md, "Levels").
HASHED_LEVELS = range(FAST_LEVEL + 1, 13)
HASH_LOG = 23
SEGMENT_SIZE = 2**20  # plain bytes; a segment ends with the chunk that reaches it
SEGMENT_PLAIN_LIMIT = 16 * 2**20
SEGMENT_STORED_LIMIT = SEGMENT_PLAIN_LIMIT + 2**16
BITE_SIZE = 1024  # of a payload; its 256 shortest blocks make 32 MiB at most
OUTPUT_SIZE = SEGMENT_SIZE + 2**18  # most segments in one go: each step of zstd takes the GIL
STEP_LIMIT = 32 * 2**20  # plain bytes that a payload decoded in one step can give at most
BLOCK_LIMIT = 128 * 1024  # plain bytes of a compressed block (RFC 8878, 3.1.1.2.3)
BLOCK_RLE = 1
BLOCK_COMPRESSED = 2
SAMPLE_LEAST = 16 * 1024
SAMPLE_SLICE = 2 * 1024
SAMPLE_RATIO = 0.99  # gzip's output does not shrink at all, quantised weights by 3 to 4 %


class Codec(IntEnum):
    """How a segment's payload is stored."""

    PLAIN = 0
    ZSTD = 1


class FrameEncoder:
    """Compresses one frame, segment by segment. `level` is zstd's, 1 to 22. The frame had better
    end when it holds `limit` plain bytes."""

    def __init__(self, level: int, old: FrameEncoder | None = None) -> None:
        """Takes over the memory of `old`, which must not be used any more, if it had that level."""
        self.level = level
        self._compressor: zstandard.ZstdCompressor = (
            _compressor(level) if old is None or old.level != level else old._compressor
        )
        self._stream = self._compressor.compressobj()
        self.plain_size = 0
        # Past its window the fastest level looks round the window's end, at a tenth of its speed,
        # and finds nothing more for it; the others do.
        self.limit = 2**FAST_WINDOW_LOG if level == 1 else FRAME_LIMIT

    def segment(self, plain: Sequence[bytes | memoryview], *, last: bool) -> bytes:
        """The payload of the next segment, holding `plain` end to end; `last` ends the frame."""
        # Joined, since each step of zstd lets the GIL go and may have to wait to get it again.
        data = b"".join(plain)
        mode = zstandard.COMPRESSOBJ_FLUSH_FINISH if last else zstandard.COMPRESSOBJ_FLUSH_BLOCK
        self.plain_size += len(data)
        return self._stream.compress(data) + self._stream.flush(mode)


def _compressor(level: int) -> zstandard.ZstdCompressor:
    # Without long-distance matching, see docs/decisions/0004.
    window = FAST_WINDOW_LOG if level <= FAST_LEVEL else WINDOW_LOG
    more = {"hash_log": HASH_LOG} if level in HASHED_LEVELS else {}
    parameters = zstandard.ZstdCompressionParameters.from_level(level, window_log=window, **more)
    return zstandard.ZstdCompressor(compression_params=parameters)


class FrameDecoder:
    """Decodes the ZSTD segments of one frame, in order, each handed in once.

    After an error it is of no further use.
    """

    def __init__(self, old: FrameDecoder | None = None) -> None:
        """Takes over the memory of `old`, which must not be used any more: the page faults of a
        fresh window cost as much time as decoding a frame into it."""
        self._decompressor: zstandard.ZstdDecompressor = (
            zstandard.ZstdDecompressor(max_window_size=2**WINDOW_LOG)
            if old is None
            else old._decompressor
        )
        self._stream = self._decompressor.decompressobj(write_size=OUTPUT_SIZE)
        self._plain_size = 0
        self._whole_blocks = True  # so far every payload ended where a block ends

    def segment(self, payload: bytes | memoryview, plain_size: int) -> bytes:
        """The `plain_size` bytes of the next segment; raises FormatError unless `payload` holds
        just that many."""
        if not 0 < plain_size <= SEGMENT_PLAIN_LIMIT:
            raise LimitError(f"a segment of {plain_size} bytes is not within its limits")
        begun = self._plain_size > 0
        self._plain_size += plain_size
        if self._plain_size > FRAME_LIMIT:
            raise LimitError(f"a frame of {self._plain_size} bytes is over its limit")
        pieces = []
        left = plain_size
        for piece in self._decoded(memoryview(payload), begun=begun):
            pieces.append(piece)
            left -= len(piece)
            if left < 0:
                raise FormatError(f"a segment holds more than its {plain_size} bytes")
        if left:
            raise FormatError(f"a segment holds {plain_size - left} bytes instead of {plain_size}")
        return b"".join(pieces)

    def _decoded(self, payload: memoryview, *, begun: bool) -> Iterator[bytes]:
        bite = len(payload) if self._gives_little(payload, begun=begun) else BITE_SIZE
        for at in range(0, len(payload), bite or 1):
            try:
                piece = self._stream.decompress(payload[at : at + bite])
            except zstandard.ZstdError as error:
                raise FormatError(f"a segment cannot be decompressed: {error}") from error
            if self._stream.unused_data:
                raise FormatError("bytes follow the end of a frame")
            yield piece

    def _gives_little(self, payload: memoryview, *, begun: bool) -> bool:
        """Whether `payload` is whole blocks that give at most STEP_LIMIT, told from their headers
        as zstd will read them; once a payload was not, no later one is taken to be."""
        at = 0 if begun else _frame_header_size(payload)
        most = 0
        while self._whole_blocks and at < len(payload) and most <= STEP_LIMIT:
            header = int.from_bytes(payload[at : at + 3], "little")
            kind, size = header >> 1 & 3, header >> 3
            most += BLOCK_LIMIT if kind == BLOCK_COMPRESSED else size
            at += 3 + (1 if kind == BLOCK_RLE else size)
        self._whole_blocks = at == len(payload) and most <= STEP_LIMIT and self._whole_blocks
        return self._whole_blocks


def _frame_header_size(payload: memoryview) -> int:
    """The size of the frame header that `payload` begins with (RFC 8878, 3.1.1.1), more than there
    is if it begins with none."""
    if len(payload) < 5 or payload[:4] != zstandard.FRAME_HEADER:
        return len(payload) + 1
    descriptor = payload[4]
    single = descriptor >> 5 & 1
    content_size = (single, 2, 4, 8)[descriptor >> 6]
    return 5 + (1 - single) + (0, 1, 2, 4)[descriptor & 3] + content_size


class Sampler:
    """Says from a sample whether compressing is worth its time. For one thread."""

    def __init__(self) -> None:
        self._compressor = zstandard.ZstdCompressor(level=1)

    def is_compressible(self, chunk: bytes | memoryview) -> bool:
        """Whether four slices of `chunk` shrink at level 1; short ones are taken to."""
        if len(chunk) < SAMPLE_LEAST:
            return True
        step = (len(chunk) - SAMPLE_SLICE) // 3
        starts = range(0, 3 * step + 1, step)
        sample = b"".join([bytes(chunk[at : at + SAMPLE_SLICE]) for at in starts])
        return len(self._compressor.compress(sample)) < SAMPLE_RATIO * len(sample)


class StreamCompressor(Protocol):
    """Compresses a stream: what `compress` and at last `flush` give is one zstd frame."""

    def compress(self, data: bytes, /) -> bytes: ...

    def flush(self) -> bytes: ...


def stream_compressor(level: int) -> StreamCompressor:
    """For a file that others read: with the window of our frames, and a checksum. One thread, so
    that the same bytes always come out the same."""
    parameters = zstandard.ZstdCompressionParameters.from_level(
        level, window_log=WINDOW_LOG, write_checksum=True
    )
    stream: StreamCompressor = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    return stream


def compress_small(data: bytes, level: int = 12) -> bytes:
    """`data`, not empty, as one zstd frame that states its size: for messages and pages."""
    return zstandard.ZstdCompressor(level=level).compress(data)


def decompress_small(data: bytes, *, limit: int) -> bytes:
    """What `compress_small` was given; raises LimitError before memory for more than `limit`."""
    try:
        size = zstandard.frame_content_size(data)
        if size > limit:
            raise LimitError(f"a compressed message of {size} bytes is over its limit of {limit}")
        if size < 1:  # not stated, or none: then the library would not look at the rest
            raise FormatError("a compressed message is empty or does not state its size")
        return zstandard.ZstdDecompressor(max_window_size=2**WINDOW_LOG).decompress(
            data, allow_extra_data=False
        )
    except zstandard.ZstdError as error:
        raise FormatError(f"compressed data cannot be read: {error}") from error


class ZstdReader:
    """The plain bytes of any zstd frames, one after another, whoever made them: not a store's.

    `take` gives up to so many compressed bytes, nothing at their end; it is asked for `piece`.
    """

    def __init__(self, take: Callable[[int], bytes], piece: int) -> None:
        decompressor = zstandard.ZstdDecompressor(max_window_size=2**FOREIGN_WINDOW_LOG)
        source = cast("IO[bytes]", _Readable(take))  # all that is asked of it
        self._reader = decompressor.stream_reader(source, read_size=piece, read_across_frames=True)

    def read(self, size: int) -> bytes:
        """Up to `size` bytes, nothing at the end; raises FormatError."""
        try:
            return self._reader.read1(size)  # no further than to a frame's end
        except zstandard.ZstdError as error:
            raise FormatError(f"a compressed stream cannot be read: {error}") from error


class _Readable:
    """As the library wants to have a source."""

    def __init__(self, take: Callable[[int], bytes]) -> None:
        self.read = take
