"""From places in chunk spaces to names, and the maps of files, some of which are kept."""

from __future__ import annotations

from bisect import bisect_right
from collections import OrderedDict
from dataclasses import dataclass

from cas.audit.filemap import Extent, FileMap
from cas.entry import Content, Entry
from cas.errors import DamageError, FormatError, NotHeldError
from cas.ids import Digest
from cas.store.store import Store

PAGES_KEPT = 64
MAPPED_CHUNKS_KEPT = 2_000_000  # some 200 MB
SINGLES_SIZE = 16  # what a file without recipes counts for

UNREADABLE = (NotHeldError, DamageError, FormatError)


@dataclass(frozen=True, slots=True)
class Place:
    """A place of a chunk in a file of a tier: the file's path, and where in it."""

    path: bytes
    extent: Extent


@dataclass(frozen=True, slots=True)
class _Space:
    """The chunk space of a page: where the chunks of each content begin in it."""

    starts: list[int]
    entries: list[Entry]


class Pages:
    """Pages of a store by id. Not thread-safe."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._spaces: OrderedDict[Digest, _Space] = OrderedDict()
        self._maps: OrderedDict[tuple[Digest, tuple[Digest, ...], bytes], FileMap] = OrderedDict()
        self._mapped = 0

    def place(self, page: Digest, index: int) -> Place | None:
        """What lies at an index of a page's chunk space, by the page; None if that page, or what it
        takes to know, is not here any more, and for an index that it does not have."""
        try:
            space = self._space(page)
            at = bisect_right(space.starts, index) - 1
            if at < 0:
                return None
            entry, number = space.entries[at], index - space.starts[at]
            if entry.content is None or number >= entry.content.chunk_count:
                return None
            return Place(entry.path, self.map(entry.content, entry.path).extent(number))
        except UNREADABLE:
            return None

    def map(self, content: Content, path: bytes = b"") -> FileMap:
        """Where the chunks of a content lie. Raises NotHeldError, DamageError, FormatError."""
        name = path.rpartition(b"/")[2]  # after which the only member of an archive may be called
        key = content.digest, content.parts, name
        found = self._maps.get(key)
        if found is None:
            found = self._maps[key] = FileMap(content, self._store.reader, name)
            self._mapped += len(found) + SINGLES_SIZE
            while self._mapped > MAPPED_CHUNKS_KEPT and len(self._maps) > 1:
                self._mapped -= len(self._maps.popitem(last=False)[1]) + SINGLES_SIZE
        self._maps.move_to_end(key)
        return found

    def _space(self, page: Digest) -> _Space:
        found = self._spaces.get(page)
        if found is None:
            found = self._spaces[page] = _space_of(self._store.page(page))
            if len(self._spaces) > PAGES_KEPT:
                self._spaces.popitem(last=False)
        self._spaces.move_to_end(page)
        return found


def _space_of(entries: list[Entry]) -> _Space:
    starts, kept = [], []
    at = 0
    for entry in entries:
        if entry.content is not None and entry.content.chunk_count:
            starts.append(at)
            kept.append(entry)
            at += entry.content.chunk_count
    return _Space(starts, kept)
