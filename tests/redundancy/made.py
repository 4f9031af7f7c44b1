"""Stores that only know what tiers have, as after a scan: pages, recipes, snapshots, no content."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from cas.archive import ArchiveRecipe, encode_archive_recipe
from cas.chunker import IDENTITY
from cas.entry import Content, Entry, Kind, Owner, path_order
from cas.ids import EMPTY_DIGEST, Digest, digest_of
from cas.interfaces import Index
from cas.pack import Origin
from cas.page import Paginator, encode_page
from cas.recipe import Recipe, encode_recipe
from cas.snapshot import Snapshot
from cas.store.layout import Layout
from cas.store.memory_index import MemoryIndex
from cas.store.store import Store, enter_snapshot, page_ref
from cas.store.writer import Writer

OWNER = Owner(0o644, 0, 0)
ORIGIN = Origin(bytes(16), "npu", "made", 0, 0, 0, ())
Chunk = tuple[int, int]  # a number that stands for the chunk, and its length


def chunk_id(number: int) -> Digest:
    """The id of the chunk of this number."""
    return digest_of(b"chunk %d" % number)


@dataclass(slots=True)
class MadeStore:
    """A store in `root` whose tiers are made of numbered chunks."""

    root: Path
    index: Index = field(default_factory=MemoryIndex)
    layout: Layout = field(init=False)
    writer: Writer = field(init=False)
    _moment: int = 0

    def __post_init__(self) -> None:
        self.layout = Layout(self.root)
        self.layout.create()
        self.writer = Writer(self.layout, self.index)

    def open(self) -> Store:
        """The store, for reading; all that was added is there."""
        self.writer.commit()
        return Store(self.root, self.index)

    def tier(self, name: str, files: Mapping[str, Sequence[Chunk]]) -> None:
        """A snapshot of `name` with these files, in any order."""
        paths = sorted((path.encode() for path in files), key=path_order)
        self.enter(name, (self.entry(path, files[path.decode()]) for path in paths))

    def entry(self, path: bytes, chunks: Sequence[Chunk]) -> Entry:
        """A file of these chunks; its recipe is stored."""
        content = Content(0, EMPTY_DIGEST, 0)
        if len(chunks) == 1:
            content = Content(chunks[0][1], chunk_id(chunks[0][0]), 1)
        elif chunks:
            ids, lengths = tuple(chunk_id(n) for n, _ in chunks), tuple(size for _, size in chunks)
            recipe = Recipe(sum(lengths), digest_of(b"".join(ids)), ids, lengths)
            part = self.writer.add_object(encode_recipe(recipe), ORIGIN)
            content = Content(recipe.size, recipe.digest, len(ids), (part,))
        return Entry(path, Kind.FILE, OWNER, 0, content.size, content)

    def archive(self, path: bytes, recipe: ArchiveRecipe) -> Entry:
        """A file of one archive's recipe, which is stored."""
        part = self.writer.add_object(encode_archive_recipe(recipe), ORIGIN)
        content = Content(recipe.size, recipe.digest, len(recipe.ids), (part,))
        return Entry(path, Kind.FILE, OWNER, 0, content.size, content)

    def enter(self, name: str, entries: Iterable[Entry]) -> None:
        """A snapshot of `name` with these entries, which are in path order."""
        refs = [
            page_ref(self.writer.add_object(encode_page(page), ORIGIN), page)
            for page in _pages(entries)
        ]
        self.writer.commit()
        self._moment += 1
        snapshot = Snapshot(
            name, "npu", "host", (b"/",), bytes(16), 0, self._moment, IDENTITY, "0", 0,
            tuple(refs), (),
        )  # fmt: skip
        enter_snapshot(Store(self.root, self.index), self.writer, snapshot)
        self.writer.commit()


def copy_scans(source: Store, layout: Layout, index: Index) -> None:
    """Put the newest snapshots of `source` into the empty store of `layout`, with pages and
    recipes and without any content: what is left of a scan that nothing was fetched after."""
    store, writer = Store(layout.root, index), Writer(layout, index)
    for tier in source.tiers():
        _, snapshot = source.latest(tier)
        for ref in snapshot.pages:
            for entry in source.page(ref.id):
                for part in entry.content.parts if entry.content else ():
                    writer.add_object(source.reader.object(part), ORIGIN)
            writer.add_object(source.reader.object(ref.id), ORIGIN)
        writer.commit()
        enter_snapshot(store, writer, snapshot)
    writer.commit()
    writer.close()


def _pages(entries: Iterable[Entry]) -> Iterator[list[Entry]]:
    paginator, page = Paginator(), []
    for entry in entries:
        page.append(entry)
        if paginator.ends_after(entry):
            yield page
            page = []
    if page:
        yield page
