"""A store: what is held, and by which snapshots.

Reading needs no lock and goes on while another process writes. Writing is `Writer`'s
(`cas/store/writer.py`); this class adds what makes a snapshot.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from cas.archive import AnyRecipe, ArchiveRecipe, decode_any_recipe
from cas.entry import Entry, path_order
from cas.errors import DamageError, FormatError, NotHeldError
from cas.ids import Digest, digest_of
from cas.interfaces import Changes, Index, SnapshotRow
from cas.page import decode_page
from cas.recipe import single_chunk
from cas.snapshot import PageRef, Snapshot, decode_snapshot, encode_snapshot
from cas.store.durable import commit_bytes
from cas.store.layout import Layout
from cas.store.packfile import disk_error
from cas.store.reader import PackReader
from cas.store.writer import Writer


@dataclass(frozen=True, slots=True)
class Held:
    """How much of a snapshot's content is here: bytes of distinct chunks, and those missing.
    `packed` says what in its archives was left as it is: the archive's path, and why."""

    unique: int
    missing: int
    missing_chunks: int
    packed: tuple[tuple[bytes, str], ...] = ()


class Store:
    """An open store. `reader` gives chunks and objects, `index` the tables."""

    def __init__(self, root: Path, index: Index) -> None:
        self.layout = Layout(root)
        self.index = index
        self.reader = PackReader(index, self.layout.packs)

    def snapshots(self, tier: str | None = None) -> list[SnapshotRow]:
        """Snapshots, oldest first; of one tier or of all."""
        return self.index.snapshots(tier)

    def tiers(self) -> list[str]:
        """The names of all tiers that have a snapshot, in order of their first one."""
        return list(dict.fromkeys(row.tier for row in self.index.snapshots()))

    def latest(self, tier: str) -> tuple[SnapshotRow, Snapshot]:
        """The newest snapshot of `tier`; raises NotHeldError."""
        rows = self.index.snapshots(tier)
        if not rows:
            raise NotHeldError("no snapshot of this tier is held", where=tier)
        return rows[-1], self.snapshot(rows[-1].id)

    def snapshot(self, snapshot_id: Digest) -> Snapshot:
        """The snapshot of this id; raises NotHeldError, DamageError."""
        path = self.layout.snapshots / snapshot_id.hex()
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            raise NotHeldError("no such snapshot", where=snapshot_id.hex()) from None
        if digest_of(data) != snapshot_id:
            raise DamageError("a snapshot is damaged", where=str(path))
        return decode_snapshot(data)

    def page(self, page_id: Digest) -> list[Entry]:
        """The entries of a page; raises NotHeldError, DamageError."""
        try:
            return decode_page(self.reader.object(page_id))
        except FormatError as error:
            raise DamageError(f"a page is damaged: {error}", where=page_id.hex()) from error

    def recipe(self, recipe_id: Digest) -> AnyRecipe:
        """The recipe of this id; raises NotHeldError, DamageError."""
        try:
            return decode_any_recipe(self.reader.object(recipe_id))
        except FormatError as error:
            raise DamageError(f"a recipe is damaged: {error}", where=recipe_id.hex()) from error

    def entries(self, snapshot: Snapshot) -> Iterator[Entry]:
        """All entries of a snapshot, in path order."""
        for ref in snapshot.pages:
            yield from self.page(ref.id)

    def find(self, snapshot: Snapshot, path: bytes) -> Entry | None:
        """The entry at `path`, or None."""
        at = bisect_right(snapshot.pages, path_order(path), key=lambda ref: path_order(ref.first))
        if at == 0:
            return None
        return next((e for e in self.page(snapshot.pages[at - 1].id) if e.path == path), None)

    def below(self, snapshot: Snapshot, path: bytes) -> Iterator[Entry]:
        """The entry at `path` and everything below it, in path order; all for an empty path."""
        if not path:
            yield from self.entries(snapshot)
            return
        order = path_order(path)
        at = bisect_right(snapshot.pages, order, key=lambda ref: path_order(ref.first))
        for ref in snapshot.pages[max(at - 1, 0) :]:
            if path_order(ref.first)[: len(order)] > order:
                return
            for entry in self.page(ref.id):
                if entry.path == path or entry.path.startswith(path + b"/"):
                    yield entry

    def chunks_of(self, entry: Entry) -> Iterator[tuple[Digest, int]]:
        """The chunks (id, length) of an entry's content, in its chunk order."""
        for recipe in self._recipes(entry):
            yield from zip(recipe.ids, recipe.lengths, strict=True)

    def _recipes(self, entry: Entry) -> Iterator[AnyRecipe]:
        content = entry.content
        if content is None or not content.size:
            return
        if not content.parts:
            yield single_chunk(content.digest, content.size)
        yield from map(self.recipe, content.parts)

    def held(self, snapshot: Snapshot) -> Held:
        """How much of `snapshot` is here. Looks at every chunk: seconds for a large tier."""
        seen: set[Digest] = set()
        packed: list[tuple[bytes, str]] = []
        unique = missing = missing_chunks = 0
        for ref in snapshot.pages:
            entries = self.page(ref.id)
            chunks = chain.from_iterable(self._known_chunks(entry, packed) for entry in entries)
            fresh = {id_: length for id_, length in chunks if id_ not in seen}
            seen.update(fresh)
            unique += sum(fresh.values())
            for (_, length), here in zip(fresh.items(), self.index.held(list(fresh)), strict=True):
                if not here:
                    missing += length
                    missing_chunks += 1
        return Held(unique, missing, missing_chunks, tuple(packed))

    def packed(self, entry: Entry) -> list[str]:
        """What of an archive was left as it is, and why. Raises NotHeldError, DamageError."""
        recipes = map(self.recipe, entry.content.parts if entry.content else ())
        return [note for recipe in recipes if isinstance(recipe, ArchiveRecipe)
                for note in recipe.notes]  # fmt: skip

    def _known_chunks(
        self, entry: Entry, packed: list[tuple[bytes, str]]
    ) -> Iterator[tuple[Digest, int]]:
        try:
            for recipe in self._recipes(entry):
                if isinstance(recipe, ArchiveRecipe):
                    packed += ((entry.path, note) for note in recipe.notes)
                yield from zip(recipe.ids, recipe.lengths, strict=True)
        except NotHeldError:  # its recipe has not come yet: the whole file is missing
            if entry.content is not None:
                yield entry.content.digest, entry.content.size

    def close(self) -> None:
        """Release files and index."""
        self.reader.close()
        self.index.close()


