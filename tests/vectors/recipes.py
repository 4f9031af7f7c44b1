"""Recipes (docs/format.md, section 2)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import msgpack

from cas.ids import Digest, digest_of
from cas.recipe import Copy, Hole, Recipe, encode_recipe
from tests.vectors.vector import Maker, Vector

MAKE = Maker("recipe")
MAGIC = b"CASr\x01"
ONE, TWO = digest_of(b"one"), digest_of(b"twotwo")
ALL = digest_of(b"onetwotwo")
OTHER = digest_of(b"of other bytes")
IDS = ONE + TWO

PLAIN = Recipe(9, ALL, (ONE, TWO), (3, 6))
SPARSE = Recipe(
    4096 + 9 + 2**40, OTHER, (ONE, TWO), (3, 6),
    (Hole(4096), Copy(1), Hole(2**40), Copy(1)),
)  # fmt: skip
ACCEPTED = [
    ("one-chunk", "a last part of one chunk", Recipe(3, ONE, (ONE,), (3,))),
    ("two-chunks", "the short form: one copy of all", PLAIN),
    ("twice", "one chunk twice", Recipe(6, ALL, (ONE, ONE), (3, 3))),
    ("sparse", "holes before and between chunks", SPARSE),
    (
        "ends-in-a-hole",
        "a hole at the end",
        Recipe(10, ALL, (ONE, TWO), (3, 6), (Copy(2), Hole(1))),
    ),
    ("all-hole", "no chunk at all", Recipe(2**62, OTHER, (), (), (Hole(2**62),))),
    ("largest-chunk", "a chunk of 16 MiB", Recipe(2**24, ONE, (ONE,), (2**24,))),
    ("no-digest", "of a file marked HOLE_DIGEST", replace(SPARSE, digest=Digest(bytes(32)))),
]


def _body(size: object = 9, digest: object = ALL, lengths: object = (3, 6), ids: object = IDS,
          program: object = ()) -> bytes:  # fmt: skip
    return MAGIC + bytes(msgpack.packb([size, digest, lengths, ids, program]))


def vectors() -> Iterator[Vector]:
    """Recipes, and what is none."""
    for name, about, recipe in ACCEPTED:
        yield MAKE.accept(name, about, encode_recipe(recipe), recipe)
    yield from _other_forms()
    yield from _wrong_sums()
    yield from _wrong_types()


def _other_forms() -> Iterator[Vector]:
    good = _body()
    refuse = MAKE.refuse
    yield refuse("empty", "no bytes", b"")
    yield refuse("magic-only", "nothing after the magic", MAGIC)
    yield refuse("version-0", "an older version that never was", b"CASr\x00" + good[5:])
    yield refuse("version-2", "a newer version", b"CASr\x02" + good[5:])
    yield refuse("another-format", "the magic of a page", b"CASg\x01" + good[5:])
    yield refuse("trailing-byte", "a byte after the recipe", good + b"\0")
    yield refuse("cut-off", "without its last byte", good[:-1])
    yield refuse("long-int", "the size 9 as uint 8", MAGIC + b"\x95\xcc\x09" + good[7:])
    yield refuse("long-list", "the list as array 16", MAGIC + b"\xdc\x00\x05" + good[6:])
    yield refuse("plain-program", "the short form written out", _body(program=[[1, 2]]))
    yield refuse("split-copy", "two copies where one would do", _body(program=[[1, 1], [1, 1]]))
    yield refuse("split-hole", "two holes where one would do",
                 _body(size=11, program=[[1, 2], [2, 1], [2, 1]]))  # fmt: skip
    yield refuse("copy-as-true", "true for operation 1",
                 _body(size=10, program=[[True, 2], [2, 1]]))  # fmt: skip
    yield refuse("copy-as-float", "1.0 for operation 1",
                 _body(size=10, program=[[1.0, 2], [2, 1]]))  # fmt: skip
    yield refuse("reserved-operation", "an operation of a newer version",
                 _body(size=10, program=[[1, 2], [3, 1]]))  # fmt: skip


def _wrong_sums() -> Iterator[Vector]:
    refuse = MAKE.refuse
    yield refuse("of-nothing", "no bytes, no chunks", _body(0, digest_of(b""), (), b""))
    yield refuse("size-too-small", "one byte less than its chunks", _body(size=8))
    yield refuse("size-too-large", "one byte more than its chunks", _body(size=10))
    yield refuse("copies-too-few", "a chunk that is not copied",
                 _body(size=10, program=[[1, 1], [2, 1]]))  # fmt: skip
    yield refuse("copies-too-many", "a copy of chunks that are not there",
                 _body(size=10, program=[[1, 3], [2, 1]]))  # fmt: skip
    yield refuse("ids-too-few", "two lengths, one id", _body(ids=ONE))
    yield refuse("ids-do-not-come-out", "half an id", _body(ids=IDS[:-16]))
    yield refuse("copy-of-none", "a copy of no chunk", _body(size=10, program=[[1, 0], [2, 1]]))
    yield refuse("hole-of-none", "a hole of no size", _body(program=[[1, 2], [2, 0]]))
    yield refuse("chunk-of-none", "a chunk of no bytes", _body(3, lengths=(3, 0)))
    yield refuse("chunk-too-large", "a chunk of 16 MiB and a byte",
                 _body(2**24 + 4, lengths=(3, 2**24 + 1)))  # fmt: skip
    yield refuse("size-over-its-limit", "2^62 + 1 bytes",
                 _body(2**62 + 1, program=[[1, 2], [2, 2**62 - 8]]))  # fmt: skip
    yield refuse("count-over-its-limit", "a copy of 2^18 + 1",
                 _body(size=10, program=[[1, 2**18 + 1], [2, 1]]))  # fmt: skip


def _wrong_types() -> Iterator[Vector]:
    refuse = MAKE.refuse
    yield refuse("not-a-list", "an integer", MAGIC + b"\x01")
    yield refuse("four-fields", "a list of 4", MAGIC + bytes(msgpack.packb([9, ALL, (3, 6), IDS])))
    yield refuse("six-fields", "a list of 6",
                 MAGIC + bytes(msgpack.packb([9, ALL, (3, 6), IDS, (), 0])))  # fmt: skip
    yield refuse("nil-program", "nil for the program", _body(program=None))
    yield refuse("size-text", "the size as text", _body(size="9"))
    yield refuse("size-negative", "a size below 0", _body(size=-1))
    yield refuse("digest-short", "31 bytes for a digest", _body(digest=ALL[:-1]))
    yield refuse("digest-long", "33 bytes for a digest", _body(digest=ALL + b"\0"))
    yield refuse("digest-text", "a digest as text", _body(digest="d" * 32))
    yield refuse("lengths-bytes", "lengths as bytes", _body(lengths=b"\x03\x06"))
    yield refuse("length-true", "true for a length of 1", _body(7, lengths=(True, 6)))
    yield refuse("operation-of-three", "an operation of 3 fields",
                 _body(size=10, program=[[1, 2, 0], [2, 1]]))  # fmt: skip
    yield refuse("operation-int", "an operation that is no list", _body(size=10, program=[1, 2]))
