"""The store's tables over LMDB: `cas.interfaces.Index` (docs/index.md)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from cas.ids import Digest
from cas.interfaces import Changes, FileRow, Location, PackRow, SegmentPlace, SnapshotRow
from indexes import chunks as chunk_table
from indexes import files, packs, recipes, snapshots
from indexes.env import MAP_LIMIT, MAP_SIZE, Environment
from indexes.view import Update

SCHEMA = 1
TABLES = (
    chunk_table.TABLE,
    packs.SEGMENTS,
    packs.PACKS,
    recipes.TABLE,
    snapshots.SNAPSHOTS,
    snapshots.PENDING,
    files.TABLE,
)


class LmdbIndex:
    """An index in a directory of its own, for one writing process and any number of reading ones;
    each may use it from several threads. All methods raise StoreError and DamageError."""

    def __init__(
        self,
        path: Path,
        *,
        create: bool = False,
        readonly: bool = False,
        map_size: int = MAP_SIZE,
        map_limit: int = MAP_LIMIT,
    ) -> None:
        """Open the index in `path`; with `create`, make an empty one where none is. Without it a
        missing index is a DamageError, so that a lost one is never taken for an empty one."""
        self._env = Environment(
            path,
            TABLES,
            SCHEMA,
            create=create,
            readonly=readonly,
            map_size=map_size,
            map_limit=map_limit,
        )

    def locate(self, chunk: Digest) -> Location | None:
        """Where `chunk` is, or None."""
        with self._env.read() as view:
            return chunk_table.locate(view, chunk)

    def locate_all(self, chunks: Sequence[Digest]) -> list[Location | None]:
        """Where each of `chunks` is, or None; one consistent view."""
        with self._env.read() as view:
            return [chunk_table.locate(view, chunk) for chunk in chunks]

    def held(self, chunks: Sequence[Digest]) -> list[bool]:
        """For each of `chunks` whether it is here; one consistent view."""
        with self._env.read() as view:
            return view.has(chunk_table.TABLE, chunks)

    def segments_of(self, frame: int) -> list[tuple[int, SegmentPlace]]:
        """The frame's segments (number, place) in ascending number."""
        with self._env.read() as view:
            return packs.segments_of(view, frame)

    def recipes_of(self, file: Digest) -> tuple[Digest, ...] | None:
        """The ids of the recipes (parts) that rebuild the file of this digest, or None."""
        with self._env.read() as view:
            return recipes.recipes_of(view, file)

    def packs(self) -> dict[int, PackRow]:
        """All packs by number."""
        with self._env.read() as view:
            return packs.packs(view)

    def next_frame(self) -> int:
        """One more than the highest frame number in use."""
        with self._env.read() as view:
            return packs.next_frame(view)

    def snapshots(self, tier: str | None = None) -> list[SnapshotRow]:
        """Snapshots, oldest first; of one tier or of all."""
        with self._env.read() as view:
            return snapshots.snapshots(view, tier)

    def pending_pages(self, tier: str) -> list[Digest]:
        """Pages received for a scan of `tier` that has not finished, in order of arrival."""
        with self._env.read() as view:
            return snapshots.pending_pages(view, tier)

    def find_file(self, source: str, path: bytes) -> FileRow | None:
        """The newest entry at this path, or None."""
        with self._env.read() as view:
            return files.find(view, source, path)

    def files_below(self, source: str, prefix: bytes) -> Iterator[FileRow]:
        """The newest entries at and below the directory `prefix`, in byte order of the paths.
        What is committed meanwhile may be among them."""
        return files.below(self._env, source, prefix)

    def chunks(self, prefix: bytes = b"") -> Iterator[tuple[Digest, Location]]:
        """Every chunk whose id begins with `prefix`, in order of the ids. What is committed
        meanwhile may be among them."""
        return self._env.rows(chunk_table.TABLE, chunk_table.decode, prefix)

    def commit(self, changes: Changes) -> None:
        """Write all of `changes` in one transaction that is durable on return."""

        def work(update: Update) -> None:
            chunk_table.forget(update, changes.forgotten_chunks)
            snapshots.forget(update, changes.forgotten_snapshots)
            chunk_table.put(update, changes.chunks)
            packs.put_segments(update, changes.segments)
            packs.put_packs(update, changes.packs)
            recipes.put(update, changes.recipes)
            snapshots.put_snapshots(update, changes.snapshots)
            files.put(update, changes.files)
            snapshots.settle(update, changes.settled_tiers)
            snapshots.put_pending(update, changes.pending_pages)

        self._env.write(work)

    def close(self) -> None:
        """Release the index."""
        self._env.close()
