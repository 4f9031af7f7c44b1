"""Pages (docs/format.md, section 3)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgpack

from cas.entry import HOLE_DIGEST, IMPLIED, INCONSISTENT, UNREADABLE, Content, Entry, Kind, Owner
from cas.ids import EMPTY_DIGEST, digest_of
from cas.page import encode_page
from tests.vectors.vector import Maker, Vector

MAKE = Maker("page")
MAGIC = b"CASg\x01"
PREFIXES, SUFFIXES, KINDS, OWNERS, OWNER, TIMES, SIZES, DIGESTS, COUNTS, PARTS, TARGETS, DEVICES, \
    EXTRAS = range(13)  # fmt: skip

ROOT = Owner(0o755, 0, 0, b"root", b"root")
USER = Owner(0o644, 1000, 2**32 - 1)
T = 1_700_000_000_123_456_789
D = digest_of(b"x")


def _file(path: bytes, size: int = 1, **more: Any) -> Entry:
    content = Content(size, D if size else EMPTY_DIGEST, 1 if size else 0)
    return Entry(path, Kind.FILE, USER, T, size, content, **more)


def _directory(path: bytes) -> Entry:
    return Entry(path, Kind.DIRECTORY, ROOT, T)


EVERY_KIND = [
    _directory(b"k"),
    Entry(b"k/block", Kind.BLOCK_DEVICE, ROOT, T, device=(8, 1)),
    Entry(b"k/character", Kind.CHARACTER_DEVICE, ROOT, T + 1, device=(2**32 - 1, 0)),
    Entry(b"k/fifo", Kind.FIFO, USER, T - 1),
    _file(b"k/file", 5),
    Entry(b"k/socket", Kind.SOCKET, USER, 0),
    Entry(b"k/symlink", Kind.SYMLINK, ROOT, T, target=b"../nowhere/\xff"),
]
ORDER = [_file(path) for path in (
    b"a", b"a/b", b"a/b/c", b"a/b!", b"a/\xff", b"a!", b"a!/x", b"aa", b"b", b"\xff",
)]  # fmt: skip
CONTENTS = [
    _file(b"c/empty", 0),
    Entry(b"c/holes", Kind.FILE, USER, T, 2**62, Content(2**62, D, 0, (digest_of(b"r0"),))),
    Entry(b"c/large", Kind.FILE, USER, T, 2**33,
          Content(2**33, D, 131072, (digest_of(b"r1"), digest_of(b"r2")))),
    _file(b"c/one", 2**24),
    Entry(b"c/unhashed", Kind.FILE, USER, T, 2**40,
          Content(2**40, D, 1, (digest_of(b"r3"),)), flags=HOLE_DIGEST),
    Entry(b"c/unreadable", Kind.FILE, USER, T, 77, flags=UNREADABLE),
]  # fmt: skip
EXTRA = [
    _file(b"x/flagged", flags=INCONSISTENT),
    _file(b"x/linked", link=b"8:1234"),
    _file(b"x/marked", xattrs=((b"security.capability", b"\1\0"), (b"user.empty", b""))),
    Entry(b"x/unlisted", Kind.DIRECTORY, ROOT, T, flags=UNREADABLE),
]
TIMES_FAR = [
    Entry(b"t/%d" % number, Kind.FIFO, USER, time)
    for number, time in enumerate((-(2**63), 2**63 - 1, -(2**63), 0, -1))
]
ACCEPTED = [
    ("one-name", "the shortest page", [_directory(b"a")]),
    ("every-kind", "one entry of each kind", EVERY_KIND),
    ("path-order", "a slash is before every other byte", ORDER),
    ("contents", "every case of a content", CONTENTS),
    ("extras", "flags, a link, xattrs", EXTRA),
    (
        "implied",
        "a directory above a root, and the root",
        [
            Entry(b"i", Kind.DIRECTORY, ROOT, 0, flags=IMPLIED),
            _directory(b"i/root"),
        ],
    ),
    ("times", "times as far apart as they can be", TIMES_FAR),
    ("longest-part", "a part of 255 bytes", [_file(b"p" * 255)]),
    ("dots", "names that begin with dots", [_file(p) for p in (b"...", b"..a", b".a", b"a/..b")]),
]


def vectors() -> Iterator[Vector]:
    """Pages, and what is none."""
    for name, about, entries in ACCEPTED:
        yield MAKE.accept(name, about, encode_page(entries), entries)
    yield from _other_forms()
    yield from _bad_paths()
    yield from _bad_owners_and_times()
    yield from _bad_contents()
    yield from _bad_extras()


def _changed(entries: list[Entry], changes: dict[int, object]) -> bytes:
    """The page of `entries` with some of its columns changed."""
    columns = msgpack.unpackb(encode_page(entries)[len(MAGIC) :])
    for column, value in changes.items():
        columns[column] = value
    return MAGIC + bytes(msgpack.packb(columns))


def _refuse(name: str, about: str, entries: list[Entry], changes: dict[int, object],
            error: str = "FormatError") -> Vector:  # fmt: skip
    return MAKE.refuse(name, about, _changed(entries, changes), error)


def _other_forms() -> Iterator[Vector]:
    good = encode_page(EVERY_KIND)
    yield MAKE.refuse("empty", "no bytes", b"")
    yield MAKE.refuse("version-2", "a newer version", b"CASg\x02" + good[5:])
    yield MAKE.refuse("trailing-byte", "a byte after the page", good + b"\0")
    yield MAKE.refuse("cut-off", "without its last byte", good[:-1])
    yield MAKE.refuse("twelve-columns", "a column too few",
                      MAGIC + bytes(msgpack.packb(msgpack.unpackb(good[5:])[:12])))  # fmt: skip
    yield MAKE.refuse("no-entries", "a page of nothing",
                      MAGIC + bytes(msgpack.packb([[], [], b"", [], [], [], [], b"", *[[]] * 5])),
                      "LimitError")  # fmt: skip
    two = [_directory(b"a"), _directory(b"b")]
    yield _refuse("kinds-too-few", "two entries of one kind", two, {KINDS: b"\x02"})
    yield _refuse(
        "suffixes-too-many", "three suffixes for two", two, {SUFFIXES: [b"a", b"b", b"c"]}
    )
    yield _refuse("kind-0", "a kind that is none", two, {KINDS: b"\x02\x00"})
    yield _refuse("kind-8", "a kind of a newer version", two, {KINDS: b"\x02\x08"})
    yield _refuse("target-left-over", "a target without a symlink", two, {TARGETS: [b"t"]})
    yield _refuse("device-left-over", "numbers without a device", two, {DEVICES: [[1, 2]]})
    yield _refuse("target-missing", "a symlink without a target", EVERY_KIND, {TARGETS: []})
    yield _refuse("device-of-three", "three numbers", EVERY_KIND, {DEVICES: [[8, 1, 0], [1, 2]]})
    yield _refuse("device-too-large", "33 bits", EVERY_KIND, {DEVICES: [[8, 1], [2**32, 0]]})
    yield _refuse("target-empty", "a symlink to nothing", EVERY_KIND, {TARGETS: [b""]})
    yield _refuse("target-zero-byte", "a target with NUL", EVERY_KIND, {TARGETS: [b"a\0b"]})


def _bad_paths() -> Iterator[Vector]:
    for name, path in [
        ("path-empty", b""),
        ("path-dot", b"."),
        ("path-dot-dot", b".."),
        ("path-dot-dot-inside", b"a/../b"),
        ("path-dot-dot-last", b"aaa/.."),
        ("path-absolute", b"/a"),
        ("path-ends-in-slash", b"a/"),
        ("path-doubled-slash", b"a//b"),
        ("path-zero-byte", b"ab\0c"),
        ("path-part-of-256", b"a/" + b"p" * 256),
    ]:
        yield _refuse(name, f"{path[:20]!r}", [_directory(b"z")], {SUFFIXES: [path]})
    two = [_directory(b"ab/cd"), _directory(b"ab/ce")]

    def rows(name: str, about: str, prefixes: list[int], suffixes: list[bytes]) -> Vector:
        return _refuse(name, about, two, {PREFIXES: prefixes, SUFFIXES: suffixes})

    yield rows("path-twice", "one path twice", [0, 5], [b"ab/cd", b""])
    yield rows("order-reversed", "the later path first", [0, 4], [b"ab/ce", b"d"])
    yield rows("order-child-first", "what lies in a directory before it", [0, 2], [b"ab/cd", b""])
    yield rows("order-plain-bytes", "in byte order: a! before a/", [0, 1], [b"a!", b"/b"])
    yield rows("prefix-too-short", "shares a byte less than it could", [0, 3], [b"ab/cd", b"ce"])
    yield rows("prefix-none", "shares nothing though it could", [0, 0], [b"ab/cd", b"ab/ce"])
    yield rows("prefix-too-long", "shares more than there is", [0, 6], [b"ab/cd", b"e"])
    yield rows("prefix-in-first", "the first path shares something", [1, 4], [b"ab/cd", b"e"])
    yield rows("shared-dot-dot", ".. put together from two rows", [0, 4], [b"ab/.#", b"."])
    yield rows("shared-slashes", "an empty part between two rows", [0, 2], [b"ab", b"//c"])
    yield rows("suffix-text", "a path as text", [0, 4], [b"ab/cd", "e"])  # type: ignore[list-item]
    parts = b"/".join([b"d" * 254] * 129)
    yield _refuse("path-over-its-limit", "more than 32,768 bytes, in two rows",
                  [_directory(b"y"), _directory(b"z")],
                  {PREFIXES: [0, 32700], SUFFIXES: [parts[:32700], b"/" + b"e" * 100]},
                  "LimitError")  # fmt: skip


def _bad_owners_and_times() -> Iterator[Vector]:
    two = [_directory(b"a"), _file(b"b")]
    first = [0o755, 0, 0, b"root", b"root"]
    second = [0o644, 1000, 2**32 - 1, b"", b""]

    def owners(name: str, about: str, rows: list[object], index: list[int]) -> Vector:
        return _refuse(name, about, two, {OWNERS: rows, OWNER: index})

    yield owners(
        "owner-unused", "an owner of no entry", [first, second, [0, 0, 0, b"", b""]], [0, 1]
    )
    yield owners("owner-order", "owners not as they first come", [second, first], [1, 0])
    yield owners("owner-twice", "two owners alike", [first, first], [0, 1])
    yield owners("owner-missing", "an owner that is not there", [first, second], [0, 2])
    yield owners("owner-negative", "an owner counted from the end", [first, second], [0, -1])
    yield owners("owners-none", "no owners at all", [], [0, 0])
    yield owners("mode-too-large", "a mode with a file's kind in it",
                 [[0o100644, *first[1:]], second], [0, 1])  # fmt: skip
    yield owners("uid-too-large", "33 bits", [[0o755, 2**32, *first[2:]], second], [0, 1])
    yield owners("user-text", "a user's name as text", [[0o755, 0, 0, "root", b"root"], second],
                 [0, 1])  # fmt: skip
    yield owners("group-zero-byte", "a name with NUL", [[*first[:4], b"a\0"], second], [0, 1])
    yield owners("owner-of-four", "an owner of 4 fields", [first[:4], second], [0, 1])
    yield _refuse("time-true", "true for a difference of 1", two, {TIMES: [T, True]})
    yield _refuse("time-over-64-bits", "2^63", two, {TIMES: [2**63, 0]})
    yield _refuse("times-too-few", "one time for two", two, {TIMES: [T]})


def _bad_contents() -> Iterator[Vector]:
    one = [_directory(b"a"), _file(b"b", 5)]
    ids = digest_of(b"r1") + digest_of(b"r2")
    yield _refuse("size-missing", "a file without a size", one, {SIZES: []})
    yield _refuse("size-over-its-limit", "2^62 + 1 bytes", one,
                  {SIZES: [2**62 + 1], PARTS: [[1, ids]]})  # fmt: skip
    yield _refuse("digest-missing", "a file without a digest", one, {DIGESTS: b""})
    yield _refuse("digest-left-over", "two digests for one file", one, {DIGESTS: D + D})
    yield _refuse("digest-half", "half a digest", one, {DIGESTS: D[:16]})
    yield _refuse("count-left-over", "two counts for one file", one, {COUNTS: [1, 1]})
    yield _refuse("count-0", "bytes without chunks and recipes", one, {COUNTS: [0]})
    yield _refuse("count-2", "two chunks without a recipe", one, {COUNTS: [2]})
    yield _refuse("count-of-nothing", "a chunk of no bytes", one, {SIZES: [0]})
    yield _refuse("digest-of-nothing", "no bytes with a digest of some", one,
                  {SIZES: [0], COUNTS: [0]})  # fmt: skip
    yield _refuse("chunk-too-large", "one chunk of more than 16 MiB", one, {SIZES: [2**24 + 1]})
    yield _refuse("count-over-its-recipes", "more chunks than two recipes can have", one,
                  {COUNTS: [2**19 + 1], PARTS: [[1, ids]]})  # fmt: skip
    yield _refuse("count-over-32-bits", "2^32 chunks", one,
                  {COUNTS: [2**32], PARTS: [[1, ids]]})  # fmt: skip
    yield _refuse("parts-of-nothing", "recipes of an empty file", one,
                  {SIZES: [0], COUNTS: [0], DIGESTS: EMPTY_DIGEST, PARTS: [[1, ids]]})  # fmt: skip
    yield _refuse("parts-of-a-directory", "recipes of what is no file", one, {PARTS: [[0, ids]]})
    yield _refuse("parts-of-none", "a list of no recipes", one, {PARTS: [[1, b""]]})
    yield _refuse("parts-half", "a recipe's id and a half", one, {PARTS: [[1, ids[:48]]]})
    yield _refuse("parts-twice", "two lists of one file", one, {PARTS: [[1, ids], [1, ids]]})
    yield _refuse("parts-outside", "recipes of an entry that is not there", one,
                  {PARTS: [[2, ids]]})  # fmt: skip
    yield _refuse("unreadable-with-content", "a digest of an unreadable file", one,
                  {EXTRAS: [[1, b"", [], UNREADABLE]]})  # fmt: skip


def _bad_extras() -> Iterator[Vector]:
    one = [_directory(b"a"), _file(b"b", 5)]

    def extras(name: str, about: str, rows: list[object], error: str = "FormatError") -> Vector:
        return _refuse(name, about, one, {EXTRAS: rows}, error)

    def xattrs(name: str, about: str, rows: list[object], error: str = "FormatError") -> Vector:
        return extras(name, about, [[1, b"", rows, 0]], error)

    yield extras("extra-of-nothing", "a row that says nothing", [[1, b"", [], 0]])
    yield extras("extra-twice", "two rows of one entry", [[1, b"l", [], 0], [1, b"", [], 1]])
    yield extras("extra-order", "rows not in order", [[1, b"l", [], 0], [0, b"l", [], 0]])
    yield extras("extra-outside", "an entry that is not there", [[2, b"l", [], 0]])
    yield extras("flag-16", "a flag of a newer version", [[1, b"", [], 16]])
    yield extras("implied-file", "a flag that only directories have", [[1, b"", [], IMPLIED]])
    yield extras("implied-time", "a time where none is kept", [[0, b"", [], IMPLIED]])
    yield extras("flag-true", "true for the flag 1", [[1, b"", [], True]])
    yield extras(
        "inconsistent-directory", "a flag that needs a content", [[0, b"", [], INCONSISTENT]]
    )
    yield extras("hole-digest-without-parts", "a flag that needs recipes",
                 [[1, b"", [], HOLE_DIGEST]])  # fmt: skip
    yield extras("link-too-long", "65 bytes", [[1, b"l" * 65, [], 0]], "LimitError")
    yield xattrs("xattrs-order", "names not in order", [[b"user.b", b""], [b"user.a", b""]])
    yield xattrs("xattrs-twice", "a name twice", [[b"user.a", b"1"], [b"user.a", b"2"]])
    yield xattrs("xattr-unnamed", "an empty name", [[b"", b"1"]])
    yield xattrs("xattr-zero-byte", "a name with NUL", [[b"user.\0", b"1"]])
    yield xattrs("xattr-name-too-long", "1025 bytes", [[b"u" * 1025, b"1"]], "LimitError")
    yield xattrs("xattr-text", "a value as text", [[b"user.a", "1"]])
