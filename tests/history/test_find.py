"""What a search matches, and what it refuses."""

from __future__ import annotations

import pytest

from cas.entry import Entry, Kind, Owner
from cas.errors import UsageError
from cas.find import Sizes, Wanted, by_glob, by_regex, parse_sizes

OWNER = Owner(0o644, 0, 0)
IN_ARCHIVE = b"srv/x.tar!/usr/lib/libc.so"


@pytest.mark.parametrize(
    ("pattern", "path", "matches"),
    [
        (b"*.so", b"usr/lib/libc.so", True),
        (b"*.so", b"usr/lib/libc.so.6", False),
        (b"*.so", IN_ARCHIVE, True),
        (b"lib", b"usr/lib/libc.so", False),
        (b"lib/*.so", b"usr/lib/libc.so", True),
        (b"lib/*.so", b"usr/mylib/libc.so", False),
        (b"/usr/lib/*.so", b"usr/lib/libc.so", True),
        (b"/usr/lib/*.so", b"opt/usr/lib/libc.so", False),
        (b"/usr/lib/*.so", IN_ARCHIVE, True),
        (b"/srv/*.tar!/**/*.so", IN_ARCHIVE, True),
        (b"**/lib/**", b"usr/lib/a/b", True),
        (b"[a-c]?", b"d/bx", True),
        (b"two\nlines", b"a/two\nlines", True),
        (b"\xff*", b"a/\xff\xfe", True),
    ],
)
def test_globs(pattern: bytes, path: bytes, matches: bool) -> None:
    assert matches == by_glob(pattern)(path)


def test_case_and_regular_expressions() -> None:
    assert not by_glob(b"readme*")(b"a/README.md")
    assert by_glob(b"readme*", ignore_case=True)(b"a/README.md")
    assert by_regex(rb"^/usr/.*\.so(\.\d+)?$")(b"usr/lib/libc.so.6")
    assert by_regex(rb"LIBC", ignore_case=True)(b"usr/lib/libc.so")
    assert not by_regex(rb"^usr")(b"usr/lib")
    for wrong in (b"[", b"a//b", b"\\", b"/"):
        with pytest.raises(UsageError):
            by_glob(wrong)
    with pytest.raises(UsageError, match="not a regular expression"):
        by_regex(b"(")


def test_sizes() -> None:
    assert Sizes(least=1_000_001) == parse_sizes("+1M") == parse_sizes("+1MB")
    assert Sizes(most=65_535) == parse_sizes("-64Ki")
    assert Sizes(0, 0) == parse_sizes("0")
    assert [False, True, True, False] == [Sizes(5, 9).has(size) for size in (4, 5, 9, 10)]
    assert not parse_sizes("-1M").has(-1)  # not known
    for wrong in ("", "1X", "M", "+-1", "1.5M"):
        with pytest.raises(UsageError, match="not a size"):
            parse_sizes(wrong)


def test_all_must_be_true() -> None:
    small = Entry(b"a/b", Kind.FILE, OWNER, 0, 10)
    wanted = Wanted(by_glob(b"b"), (parse_sizes("+5"), parse_sizes("-20")), frozenset({Kind.FILE}))
    assert wanted.has(small)
    assert not wanted.has(Entry(b"a/b", Kind.FILE, OWNER, 0, 30))
    assert not wanted.has(Entry(b"a/b", Kind.DIRECTORY, OWNER, 0))
    assert not wanted.has(Entry(b"a/c", Kind.FILE, OWNER, 0, 10))
    assert not Wanted(sizes=(parse_sizes("-5"),)).has(Entry(b"d", Kind.DIRECTORY, OWNER, 0))
