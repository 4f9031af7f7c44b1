"""What the store says of files at the source, so that they need not be fetched.

Safe to use from any thread: it only reads, and what it finds is durable.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from cas.archive import AnyRecipe, decode_any_recipe
from cas.chunker import MAX_SIZE
from cas.entry import Content, Entry, Kind
from cas.errors import CasError
from cas.ids import Digest
from cas.store.store import Store
from cas.transport.sftp import Attributes

_PAGES_DECODED = 8
NS = 10**9


class Here:
    """`store`, as far as it is of the source of this name."""

    def __init__(self, store: Store, source: str) -> None:
        self._store = store
        self._source = source
        self._page = lru_cache(_PAGES_DECODED)(self._read_page)

    def content_at(self, path: bytes, seen: Attributes) -> Content | None:
        """The content of the file at the entry path `path`, if the newest entry there is of a file
        with this size and time, and all its chunks are held."""
        row = self._store.index.find_file(self._source, path)
        entries = self._page(row.page) if row is not None else []
        if row is None or row.number >= len(entries):
            return None
        entry = entries[row.number]
        is_it = entry.path == path and entry.kind is Kind.FILE and not entry.flags
        if not is_it or (entry.size, entry.mtime_ns // NS) != (seen.size, seen.mtime):
            return None
        content = entry.content
        return content if content is not None and self.holds(content) else None

    def content_of(self, digest: Digest, size: int) -> Content | None:
        """The content whose bytes have this SHA-256 and size, if all its chunks are held."""
        parts = self._store.index.recipes_of(digest)
        if parts:
            recipes = self._recipes(parts)
            if recipes is None or sum(recipe.size for recipe in recipes) != size:
                return None
            count = sum(len(recipe.ids) for recipe in recipes)
            content = Content(size, digest, count, parts)
            return content if self.holds(content) else None
        if not 0 < size <= MAX_SIZE:
            return None
        place = self._store.index.locate(digest)
        return Content(size, digest, 1) if place is not None and place.length == size else None

    def holds(self, content: Content) -> bool:
        """Whether all its chunks are held."""
        ids = self.chunks_of(content)
        return ids is not None and self.holds_all(ids)

    def holds_all(self, ids: Iterable[Digest]) -> bool:
        """Whether all these chunks are held."""
        return all(self._store.index.held(list(ids)))

    def chunks_of(self, content: Content) -> list[Digest] | None:
        """Its chunks; None if a recipe of it is not held."""
        if not content.parts:
            return [content.digest] if content.size else []
        recipes = self._recipes(content.parts)
        return None if recipes is None else [id_ for recipe in recipes for id_ in recipe.ids]

    def recipe(self, id_: Digest) -> bytes:
        """The encoded recipe of this id. Raises NotHeldError, DamageError."""
        return self._store.reader.object(id_)

    def _recipes(self, parts: Iterable[Digest]) -> list[AnyRecipe] | None:
        try:
            return [decode_any_recipe(self.recipe(part)) for part in parts]
        except CasError:
            return None

    def _read_page(self, id_: Digest) -> list[Entry]:
        try:
            return self._store.page(id_)
        except CasError:
            return []
