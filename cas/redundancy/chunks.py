"""The chunks of a tier with their lengths, as its snapshot names them.

Whether their content is here does not matter, so a tier that was only scanned has them too. What is
in archives is among them: an archive's chunks are those of the files in it, and of its skeleton.
Holes are no chunks. Each chunk comes as often as the tier has it; whoever counts decides what to
make of that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from cas.archive import AnyRecipe, ArchiveRecipe, decode_any_recipe
from cas.entry import Content, Entry
from cas.errors import DamageError, FormatError
from cas.ids import Digest, digest_of
from cas.interfaces import Location
from cas.snapshot import Snapshot
from cas.store.store import Store

Places = Mapping[Digest, Location | None]  # of recipes; None where one is not here


class Part(NamedTuple):  # and no dataclass: there are millions, and it is made in half the time
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
        places = _places(store, entries)
        for entry in entries:
            content = entry.content
            if content is None or not content.chunk_count:
                continue
            if content.parts and None not in map(places.__getitem__, content.parts):
                yield from _parts(store, entry, content, ref.id, first, places)
            else:
                yield Part(entry, content, ref.id, first, (content.digest,), (content.size,))
            first += content.chunk_count


def _places(store: Store, entries: list[Entry]) -> Places:
    """Where the recipes of a page are, asked all at once: None but for those that were damaged."""
    parts = [part for entry in entries if entry.content for part in entry.content.parts]
    return dict(zip(parts, store.reader.locate(parts), strict=True)) if parts else {}


def _parts(
    store: Store, entry: Entry, content: Content, page: Digest, first: int, places: Places
) -> Iterator[Part]:
    for part in content.parts:
        recipe = _recipe(store, part, places[part])
        yield Part(entry, content, page, first, recipe.ids, recipe.lengths, recipe)
        first += len(recipe.ids)


def _recipe(store: Store, part: Digest, place: Location | None) -> AnyRecipe:
    """As `store.recipe`, for one that has been located: half of the time. Whatever is wrong there,
    be it that the index has changed since, `store.recipe` finds out about."""
    try:
        encoded = store.reader.read(place) if place is not None else b""
        if digest_of(encoded) == part:
            return decode_any_recipe(bytes(encoded))
    except (DamageError, FormatError):
        pass
    return store.recipe(part)
