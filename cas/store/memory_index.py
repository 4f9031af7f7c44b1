"""The store's tables and the agent's scan cache in memory: for tests and vectors, and for an agent
that has no directory to keep its cache in. They answer as those over LMDB do; one suite of tests
runs both."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence

from cas.ids import Digest
from cas.interfaces import (
    CachedFile,
    Changes,
    FileRow,
    Location,
    PackRow,
    SegmentPlace,
    SnapshotRow,
)

CACHE_LIMIT = 256 * 2**20  # bytes of keys and values


class MemoryIndex:
    """`cas.interfaces.Index` in dictionaries. Safe to use from several threads."""

    def __init__(self) -> None:
        self._guard = threading.RLock()
        self._chunks: dict[Digest, Location] = {}
        self._segments: dict[int, dict[int, SegmentPlace]] = {}
        self._packs: dict[int, PackRow] = {}
        self._recipes: dict[Digest, tuple[Digest, ...]] = {}
        self._snapshots: dict[Digest, SnapshotRow] = {}
        self._pending: dict[str, dict[Digest, None]] = {}
        self._files: dict[str, dict[bytes, FileRow]] = {}

    def locate(self, chunk: Digest) -> Location | None:
        """Where `chunk` is, or None."""
        return self._chunks.get(chunk)

    def locate_all(self, chunks: Sequence[Digest]) -> list[Location | None]:
        """Where each of `chunks` is, or None; one consistent view."""
        with self._guard:
            return [self._chunks.get(chunk) for chunk in chunks]

    def held(self, chunks: Sequence[Digest]) -> list[bool]:
        """For each of `chunks` whether it is here; one consistent view."""
        with self._guard:
            return [chunk in self._chunks for chunk in chunks]

    def segments_of(self, frame: int) -> list[tuple[int, SegmentPlace]]:
        """The frame's segments (number, place) in ascending number."""
        with self._guard:
            return sorted(self._segments.get(frame, {}).items())

    def recipes_of(self, file: Digest) -> tuple[Digest, ...] | None:
        """The ids of the recipes (parts) that rebuild the file of this digest, or None."""
        return self._recipes.get(file)

    def packs(self) -> dict[int, PackRow]:
        """All packs by number."""
        with self._guard:
            return dict(sorted(self._packs.items()))

    def next_frame(self) -> int:
        """One more than the highest frame number in use."""
        with self._guard:
            return max(self._segments, default=-1) + 1

    def snapshots(self, tier: str | None = None) -> list[SnapshotRow]:
        """Snapshots, oldest first; of one tier or of all."""
        with self._guard:
            rows = [row for row in self._snapshots.values() if tier in (None, row.tier)]
        return sorted(rows, key=lambda row: (row.finished_ms, row.id))

    def pending_pages(self, tier: str) -> list[Digest]:
        """Pages received for a scan of `tier` that has not finished, in order of arrival."""
        with self._guard:
            return list(self._pending.get(tier, ()))

    def find_file(self, source: str, path: bytes) -> FileRow | None:
        """The newest entry at this path, or None."""
        with self._guard:
            return self._files.get(source, {}).get(path)

    def files_below(self, source: str, prefix: bytes) -> Iterator[FileRow]:
        """The newest entries at and below the directory `prefix`, in byte order of the paths."""
        with self._guard:
            rows = self._files.get(source, {})
            found = [
                (path, row)
                for path, row in rows.items()
                if not prefix or path == prefix or path.startswith(prefix + b"/")
            ]
        return (row for _, row in sorted(found, key=lambda item: item[0]))

    def chunks(self, prefix: bytes = b"") -> Iterator[tuple[Digest, Location]]:
        """Every chunk whose id begins with `prefix`, in order of the ids."""
        with self._guard:
            found = [item for item in self._chunks.items() if item[0].startswith(prefix)]
        return iter(sorted(found, key=lambda item: item[0]))

    def commit(self, changes: Changes) -> None:
        """Write all of `changes`; there is nothing it could be durable on."""
        with self._guard:
            for forgotten in changes.forgotten_chunks:
                self._chunks.pop(forgotten, None)
            for lost in changes.forgotten_snapshots:
                self._snapshots.pop(lost.id, None)
            for chunk, location in changes.chunks:
                self._chunks.setdefault(chunk, location)
            for frame, number, place in changes.segments:
                self._segments.setdefault(frame, {})[number] = place
            self._packs.update(changes.packs)
            self._recipes.update(changes.recipes)
            self._snapshots.update((row.id, row) for row in changes.snapshots)
            for row in changes.files:
                self._files.setdefault(row.source, {})[row.path] = row
            for tier in changes.settled_tiers:
                self._pending.pop(tier, None)
            for tier, page in changes.pending_pages:
                self._pending.setdefault(tier, {}).setdefault(page)

    def close(self) -> None:
        """Nothing is held that must be released."""


class MemoryScanCache:
    """`cas.interfaces.ScanCache` in dictionaries, of at most about `limit` bytes: when it would
    be more, everything is forgotten first."""

    def __init__(self, limit: int = CACHE_LIMIT) -> None:
        self._guard = threading.Lock()
        self._limit = limit
        self._forget()

    def page(self, scope: bytes, first: bytes) -> bytes | None:
        """What was put for the page of `scope` that begins with path `first`."""
        return self._pages.get((scope, first))

    def files(self, paths: Sequence[bytes]) -> list[CachedFile | None]:
        """What was put for each path."""
        return [self._files.get(path) for path in paths]

    def recipe(self, recipe_id: Digest) -> bytes | None:
        """The encoded recipe of this id."""
        return self._recipes.get(recipe_id)

    def put(
        self,
        *,
        pages: Iterable[tuple[bytes, bytes, bytes]] = (),
        files: Iterable[tuple[bytes, CachedFile]] = (),
        recipes: Iterable[tuple[Digest, bytes]] = (),
    ) -> None:
        """Remember for as long as the process lives."""
        new_pages = {(scope, first): value for scope, first, value in pages}
        new_files, new_recipes = dict(files), dict(recipes)
        size = sum(len(a) + len(b) + len(value) for (a, b), value in new_pages.items())
        size += sum(len(path) + len(f.stat) + len(f.entry) for path, f in new_files.items())
        size += sum(len(id_) + len(value) for id_, value in new_recipes.items())
        with self._guard:
            if self._size + size > self._limit:
                self._forget()
            self._size += size
            self._pages.update(new_pages)
            self._files.update(new_files)
            self._recipes.update(new_recipes)

    def _forget(self) -> None:
        self._size = 0  # what is replaced counts twice: it only makes the limit come sooner
        self._pages: dict[tuple[bytes, bytes], bytes] = {}
        self._files: dict[bytes, CachedFile] = {}
        self._recipes: dict[Digest, bytes] = {}

    def close(self) -> None:
        """Nothing is held that must be released."""
