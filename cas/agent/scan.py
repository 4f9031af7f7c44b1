"""A scan: walks roots and gives their entries as pages, in path order.

Each page goes one of two ways. Where the cache has a page that begins with the next path, and the
next names have the identities that it was made of, it is that page again, and none of its names is
looked at any closer. Otherwise it is made entry by entry, and only files that the cache does not
know are read. Both ways give the same page: where pages end depends on the entries and roots alone.

The directories above a root have pages of their own, and no time: one of them is often /home or
/tmp, whose time changes all day, and the tier should not change with it.

All pages go to the spool, and all recipes that they name.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import replace
from typing import Protocol

from cas import wire
from cas.agent.content import ContentReader
from cas.agent.entries import EntryMaker
from cas.agent.memory import Memory
from cas.agent.mounts import Mounts
from cas.agent.notes import ScanNotes, ScanProgress
from cas.agent.pages import KeptPage, ScannedPage, make_page, signature
from cas.agent.roots import Opener, RootGuard
from cas.agent.spool import Spool
from cas.agent.walk import Item, Rules, admit_roots, paths_above, walk
from cas.entry import IMPLIED, Entry, Kind, Problem
from cas.interfaces import ScanCache
from cas.page import Paginator

_ASKED_AT_ONCE = 256  # files that the cache is asked for


class Scanning(Protocol):
    """One scan, to be iterated over once, in one thread. That raises CasError when it cannot go
    on, or after `stop`."""

    @property
    def progress(self) -> ScanProgress:
        """How far it is; from any thread."""

    @property
    def problems(self) -> list[Problem]:
        """What was left out so far, or taken with a doubt."""

    def stop(self) -> None:
        """Make the iteration end with an error as soon as it can; from any thread."""

    def __iter__(self) -> Iterator[ScannedPage]:
        """The pages, in path order; they and the recipes they name are in the spool."""


class Scanner(ScanNotes):
    """One scan of `roots` (absolute paths), to be iterated over once, in one thread.

    `scope` tells tiers apart that have roots in common, so that each finds its own pages in the
    cache. `clock` gives ns since 1970. When the iteration has ended, `problems` lists all that was
    left out or is in doubt. Iterating raises SourceError when the spool is full, or after `stop`.
    """

    def __init__(
        self,
        roots: Sequence[bytes],
        rules: Rules,
        cache: ScanCache,
        spool: Spool,
        *,
        guard: RootGuard,
        scope: bytes = b"",
        clock: Callable[[], int] = time.time_ns,
    ) -> None:
        super().__init__()
        self._mounts = Mounts()
        self._guard = guard
        self._spool = spool
        self._memory = Memory(cache, wire.encode([list(roots), scope]), spool, self.report)
        self._clock = clock
        admitted = admit_roots(guard, roots, self.report)
        self._above = paths_above(admitted)
        self._ahead = _Ahead(walk(guard, admitted, rules, self._mounts, self.report))

    def __iter__(self) -> Iterator[ScannedPage]:
        with Opener(self._guard) as opener:
            reader = ContentReader(opener, self._memory.keep_recipe, self._count)
            maker = EntryMaker(opener, reader, self._memory, self._mounts, self.report, self._clock)
            try:
                while following := self._ahead.peek(1):
                    page = self._page_again(following[0][0]) or self._new_page(maker)
                    if page is not None:
                        self._spool.put(page.id, page.encoded)
                        yield page
            finally:
                self._ahead.close()
                self._memory.write()
                reader.close()

    def _page_again(self, first: bytes) -> ScannedPage | None:
        """The page that the cache has from here on, if nothing of it has changed."""
        kept = self._memory.page(first)
        if kept is None:
            return None
        count = kept.page.entries
        items = self._ahead.peek(count + 1 if kept.ended_scan else count)
        if len(items) != count:
            return None
        if signature(items, self._mounts) != kept.signature:
            return None
        if not self._memory.recall_recipes(kept.recipes):
            return None
        self._ahead.drop(count)
        self._advance(items[-1][0], count)
        return kept.page

    def _new_page(self, maker: EntryMaker) -> ScannedPage | None:
        entries: list[Entry] = []
        signed: list[Item] = []
        paginator = Paginator()
        sound, ended = True, False
        is_above: bool | None = None
        while not ended and (some := self._ahead.peek(_ASKED_AT_ONCE)):
            maker.prepare(some)
            for path, status in some:
                if ended := is_above is (path not in self._above):
                    break
                is_above = path in self._above
                self._advance(path, 1)
                made = maker.make(path, status)
                if is_above and made.entry is not None and made.entry.kind is Kind.DIRECTORY:
                    made = replace(made, entry=_implied(made.entry))
                self._ahead.drop(1)
                sound &= made.sound
                if made.entry is not None:
                    entries.append(made.entry)
                    signed.append((path, made.status))
                    if ended := paginator.ends_after(made.entry):
                        break
        if not entries:
            return None
        page = make_page(entries)
        if sound:
            recipes = [part for entry in entries if entry.content for part in entry.content.parts]
            kept = KeptPage(page, signature(signed, self._mounts), not ended, tuple(recipes))
            self._memory.keep_page(kept)
        return page

    def _advance(self, path: bytes, names: int) -> None:
        self.progress.path = path
        self.progress.names += names
        self.check()

    def _count(self, files: int, size: int) -> None:
        self.progress.files_read += files
        self.progress.read += size
        self.check()


def _implied(entry: Entry) -> Entry:
    """The entry of a directory that is there for the sake of a root below it."""
    return replace(entry, mtime_ns=0, flags=entry.flags | IMPLIED)


class _Ahead:
    """The walk's names, some of them before their turn."""

    def __init__(self, batches: Generator[list[Item], None, None]) -> None:
        self._batches = batches
        self._held: list[Item] = []
        self._passed = 0  # of those held

    def peek(self, count: int) -> list[Item]:
        """The next `count`, or as many as there are."""
        end = self._passed + count
        if end > len(self._held):
            del self._held[: self._passed]
            self._passed, end = 0, count
            while len(self._held) < count and (batch := next(self._batches, None)) is not None:
                self._held += batch
        return self._held[self._passed : end]

    def drop(self, count: int) -> None:
        """Pass over the next `count`, which have been seen."""
        self._passed += count

    def close(self) -> None:
        """End the walk."""
        self._batches.close()
