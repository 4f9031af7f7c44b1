"""An index over another: it has all that the other has, and what is added to it goes elsewhere.

For a dry run. Its scan is written as any scan is, but to a directory that is gone afterwards, so
that what was scanned can be counted like what is held, and the store stays as it was.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from heapq import merge
from operator import itemgetter
from pathlib import Path

from cas.ids import Digest
from cas.interfaces import Changes, FileRow, Index, Location, PackRow, SegmentPlace, SnapshotRow


class OverlayIndex:
    """`cas.interfaces.Index` of `under`, whose packs lie in `packs`, and of `over`, which takes
    what is added. Frames are numbered by the clock, packs from the highest number on."""

    def __init__(self, under: Index, packs: Path, over: Index) -> None:
        self._under = under
        self._packs = packs
        self._over = over

    def locate(self, chunk: Digest) -> Location | None:
        """See `Index.locate`."""
        return self._over.locate(chunk) or self._under.locate(chunk)

    def locate_all(self, chunks: Sequence[Digest]) -> list[Location | None]:
        """See `Index.locate_all`."""
        both = zip(self._over.locate_all(chunks), self._under.locate_all(chunks), strict=True)
        return [over or under for over, under in both]

    def held(self, chunks: Sequence[Digest]) -> list[bool]:
        """See `Index.held`."""
        both = zip(self._over.held(chunks), self._under.held(chunks), strict=True)
        return [over or under for over, under in both]

    def segments_of(self, frame: int) -> list[tuple[int, SegmentPlace]]:
        """See `Index.segments_of`."""
        return self._over.segments_of(frame) or self._under.segments_of(frame)

    def recipes_of(self, file: Digest) -> tuple[Digest, ...] | None:
        """See `Index.recipes_of`."""
        over = self._over.recipes_of(file)
        return self._under.recipes_of(file) if over is None else over

    def packs(self) -> dict[int, PackRow]:
        """See `Index.packs`; those of `under` have names that lead out of this directory."""
        under = {
            number: replace(row, name=os.fspath(self._packs / row.name))
            for number, row in self._under.packs().items()
        }
        return {**under, **self._over.packs()}

    def next_frame(self) -> int:
        """See `Index.next_frame`."""
        return max(self._over.next_frame(), self._under.next_frame())

    def snapshots(self, tier: str | None = None) -> list[SnapshotRow]:
        """See `Index.snapshots`."""
        rows = [*self._under.snapshots(tier), *self._over.snapshots(tier)]
        return sorted(rows, key=lambda row: (row.finished_ms, row.id))

    def pending_pages(self, tier: str) -> list[Digest]:
        """See `Index.pending_pages`."""
        pages = [*self._under.pending_pages(tier), *self._over.pending_pages(tier)]
        return list(dict.fromkeys(pages))

    def find_file(self, source: str, path: bytes) -> FileRow | None:
        """See `Index.find_file`."""
        return self._over.find_file(source, path) or self._under.find_file(source, path)

    def files_below(self, source: str, prefix: bytes) -> Iterator[FileRow]:
        """See `Index.files_below`."""
        both = (self._under.files_below(source, prefix), self._over.files_below(source, prefix))
        rows = {row.path: row for rows in both for row in rows}
        return (rows[path] for path in sorted(rows))

    def chunks(self, prefix: bytes = b"") -> Iterator[tuple[Digest, Location]]:
        """See `Index.chunks`."""
        rows = merge(self._over.chunks(prefix), self._under.chunks(prefix), key=itemgetter(0))
        return iter(rows)

    def commit(self, changes: Changes) -> None:
        """See `Index.commit`."""
        self._over.commit(changes)

    def close(self) -> None:
        """See `Index.close`; `under` has an owner of its own."""
        self._over.close()
