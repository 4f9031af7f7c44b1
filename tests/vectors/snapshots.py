"""Snapshots (docs/format.md, section 4)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import msgpack

from cas.entry import Problem
from cas.ids import digest_of
from cas.snapshot import PageRef, Snapshot, encode_snapshot
from tests.vectors.vector import Maker, Vector

MAKE = Maker("snapshot")
MAGIC = b"CASs\x01"
FULL = Snapshot(
    "00-critical-context", "npu", "npu.example", (b"/opt/calrt", b"~/llm"), bytes(range(16)),
    1_700_000_000_000, 1_700_000_001_000, "fastcdc-ronomon-16k-64k-256k-v1", "0.1.0", 123_456,
    (PageRef(digest_of(b"p0"), b"opt", 1000, 2**40, 70_000),
     PageRef(digest_of(b"p1"), b"opt/calrt/z", 1, 0, 0)),
    (Problem(b"opt/calrt/secret", "permission denied", "run the agent as root"),
     Problem(b"opt/calrt/log", "changed while it was read", left_out=False)),
)  # fmt: skip
EMPTY = Snapshot("", "", "", (), bytes(16), 0, 0, "", "", 0, (), ())
TIER, SOURCE, HOST, ROOTS, RUN, STARTED, FINISHED, CHUNKER, VERSION, UNIQUE, PAGES, PROBLEMS = (
    range(12)
)


def _changed(field: int, value: object) -> bytes:
    fields = msgpack.unpackb(encode_snapshot(FULL)[len(MAGIC) :])
    fields[field] = value
    return MAGIC + bytes(msgpack.packb(fields))


def vectors() -> Iterator[Vector]:
    """Snapshots, and what is none."""
    yield MAKE.accept("full", "every field in use", encode_snapshot(FULL), FULL)
    yield MAKE.accept("empty", "nothing in it", encode_snapshot(EMPTY), EMPTY)
    late = replace(EMPTY, finished_ms=2**64 - 1)
    yield MAKE.accept("late", "the last time there is", encode_snapshot(late), late)
    yield from _other_forms()
    yield from _bad_fields()
    yield from _bad_pages()
    yield from _bad_problems()


def _other_forms() -> Iterator[Vector]:
    good = encode_snapshot(FULL)
    fields = msgpack.unpackb(good[5:])
    yield MAKE.refuse("version-2", "a newer version", b"CASs\x02" + good[5:])
    yield MAKE.refuse("trailing-byte", "a byte after the snapshot", good + b"\0")
    yield MAKE.refuse("cut-off", "without its last byte", good[:-1])
    yield MAKE.refuse("eleven-fields", "a field too few",
                      MAGIC + bytes(msgpack.packb(fields[:11])))  # fmt: skip
    yield MAKE.refuse("map", "fields with names",
                      MAGIC + bytes(msgpack.packb({"tier": "x"})))  # fmt: skip


def _bad_fields() -> Iterator[Vector]:
    for name, about, field, value, error in [
        ("tier-bytes", "a text as bytes", TIER, b"x", "FormatError"),
        ("tier-too-long", "a text of 4097 characters", TIER, "x" * 4097, "LimitError"),
        ("root-text", "a root as text", ROOTS, ["/opt"], "FormatError"),
        ("root-zero-byte", "a root with NUL", ROOTS, [b"/opt\0"], "FormatError"),
        ("run-short", "a run of 15 bytes", RUN, bytes(15), "FormatError"),
        ("run-long", "a run of 17 bytes", RUN, bytes(17), "FormatError"),
        ("time-negative", "before 1970", STARTED, -1, "FormatError"),
        ("time-float", "a time with a point", FINISHED, 1.0, "FormatError"),
        ("unique-true", "true for the size of 1", UNIQUE, True, "FormatError"),
    ]:
        yield MAKE.refuse(name, about, _changed(field, value), error)


def _bad_pages() -> Iterator[Vector]:
    one, two = digest_of(b"p0"), digest_of(b"p1")
    for name, about, rows in [
        ("pages-order", "pages not in order", [[one, b"b", 1, 0, 0], [two, b"a", 1, 0, 0]]),
        ("pages-twice", "two pages of one path", [[one, b"a", 1, 0, 0], [two, b"a", 1, 0, 0]]),
        ("pages-byte-order", "a! before a/", [[one, b"a!", 1, 0, 0], [two, b"a/b", 1, 0, 0]]),
        ("page-path-dot-dot", "a first path that is none", [[one, b"../etc", 1, 0, 0]]),
        ("page-path-empty", "no first path", [[one, b"", 1, 0, 0]]),
        ("page-id-short", "31 bytes", [[one[:31], b"a", 1, 0, 0]]),
        ("page-of-none", "a page without entries", [[one, b"a", 0, 0, 0]]),
        ("page-of-4097", "more entries than a page has", [[one, b"a", 4097, 0, 0]]),
        ("page-of-four", "a row of 4 fields", [[one, b"a", 1, 0]]),
    ]:
        yield MAKE.refuse(name, about, _changed(PAGES, rows))


def _bad_problems() -> Iterator[Vector]:
    for name, about, rows in [
        ("problem-one", "1 for true", [[b"a", "why", "", 1]]),
        ("problem-text-path", "a path as text", [["a", "why", "", True]]),
        ("problem-of-three", "a row of 3 fields", [[b"a", "why", True]]),
    ]:
        yield MAKE.refuse(name, about, _changed(PROBLEMS, rows))