def enter_snapshot(store: Store, writer: Writer, snapshot: Snapshot) -> SnapshotRow:
    """Write a snapshot's file, durable on return, and note its row for the next commit. All its
    pages and recipes must be durable. The tier's newest one is taken again if it says the same.
    Raises StoreError."""
    rows = store.snapshots(snapshot.tier)
    if rows and same_content(store.snapshot(rows[-1].id), snapshot):
        writer.note(Changes(settled_tiers=[snapshot.tier]))
        return rows[-1]
    encoded = encode_snapshot(snapshot)
    row = SnapshotRow(digest_of(encoded), snapshot.tier, snapshot.finished_ms, complete=False)
    path = store.layout.snapshots / row.id.hex()
    try:
        commit_bytes(path, encoded)
    except OSError as error:
        raise disk_error(error, path) from error
    writer.note(Changes(snapshots=[row], settled_tiers=[snapshot.tier]))
    return row


def same_content(one: Snapshot, other: Snapshot) -> bool:
    """Whether two snapshots say the same of the tier, whenever they were made."""
    return _said(one) == _said(other)


def _said(snapshot: Snapshot) -> tuple[object, ...]:
    return snapshot.source, snapshot.roots, snapshot.pages, snapshot.problems


def page_ref(page_id: Digest, entries: list[Entry]) -> PageRef:
    """What a snapshot keeps of a page."""
    contents = [entry.content for entry in entries if entry.content is not None]
    return PageRef(
        page_id,
        entries[0].path,
        len(entries),
        sum(content.size for content in contents),
        sum(content.chunk_count for content in contents),
    )
