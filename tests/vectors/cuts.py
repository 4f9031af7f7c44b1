"""Cuts (docs/format.md, section 7). The input is made by rule, so that nobody must keep it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from cas.chunker import cut_whole
from cas.ids import digest_of
from tests.vectors.vector import Maker, Vector

MAKE = Maker("chunker")
WORDS = b"chunk digest recipe entry tier plan set source snapshot origin frame segment".split()


def noise(size: int) -> bytes:
    """SHA-256 of 0, 1, 2 ... (8 bytes, little-endian), end to end."""
    blocks = range(-(-size // 32))
    return b"".join(hashlib.sha256(n.to_bytes(8, "little")).digest() for n in blocks)[:size]


def text(size: int) -> bytes:
    """Lines `n word word word`, the words chosen by the three lowest digits of n * n in base 12."""
    lines, length, n = [], 0, 0
    while length < size:
        square = n * n
        words = (WORDS[square // 12**place % 12] for place in range(3))
        lines.append(b"%d %b\n" % (n, b" ".join(words)))
        length += len(lines[-1])
        n += 1
    return b"".join(lines)[:size]


def zeros(size: int) -> bytes:
    """Nothing but zeros: the pattern never ends a chunk early."""
    return bytes(size)


INPUTS = {"noise": noise, "text": text, "zeros": zeros}
CASES = [
    ("empty", "noise", 0),
    ("one-byte", "noise", 1),
    ("least", "noise", 16384),
    ("least-and-one", "noise", 16385),
    ("noise", "noise", 1_500_000),
    ("text", "text", 1_000_000),
    ("most", "zeros", 262_144),
    ("most-and-one", "zeros", 262_145),
    ("zeros", "zeros", 600_000),
]


def vectors() -> Iterator[Vector]:
    """Streams and the lengths of their chunks."""
    for name, kind, size in CASES:
        data = INPUTS[kind](size)
        given = {"input": kind, "size": size, "digest": digest_of(data)}
        yield MAKE.accept(name, f"{size} bytes of {kind}", b"", cut_whole(data), given)
