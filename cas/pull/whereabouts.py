"""Which file the chunks are of that are coming in: for displays, so only looked up now and then.

A segment names its chunks by their places in the chunk space of a page (`cas/page.py`). Chunks are
read in the source's order, so one page is asked for many times in a row: the last is kept.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate

from cas.entry import Entry
from cas.errors import CasError
from cas.ids import Digest
from cas.pack import PageRun

LOOK_SECONDS = 0.5


class Whereabouts:
    """Looks into pages with `read_page`, which may raise CasError. For one thread."""

    def __init__(
        self,
        read_page: Callable[[Digest], Sequence[Entry]],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._read_page = read_page
        self._clock = clock
        self._page: Digest | None = None
        self._ends: list[int] = []  # of each path, in chunks
        self._paths: list[bytes] = []
        self._again = float("-inf")

    def look(self, runs: Sequence[PageRun]) -> bytes | None:
        """The path of the last chunk in `runs`; None when that cannot be told, or has been only
        just."""
        now = self._clock()
        if not runs or now < self._again:
            return None
        self._again = now + LOOK_SECONDS
        run = runs[-1]
        if run.page != self._page and not self._turn_to(run.page):
            return None
        at = bisect_right(self._ends, run.first + run.count - 1)
        return self._paths[at] if at < len(self._paths) else None

    def _turn_to(self, page: Digest) -> bool:
        """Read a page; false when it is not there to be read yet."""
        try:
            entries = self._read_page(page)
        except CasError:  # it is on its way to the disk, or worse, which is not for us to say
            return False
        files = [(entry.path, entry.content.chunk_count) for entry in entries if entry.content]
        self._paths = [path for path, _ in files]
        self._ends = list(accumulate(count for _, count in files))
        self._page = page
        return True
