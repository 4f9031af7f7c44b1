"""Recipes of archives (docs/format.md, section 11)."""

from __future__ import annotations

from collections.abc import Iterator

import msgpack

from cas.archive import ArchiveRecipe, encode_archive_recipe
from cas.ids import Digest, digest_of
from cas.program import Begin, Codec, End, Skeleton, Span, Verbatim
from cas.recipe import Copy
from tests.vectors.vector import Maker, Vector

MAKE = Maker("archive")
MAGIC = b"CASr\x02"
HEADERS, ONE, TWO = digest_of(b"headers!"), digest_of(b"one"), digest_of(b"twotwo")
ALL = digest_of(b"headonersp!twotwo")
NO_DIGEST = Digest(bytes(32))
IDS = HEADERS + ONE + TWO
TAR = (Skeleton(4), Copy(1), Skeleton(4), Copy(1))
TAR_LIST = ((3, 4), (1, 1), (3, 4), (1, 1))
GZIP = (Begin(Codec.DEFLATE, 0), Copy(2), Span(1, 9, 6), Verbatim(1, 2), End(40))

ACCEPTED = [
    ("members", "two files among headers", ArchiveRecipe(
        17, ALL, (HEADERS, ONE, TWO), (8, 3, 6), 1, TAR)),
    ("stream", "a level with a span, and bytes after it", ArchiveRecipe(
        40, ALL, (HEADERS, ONE, TWO), (8, 3, 6), 1, GZIP)),
    ("span-first", "a span before its plain bytes", ArchiveRecipe(
        40, ALL, (HEADERS, ONE, TWO), (8, 3, 6), 1,
        (Begin(Codec.DEFLATE, 0), Span(1, 9, 8), Copy(2), End(40)))),
    ("first-part", "a part that leaves its level open", ArchiveRecipe(
        2**20, NO_DIGEST, (ONE,), (3,), 0, (Begin(Codec.DEFLATE, 0), Copy(1)))),
    ("no-size", "a part that took nothing from the archive", ArchiveRecipe(
        0, NO_DIGEST, (ONE,), (3,), 0, (Copy(1),))),
    ("skeleton-only", "no content at all", ArchiveRecipe(
        8, ALL, (HEADERS,), (8,), 1, (Skeleton(8),))),
    ("notes", "what was left as it is", ArchiveRecipe(
        3, ONE, (ONE,), (3,), 0, (Copy(1),), ("a.zip: encrypted", "\u00fc"))),
]  # fmt: skip


def _body(
    size: object = 17,
    digest: object = ALL,
    lengths: object = (8, 3, 6),
    ids: object = IDS,
    skeleton: object = 1,
    program: object = TAR_LIST,
    notes: object = (),
) -> bytes:
    fields = [size, digest, lengths, ids, skeleton, program, notes]
    return MAGIC + bytes(msgpack.packb(fields))


def vectors() -> Iterator[Vector]:
    """Archives' recipes, and what is none."""
    for name, about, recipe in ACCEPTED:
        yield MAKE.accept(name, about, encode_archive_recipe(recipe), recipe)
    yield from _other_forms()
    yield from _wrong_sums()
    yield from _wrong_arguments()


def _other_forms() -> Iterator[Vector]:
    good, refuse = _body(), MAKE.refuse
    yield refuse("version-3", "a newer version", b"CASr\x03" + good[5:])
    yield refuse("plain-magic", "the magic of a plain recipe", b"CASr\x01" + good[5:])
    yield refuse("trailing-byte", "a byte after the recipe", good + b"\0")
    yield refuse("five-fields", "the fields of a plain recipe",
                 MAGIC + bytes(msgpack.packb([17, ALL, (8, 3, 6), IDS, ()])))  # fmt: skip
    yield refuse("no-program", "an empty program", _body(3, ONE, (3,), ONE, 0, ()))
    yield refuse("split-copy", "two copies where one would do",
                 _body(program=((3, 8), (1, 1), (1, 1))))  # fmt: skip
    yield refuse("split-skeleton", "two skeletons where one would do",
                 _body(program=((3, 4), (3, 4), (1, 2))))  # fmt: skip
    yield refuse("hole", "a hole", _body(program=((3, 8), (2, 1), (1, 2))))
    yield refuse("unknown-operation", "an operation of a newer version",
                 _body(program=((3, 8), (1, 2), (8, 1))))  # fmt: skip
    yield refuse("unknown-codec", "a codec of a newer version",
                 _body(program=((4, 200, 8), (1, 2), (7, 1))))  # fmt: skip
    yield refuse("operation-of-nothing", "a list of no fields", _body(program=((), (1, 2))))


def _wrong_sums() -> Iterator[Vector]:
    refuse = MAKE.refuse
    yield refuse("skeleton-left", "skeleton bytes that nothing takes",
                 _body(program=((3, 7), (1, 2))))  # fmt: skip
    yield refuse("skeleton-short", "more skeleton bytes than there are",
                 _body(program=((3, 9), (1, 2))))  # fmt: skip
    yield refuse("skeleton-over-chunks", "more skeleton chunks than chunks", _body(skeleton=4))
    yield refuse("copies-too-few", "a chunk that is not copied", _body(program=((3, 8), (1, 1))))
    yield refuse("copies-too-many", "a copy of chunks that are not there",
                 _body(program=((3, 8), (1, 3))))  # fmt: skip
    yield refuse("ids-too-few", "three lengths, two ids", _body(ids=IDS[:64]))


def _wrong_arguments() -> Iterator[Vector]:
    refuse = MAKE.refuse
    level = ((4, 1, 0), (1, 2), (5, 1, 9, 8), (7, 40))
    yield refuse("level-0", "a span of level 0", _body(program=(*level[:2], (5, 0, 9, 8), (7, 40))))
    yield refuse("level-9", "a span of level 9", _body(program=(*level[:2], (5, 9, 9, 8), (7, 40))))
    yield refuse("span-of-three", "a span with an argument too few",
                 _body(program=(*level[:2], (5, 1, 9), (3, 8))))  # fmt: skip
    yield refuse("end-of-three", "an end with an argument too many",
                 _body(program=(*level[:3], (7, 40, 0))))  # fmt: skip
    yield refuse("end-negative", "an end of a size below 0", _body(program=(*level[:3], (7, -1))))
    yield refuse("side-over-its-limit", "side information of 16 MiB and a byte",
                 _body(lengths=(2**24, 1, 3), skeleton=2,
                       program=(level[0], (1, 1), (5, 1, 3, 2**24 + 1), (7, 40))))  # fmt: skip
    yield refuse("copy-of-true", "true for a count of 1",
                 _body(program=((3, 4), (1, True), (3, 4), (1, 1))))  # fmt: skip
    yield refuse("verbatim-of-none", "a verbatim of no bytes",
                 _body(program=((4, 1, 8), (1, 2), (6, 1, 0), (7, 40))))  # fmt: skip
    yield refuse(
        "note-too-long", "a note of 301 characters", _body(notes=("n" * 301,)), "LimitError"
    )
    yield refuse("note-bytes", "a note that is no text", _body(notes=(b"n",)))
    yield refuse("notes-too-many", "1001 notes", _body(notes=("n",) * 1001), "LimitError")
