"""Side information of deflate spans (docs/format.md, section 12). `given` has the plain bytes: some
of a zoo stream from `start` on, with what is before them as history, or as they are."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterator
from functools import cache
from typing import Any

from cas._native import Splitter, choose, config_of, rebuild
from tests.vectors.vector import Maker, Vector
from tests.zoo.stream import STREAMS

MAKE = Maker("side")
SPAN_SIZE = 32 * 1024
WINDOW = 32 * 1024

# A stream of each family: of each, the second span.
NAMES = (
    "gzip-1",
    "gzip-6",
    "gzip-9-rsyncable",
    "zlib-6-full-flush",
    "zlib-0",
    "pigz-6",
    "go-1",
    "go-6",
    "go-huffman",
    "node-6",
    "pgzip-default-v1.15.12",
    "klauspost-1-v1.15.12",
    "klauspost-5-v1.13.6",
    "klauspost-9-v1.15.12",
    "libdeflate-1",
    "libdeflate-12",
    "zlibng-1",
    "zlibng-2",
    "igzip-0",
    "igzip-1",
    "igzip-3",
    "7z-5",
)


def spans(name: str, size: int) -> Iterator[tuple[bytes, bytes, bytes]]:
    """History, plain bytes and side information of each span of a stream."""
    data = (STREAMS / name).read_bytes()
    splitter, history = Splitter(size), b""
    found = splitter.feed(_deflate_of(data))
    config = choose(found)
    for span in found:
        side = span.analyse(config)
        config = config_of(side) or config
        yield history, span.plain, side
        history = (history + span.plain)[-WINDOW:]


def _deflate_of(data: bytes) -> bytes:
    """What follows the header of a gzip file that says no more than a name."""
    return data[data.index(0, 10) + 1 :] if data[3] else data[10:]


@cache
def _plain(name: str) -> bytes:
    data = (STREAMS / name).read_bytes()
    return zlib.decompressobj(31).decompress(data)


def plain_of(given: dict[str, Any]) -> tuple[bytes, bytes]:
    """History and plain bytes that a vector says its span has."""
    if "stream" not in given:
        return b"", bytes.fromhex(given["plain"])
    start, size = given["start"], given["size"]
    whole = _plain(given["stream"])
    return whole[max(0, start - WINDOW) : start], whole[start : start + size]


def read_side(vector: Vector) -> dict[str, Any]:
    """What is rebuilt: its size and SHA-256, and how many bits of its last byte are used."""
    bits, used = rebuild(*plain_of(vector.given), vector.body)
    return {"size": len(bits), "sha256": hashlib.sha256(bits).hexdigest(), "used": used}


def vectors() -> Iterator[Vector]:
    """A span of each encoder, spans that are kept as they are, and what is no side information."""
    yield from map(_of_stream, NAMES)
    yield from _as_they_are()
    yield from _refused()


def _of_stream(name: str) -> Vector:
    (_, before, _), (_, plain, side), *_ = spans(f"{name}.gz", SPAN_SIZE)
    given = {"stream": f"{name}.gz", "start": len(before), "size": len(plain)}
    return _accept(name, f"the second span of {name}.gz", side, given)


def _accept(name: str, about: str, side: bytes, given: dict[str, Any]) -> Vector:
    value = read_side(Vector(MAKE.format, name, about, "accept", side, given=given))
    return MAKE.accept(name, about, side, value, given)


EMPTY = {"plain": ""}


def _as_they_are() -> Iterator[Vector]:
    yield _accept("kept", "a whole stream, kept as it is", b"\x01\x08\x03\x00", EMPTY)
    yield _accept("kept-bits", "six bits from bit 1 of a byte on", b"\x01\x79\x7e", EMPTY)


def _refused() -> Iterator[Vector]:
    given = {"plain": ""}
    for name, about, body in (
        ("empty", "no bytes", b""),
        ("version-0", "version 0", b"\x00\x08\x03\x00"),
        ("version-2", "version 2", b"\x02\x08\x03\x00"),
        ("kept-nothing", "no bits, kept as they are", b"\x01\x08"),
        ("kept-too-much", "bits of the span before are kept too", b"\x01\x09\x03"),
        ("kept-behind", "bits of the span behind are kept too", b"\x01\x38\x0f"),
        ("kept-unknown", "nine bits of a byte", b"\x01\x98\x03"),
        ("no-configuration", "nothing after the flags", b"\x01\x20"),
        ("configuration-8", "a configuration that is not known", b"\x01\x20\x08"),
        ("usual-model", "the usual model told as another", _usual_model()),
        ("runs-of-nobody", "runs without an expert", b"\x01\x60\x00"),
    ):
        yield MAKE.refuse(name, about, body, given=given)
    good = _of_stream("gzip-6")
    for name, about, body in (
        ("trailing-zero", "a zero after the end", good.body + b"\x00"),
        ("trailing", "a byte after the end", good.body + b"\x01"),
        ("cut-off", "without the last byte", good.body[:-1]),
    ):
        yield MAKE.refuse(name, about, body, given=good.given)


def _usual_model() -> bytes:
    """The form of a model's numbers, as if they were not those that a 2 stands for."""
    short, chain = b"\x02\x01", bytes([4, 15, 128, 0, 2, 1, 2, 1])
    return b"\x01\x20\x04" + short + chain + b"\xff" * 8 + b"\x00"
