"""Where pages end, and what a page's writer refuses."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cas.entry import UNREADABLE, Content, Entry, Kind, Owner, check_path, path_order
from cas.errors import FormatError, LimitError
from cas.ids import digest_of
from cas.page import (
    BYTES_SOON,
    CONTENT_CUT,
    ENTRIES_LEAST,
    ENTRIES_LIMIT,
    PAGE_LIMIT,
    PARTS_LIMIT,
    TARGET_LIMIT,
    XATTRS_LIMIT,
    Paginator,
    decode_page,
    encode_page,
    page_id,
)
from tests.formats import strategies as some

OWNER = Owner(0o644, 0, 0)
D = digest_of(b"x")


def _file(path: bytes, size: int = 1) -> Entry:
    return Entry(path, Kind.FILE, OWNER, 0, size, Content(size, digest_of(path), 1))


def _tree(count: int) -> list[Entry]:
    rng = random.Random(count)
    paths = {b"usr/%02d/%08x.c" % (rng.randrange(40), rng.getrandbits(32)) for _ in range(count)}
    return [_file(path) for path in sorted(paths, key=path_order)]


def _pages(entries: list[Entry]) -> list[list[Entry]]:
    paginator, pages = Paginator(), []
    page: list[Entry] = []
    for entry in entries:
        page.append(entry)
        if paginator.ends_after(entry):
            pages.append(page)
            page = []
    return [*pages, page] if page else pages


def _ids(entries: list[Entry]) -> list[bytes]:
    return [page_id(encode_page(page)) for page in _pages(entries)]


def test_pages_are_of_a_useful_size() -> None:
    pages = _pages(_tree(30_000))
    assert all(ENTRIES_LEAST <= len(page) <= ENTRIES_LIMIT for page in pages[:-1])
    assert 300 < 30_000 / len(pages) < 3000
    assert all(page == decode_page(encode_page(page)) for page in pages)


def test_much_content_makes_small_pages() -> None:
    tree = [replace(entry, content=Content(2**20, digest_of(entry.path), 20), size=2**20)
            for entry in _tree(10_000)]  # fmt: skip
    pages = _pages(tree)
    assert CONTENT_CUT / 2 < 10_000 * 2**20 / len(pages) < CONTENT_CUT * 2
    huge = [replace(entry, size=CONTENT_CUT) for entry in tree[:100]]
    assert [1] * 100 == [*map(len, _pages(huge))]


@pytest.mark.parametrize("change", ["insert", "delete", "touch"])
def test_a_change_in_one_place_changes_few_pages(change: str) -> None:
    tree = _tree(30_000)
    before = set(_ids(tree))
    rng = random.Random(change)
    for _ in range(5):
        at = rng.randrange(len(tree))
        middle = {
            "insert": [_file(tree[at].path + b"x"), tree[at]][::-1],
            "delete": [],
            "touch": [replace(tree[at], mtime_ns=5)],
        }[change]
        after = _ids([*tree[:at], *middle, *tree[at + 1 :]])
        assert 0 < sum(id_ not in before for id_ in after) <= 4
        assert len(after) > 15


def test_a_page_ends_before_it_grows_too_large() -> None:
    """Entries as large as they may be, in any number, fit a page."""
    parts = tuple(digest_of(b"%d" % n) for n in range(PARTS_LIMIT))
    large = [
        Entry(b"a", Kind.FILE, OWNER, 0, 1, Content(1, D, 1, parts),
              xattrs=((b"user.a", bytes(XATTRS_LIMIT - 6)),)),
        Entry(b"b", Kind.SYMLINK, OWNER, 0, target=b"t" * TARGET_LIMIT),
        Entry(b"/".join([b"c" * 254] * 128), Kind.DIRECTORY, OWNER, 0),
    ]  # fmt: skip
    pages = _pages([*large, *(_file(b"d/%03d" % n) for n in range(100))])
    assert all(page == decode_page(encode_page(page)) for page in pages)
    assert len(encode_page(large[:1])) + 4 * BYTES_SOON < PAGE_LIMIT


def test_more_than_a_page_holds_is_refused() -> None:
    entries = [_file(b"%05d" % n) for n in range(ENTRIES_LIMIT + 1)]
    assert entries[1:] == decode_page(encode_page(entries[1:]))
    with pytest.raises(LimitError):
        decode_page(encode_page(entries))


@pytest.mark.parametrize(
    "entry",
    [
        replace(_file(b"a"), content=None),
        replace(_file(b"a"), flags=UNREADABLE),
        replace(_file(b"a"), size=2),
        replace(_file(b"a"), mtime_ns=2**63),
        replace(_file(b"a"), mtime_ns=-(2**63) - 1),
        replace(_file(b"a"), owner=Owner(0o644, 2**64, 0)),
    ],
    ids=["no content", "content unreadable", "two sizes", "late", "early", "uid"],
)
def test_what_would_be_lost_is_not_written(entry: Entry) -> None:
    with pytest.raises(FormatError):
        encode_page([entry])


def test_xattrs_together_have_a_limit() -> None:
    half = XATTRS_LIMIT // 2
    fits = replace(_file(b"a"), xattrs=((b"user.a", bytes(half - 6)), (b"user.b", bytes(half - 6))))
    assert [fits] == decode_page(encode_page([fits]))
    over = replace(fits, xattrs=(*fits.xattrs, (b"user.c", b"")))
    with pytest.raises(LimitError):
        decode_page(encode_page([over]))


@given(st.lists(some.paths | st.binary(max_size=12), min_size=1, max_size=6))
def test_a_page_has_legal_paths_in_order_or_is_refused(paths: list[bytes]) -> None:
    """The short cuts of the reader say the same as the rules written out."""
    entries = [Entry(path, Kind.FIFO, OWNER, 0) for path in paths]
    orders = [path_order(path) for path in paths]
    legal = all(map(_is_legal, paths)) and sorted(set(orders)) == orders
    try:
        found = decode_page(encode_page(entries))
    except FormatError:
        assert not legal
    else:
        assert legal
        assert entries == found


def _is_legal(path: bytes) -> bool:
    parts = path.split(b"/")
    return all(p not in (b"", b".", b"..") and len(p) <= 255 and b"\0" not in p for p in parts)


@given(some.paths | st.binary(max_size=12))
@example(b"p" * 256)
@example(b"a/" + b"p" * 256 + b"/b")
def test_check_path(path: bytes) -> None:
    if _is_legal(path):
        assert path == check_path(path)
    else:
        with pytest.raises(FormatError):
            check_path(path)


def test_a_path_has_a_limit() -> None:
    path = b"/".join([b"p" * 255] * 128)
    assert path == check_path(path)
    with pytest.raises(LimitError):
        check_path(path + b"/p")
