"""The chunks of a tier with their lengths, as its snapshot names them.

Whether their content is here does not matter, so a tier that was only scanned has them too. What is
in archives is among them: an archive's chunks are those of the files in it, and of its skeleton.
Holes are no chunks. Each chunk comes as often as the tier has it; whoever counts decides what to
make of that.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from cas.archive import AnyRecipe, ArchiveRecipe
from cas.entry import Content, Entry
from cas.ids import Digest
from cas.snapshot import Snapshot
from cas.store.store import Store


@dataclass(frozen=True, slots=True)
class Part:
    """Chunks that follow one another in a file: those of one of its recipes, or its only one.

    `page` and `first` are the place of the first of them in a chunk space, by which origins name
    chunks too (docs/format.md, section 3). `recipe` is None for a file of one chunk, and for one
    whose recipes are not here: that stands as one chunk with the file's own digest and size, and
    is not `is_known`.
    """

    entry: Entry
    content: Content
    page: Digest
    first: int
    ids: tuple[Digest, ...]
    lengths: tuple[int, ...]
    recipe: AnyRecipe | None = None

    @property
    def is_known(self) -> bool:
        """Whether these are chunks, and not a file of which no more is known."""
        return self.recipe is not None or not self.content.parts

    @property
    def skeleton(self) -> int:
        """How many chunks, from the first on, are an archive's skeleton."""
        return self.recipe.skeleton if isinstance(self.recipe, ArchiveRecipe) else 0


def tier_chunks(store: Store, snapshot: Snapshot) -> Iterator[Part]:
    """All chunks of a snapshot, in the order of its files and of the bytes in them; nothing for an
    empty file, or one that could not be read. One page and one recipe are in memory at a time.

    Raises NotHeldError where a page is not here, DamageError.
    """
    for ref in snapshot.pages:
        first = 0
        entries = store.page(ref.id)
        lost = _lost(store, entries)
        for entry in entries:
            content = entry.content
            if content is not None and content.chunk_count:
                yield from _parts(store, entry, content, ref.id, first, lost)
                first += content.chunk_count


def _lost(store: Store, entries: list[Entry]) -> set[Digest]:
    """The recipes of a page that are not here: none, unless they were damaged."""
    parts = [part for entry in entries if entry.content for part in entry.content.parts]
    held = store.index.held(parts) if parts else []
    return {part for part, here in zip(parts, held, strict=True) if not here}


def _parts(
    store: Store, entry: Entry, content: Content, page: Digest, first: int, lost: set[Digest]
) -> Iterator[Part]:
    if not content.parts or not lost.isdisjoint(content.parts):
        yield Part(entry, content, page, first, (content.digest,), (content.size,))
        return
    for part in content.parts:
        recipe = store.recipe(part)
        yield Part(entry, content, page, first, recipe.ids, recipe.lengths, recipe)
        first += len(recipe.ids)
