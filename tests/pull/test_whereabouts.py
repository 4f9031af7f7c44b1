"""Which file the chunks are of that are coming in."""

from __future__ import annotations

import pytest

from cas.entry import Content, Entry, Kind, Owner
from cas.errors import NotHeldError
from cas.ids import Digest, digest_of
from cas.pack import PageRun
from cas.pull.whereabouts import LOOK_SECONDS, Whereabouts

OWNER = Owner(0o644, 0, 0)
FIRST, SECOND = digest_of(b"first"), digest_of(b"second")


def _file(path: bytes, chunks: int) -> Entry:
    content = Content(chunks, digest_of(path), chunks, ())
    return Entry(path, Kind.FILE, OWNER, 0, content=content)


PAGES = {
    FIRST: [
        Entry(b"a", Kind.DIRECTORY, OWNER, 0),
        _file(b"a/1", 3),
        _file(b"a/empty", 0),
        _file(b"a/2", 1),
    ],
    SECOND: [_file(b"b", 1)],
}


class _Pages:
    def __init__(self) -> None:
        self.read: list[Digest] = []

    def __call__(self, page: Digest) -> list[Entry]:
        self.read.append(page)
        if page not in PAGES:
            raise NotHeldError("not yet")
        return PAGES[page]


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.parametrize(
    ("first", "count", "path"),
    [(0, 1, b"a/1"), (0, 3, b"a/1"), (2, 1, b"a/1"), (2, 2, b"a/2"), (3, 1, b"a/2"), (4, 1, None)],
)
def test_the_last_chunk_of_a_run_says_where_we_are(
    first: int, count: int, path: bytes | None
) -> None:
    runs = [PageRun(SECOND, 0, 1), PageRun(FIRST, first, count)]
    assert path == Whereabouts(_Pages()).look(runs)


def test_it_is_looked_up_now_and_then_and_each_page_once() -> None:
    pages, clock = _Pages(), Clock()
    where = Whereabouts(pages, clock)
    runs = [PageRun(FIRST, 0, 1)]
    assert b"a/1" == where.look(runs)
    clock.now = LOOK_SECONDS / 2
    assert where.look(runs) is None
    clock.now = LOOK_SECONDS
    assert b"a/1" == where.look(runs)
    clock.now = 2 * LOOK_SECONDS
    assert b"b" == where.look([PageRun(SECOND, 0, 1)])
    assert [FIRST, SECOND] == pages.read


def test_a_page_that_cannot_be_read_is_nowhere_and_is_tried_again() -> None:
    pages, clock = _Pages(), Clock()
    where = Whereabouts(pages, clock)
    missing = [PageRun(digest_of(b"x"), 0, 1)]
    for moment in range(2):
        clock.now = float(moment)
        assert where.look(missing) is None
    assert 2 == len(pages.read)
    assert where.look([]) is None
