"""Structured values (docs/format.md, section 1): the one form of each, and others that are not."""

from __future__ import annotations

from collections.abc import Iterator

import msgpack

from tests.vectors.vector import Maker, Vector

MAKE = Maker("value")

ACCEPTED: list[tuple[str, object]] = [
    ("int-0", 0),
    ("int-127", 127),
    ("int-128", 128),
    ("int-255", 255),
    ("int-256", 256),
    ("int-65535", 65535),
    ("int-65536", 65536),
    ("int-u32", 2**32 - 1),
    ("int-over-u32", 2**32),
    ("int-u64", 2**64 - 1),
    ("int-minus-1", -1),
    ("int-minus-32", -32),
    ("int-minus-33", -33),
    ("int-minus-128", -128),
    ("int-minus-129", -129),
    ("int-minus-32769", -32769),
    ("int-i32", -(2**31)),
    ("int-below-i32", -(2**31) - 1),
    ("int-i64", -(2**63)),
    ("true", True),
    ("false", False),
    ("bytes-empty", b""),
    ("bytes-255", bytes(255)),
    ("bytes-256", bytes(256)),
    ("text-empty", ""),
    ("text-31", "a" * 31),
    ("text-32", "a" * 32),
    ("text-256", "a" * 256),
    ("text-utf8", "\u00fc\u20ac\U0001f9ca"),
    ("list-empty", []),
    ("list-15", [0] * 15),
    ("list-16", [0] * 16),
    ("list-nested", [[], [[1, b"x"]], "y"]),
]

REFUSED = [
    ("nothing", "no value at all", ""),
    ("cut-off-list", "a list of two with one item", "9201"),
    ("cut-off-int", "a uint 16 of one byte", "cd01"),
    ("cut-off-bytes", "three bytes of four", "c404010203"),
    ("trailing-byte", "a byte after the value", "9000"),
    ("two-values", "a value after the value", "9090"),
    ("int-uint8-small", "1 as uint 8", "cc01"),
    ("int-uint16-small", "255 as uint 16", "cd00ff"),
    ("int-uint32-small", "65535 as uint 32", "ce0000ffff"),
    ("int-uint64-small", "1 as uint 64", "cf0000000000000001"),
    ("int-int8-positive", "1 as int 8", "d001"),
    ("int-int16-positive", "200 as int 16", "d100c8"),
    ("int-int8-small", "-1 as int 8", "d0ff"),
    ("int-int16-small", "-33 as int 16", "d1ffdf"),
    ("int-int64-small", "-1 as int 64", "d3ffffffffffffffff"),
    ("bytes-16-short", "one byte as bin 16", "c5000161"),
    ("bytes-32-short", "one byte as bin 32", "c60000000161"),
    ("text-8-short", "one letter as str 8", "d90161"),
    ("text-16-short", "one letter as str 16", "da000161"),
    ("text-no-utf8", "a byte that is not UTF-8", "a1ff"),
    ("text-surrogate", "a lone surrogate", "a3eda080"),
    ("text-overlong", "a slash in two bytes", "a2c0af"),
    ("list-16-short", "an empty list as array 16", "dc0000"),
    ("list-32-short", "an empty list as array 32", "dd00000000"),
    ("map", "a map of one pair", "810102"),
    ("extension", "an extension of one byte", "d40500"),
    ("timestamp", "an extension that msgpack knows", "d6ff00000000"),
    ("never-used", "the one byte msgpack gives no meaning", "c1"),
    ("claims-a-list", "a list of 2^32 - 1 items", "ddffffffff"),
    ("claims-bytes", "bytes of 2^32 - 1", "c6ffffffff"),
    ("claims-lists-within-lists", "500 lists of 2^31 items, each in the other", "dd80000000" * 500),
    ("nested-2000-deep", "more lists within lists than any stack", "91" * 2000 + "00"),
]


def vectors() -> Iterator[Vector]:
    """Values as such, whatever they are used for."""
    for name, value in ACCEPTED:
        yield MAKE.accept(name, name, msgpack.packb(value), value)
    for name, about, digits in REFUSED:
        yield MAKE.refuse(name, about, bytes.fromhex(digits))
