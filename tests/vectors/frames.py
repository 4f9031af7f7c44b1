"""Frames (docs/format.md, section 6). `given` has the sizes of each segment: plain, and stored."""

from __future__ import annotations

import random
from collections.abc import Iterator

import zstandard

from cas.frame import FrameEncoder
from cas.ids import digest_of
from tests.vectors.vector import Maker, Vector

MAKE = Maker("frame")
MIB = 2**20
TEXTS = [b"the first segment, " * 40, b"and the first again, " * 50, b"the last, " * 30]
NOISE = random.Random(1).randbytes(1000)


def _payloads(texts: list[bytes], *, last: bool = True) -> list[bytes]:
    encoder = FrameEncoder(3)
    end = len(texts) - 1
    return [encoder.segment([t], last=last and n == end) for n, t in enumerate(texts)]


def _accept(name: str, about: str, texts: list[bytes], payloads: list[bytes]) -> Vector:
    sizes = [[len(text), len(payload)] for text, payload in zip(texts, payloads, strict=True)]
    value = [{"size": len(text), "digest": digest_of(text)} for text in texts]
    return MAKE.accept(name, about, b"".join(payloads), value, sizes)


def _refuse(name: str, about: str, sizes: list[int], payloads: list[bytes],
            error: str = "FormatError") -> Vector:  # fmt: skip
    given = [[size, len(payload)] for size, payload in zip(sizes, payloads, strict=True)]
    return MAKE.refuse(name, about, b"".join(payloads), error, given)


def vectors() -> Iterator[Vector]:
    """Frames, and what is none. The last segment is the one that is refused."""
    whole, unfinished = _payloads(TEXTS), _payloads(TEXTS, last=False)
    yield _accept("three-segments", "a frame with its end", TEXTS, whole)
    yield _accept("no-end", "a frame that was never ended", TEXTS, unfinished)
    yield _accept("one-byte", "the shortest segment", [b"x"], _payloads([b"x"]))
    yield _accept("noise", "what does not compress", [NOISE], _payloads([NOISE]))
    blocks = [bytes(131072), b"x"]
    yield _accept("whole-block", "a segment of just one block", blocks, _payloads(blocks))
    checked = zstandard.ZstdCompressor(write_checksum=True).compress(TEXTS[0])
    yield _accept("checksum", "a frame with a checksum and its size", TEXTS[:1], [checked])
    yield from _wrong_sizes(unfinished)
    yield from _wrong_bytes(whole)
    yield from _too_large()


def _wrong_sizes(payloads: list[bytes]) -> Iterator[Vector]:
    one, two = len(TEXTS[0]), len(TEXTS[1])
    yield _refuse("less", "a byte less than stated", [one + 1], payloads[:1])
    yield _refuse("more", "a byte more than stated", [one - 1], payloads[:1])
    yield _refuse("less-later", "the second a byte short", [one, two + 1], payloads[:2])
    yield _refuse("more-later", "the second a byte over", [one, two - 1], payloads[:2])
    yield _refuse("two-in-one", "two segments' bytes as one payload", [one],
                  [payloads[0] + payloads[1]])  # fmt: skip
    yield _refuse("nothing-left", "a segment after the frame's end", [one, two],
                  [_payloads(TEXTS[:1])[0], b""])  # fmt: skip
    yield _refuse("no-bytes", "a segment of no bytes", [0], payloads[:1], "LimitError")


def _wrong_bytes(payloads: list[bytes]) -> Iterator[Vector]:
    one = len(TEXTS[0])
    single = _payloads(TEXTS[:1])[0]
    yield _refuse("empty-payload", "no payload", [one], [b""])
    yield _refuse("cut-off", "a payload without its last byte", [one], [payloads[0][:-1]])
    yield _refuse("not-zstd", "a payload of something else", [one], [b"\0" * 20])
    yield _refuse("starts-late", "the second segment without the first", [len(TEXTS[1])],
                  [payloads[1]])  # fmt: skip
    yield _refuse("trailing-bytes", "bytes after the frame's end", [one], [single + b"more"])
    yield _refuse("trailing-frame", "another frame after the end", [one], [single + single])
    empty = zstandard.ZstdCompressor().compress(b"")
    yield _refuse("trailing-empty-frame", "a frame of nothing after the end", [one],
                  [single + empty])  # fmt: skip
    checked = bytearray(zstandard.ZstdCompressor(write_checksum=True).compress(TEXTS[0]))
    checked[-1] ^= 1
    yield _refuse("checksum-wrong", "a checksum that does not fit", [one], [bytes(checked)])
    plain = zstandard.ZstdCompressor().compress(TEXTS[1])
    named = plain[:4] + bytes([plain[4] | 1, 7]) + plain[5:]  # dictionary 7, RFC 8878 3.1.1.1
    yield _refuse("dictionary", "a frame that asks for a dictionary", [len(TEXTS[1])], [named])


def _too_large() -> Iterator[Vector]:
    zeros = bytes(16 * MIB)
    three = _payloads([zeros] * 3)
    yield _refuse("segment-too-large", "16 MiB and a byte", [16 * MIB + 1], three[:1], "LimitError")
    yield _refuse("frame-too-large", "48 MiB", [16 * MIB] * 3, three, "LimitError")
    wide = zstandard.ZstdCompressionParameters.from_level(3, window_log=26)
    stream = zstandard.ZstdCompressor(compression_params=wide).compressobj()
    payload = stream.compress(TEXTS[0]) + stream.flush()
    yield _refuse("window-too-large", "a window of 64 MiB", [len(TEXTS[0])], [payload])
    stream = zstandard.ZstdCompressor(level=19).compressobj()
    bomb = b"".join(stream.compress(zeros) for _ in range(8)) + stream.flush()
    yield _refuse("bomb", "128 MiB where 1 MiB is stated", [MIB], [bomb])
