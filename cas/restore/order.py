"""The order in which files are made: that in which their content is stored.

Within a tier this is nearly the order of paths. But a file that another tier, or another directory,
brought before has its content in an old frame, and each step back into one costs decoding up to all
of its 32 MiB. So files are collected, some ten thousand at a time, and made in the order of
their first chunks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cas.archive import ArchiveRecipe
from cas.entry import Content, Entry
from cas.errors import CasError
from cas.ids import Digest
from cas.interfaces import ContentSource, Location
from cas.rebuild.run import content_recipes
from cas.recipe import Recipe


@dataclass(frozen=True, slots=True)
class Placed:
    """An entry, and where the first chunk of its content is; None if it has none, it is not held,
    or an archive's, which is made from chunks in many places. `recipe` if it has just one."""

    entry: Entry
    first: Location | None
    recipe: Recipe | None = None

    @property
    def frame(self) -> int:
        """The frame of its first chunk, or -1."""
        return -1 if self.first is None else self.first.frame

    @property
    def place(self) -> tuple[int, int, int]:
        """What to sort by."""
        if self.first is None:
            return (-1, 0, 0)
        return (self.first.frame, self.first.segment, self.first.offset)


def in_order(entries: Sequence[Entry], source: ContentSource) -> list[Placed]:
    """The entries in the order in which their content is stored, those without any first. What is
    amiss with a content is told when it is made, not here."""
    begun = [_first_chunk(entry.content, source) for entry in entries]
    known = [chunk for chunk, _ in begun if chunk is not None]
    locations = dict(zip(known, source.locate(known), strict=True))
    placed = (
        Placed(entry, None if chunk is None else locations[chunk], recipe)
        for entry, (chunk, recipe) in zip(entries, begun, strict=True)
    )
    return sorted(placed, key=lambda one: one.place)


def _first_chunk(
    content: Content | None, source: ContentSource
) -> tuple[Digest | None, Recipe | None]:
    """The first chunk, and the recipe if there is just one."""
    if content is None or not content.size:
        return None, None
    if not content.parts:
        return content.digest, None
    try:
        for recipe in content_recipes(content, source):
            if isinstance(recipe, ArchiveRecipe):
                break
            if recipe.ids:
                return recipe.ids[0], recipe if len(content.parts) == 1 else None
    except CasError:
        pass
    return None, None
