"""Where in a file each chunk of its list lies.

A plain file's chunks follow one another, with holes between. An archive's list begins, in each of
its parts, with the chunks of the skeleton, which lie nowhere in particular; the others are copied.
Those that no codec compresses have an offset in the archive, the others only one in the member
that they are of.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from cas.archive import AnyRecipe, ArchiveRecipe
from cas.audit.members import Members, members_of
from cas.entry import Content
from cas.ids import Digest
from cas.interfaces import ContentSource
from cas.program import Begin, End, Skeleton
from cas.rebuild.run import content_recipes
from cas.recipe import Copy, Recipe

UNKNOWN = -1


@dataclass(frozen=True, slots=True)
class Extent:
    """One chunk's place in a file. `offset` is None where the file has no such place: in what is
    compressed, and in a skeleton. `inner` is the member of an archive that it is of, and
    `inner_offset` its place in that, where that is known."""

    number: int
    chunk: Digest
    length: int
    offset: int | None
    inner: bytes = b""
    inner_offset: int | None = None
    skeleton: bool = False


class FileMap:
    """The chunks of one file. Raises NotHeldError, DamageError, FormatError."""

    def __init__(self, content: Content, source: ContentSource, name: bytes = b"") -> None:
        """`name` is the file's own. Members are looked for when they are first asked for."""
        self._content = content
        self._source = source
        self._name = name
        self._members: Members | None = None
        self._ids: list[Digest] = []
        self._lengths = array("l")
        self._offsets = array("q")
        self._parts: list[tuple[int, int, int]] = []  # first, skeleton, copied before
        self.is_archive = False
        copied = at = level = 0
        for recipe in content_recipes(content, source):
            skeleton = 0
            if isinstance(recipe, ArchiveRecipe):
                self.is_archive, skeleton = True, recipe.skeleton
            self._parts.append((len(self._ids), skeleton, copied))
            copied += len(recipe.ids) - skeleton
            self._ids += recipe.ids
            self._lengths.extend(recipe.lengths)
            at, level = self._place(recipe, at, level)

    def __len__(self) -> int:
        return len(self._ids)

    @property
    def ids(self) -> list[Digest]:
        """The chunks, in order."""
        return self._ids

    def extent(self, number: int) -> Extent:
        """Where the chunk of this number lies."""
        first, skeleton, copied = self._part(number)
        offset = self._offsets[number]
        found = self._ids[number], self._lengths[number], None if offset == UNKNOWN else offset
        if not self.is_archive:
            return Extent(number, *found)
        if number - first < skeleton:
            return Extent(number, *found, skeleton=True)
        piece = self.members.piece(number - first - skeleton + copied)
        return Extent(number, *found, piece.path, piece.offset)

    def extents(self) -> Iterator[Extent]:
        """All of them, in the order of the list."""
        return map(self.extent, range(len(self._ids)))

    @property
    def members(self) -> Members:
        """What is in an archive."""
        if self._members is None:
            self._members = members_of(self._content, self._source, self._name)
        return self._members

    def number_of(self, copied: int) -> int:
        """The place in the list of a chunk that so many are copied before."""
        part = bisect_right(self._parts, copied, key=lambda part: part[2]) - 1
        first, skeleton, before = self._parts[part]
        return first + skeleton + copied - before

    def _part(self, number: int) -> tuple[int, int, int]:
        return self._parts[bisect_right(self._parts, number, key=lambda part: part[0]) - 1]

    def _place(self, recipe: AnyRecipe, at: int, level: int) -> tuple[int, int]:
        """Add the offsets of a part's chunks; where the next part begins, and on which level."""
        if isinstance(recipe, Recipe):
            return self._place_plain(recipe, at), 0
        self._offsets.extend([UNKNOWN] * recipe.skeleton)
        lengths = iter(recipe.lengths[recipe.skeleton :])
        for op in recipe.program:
            if isinstance(op, Copy):
                for length in islice(lengths, op.count):
                    self._offsets.append(UNKNOWN if level else at)
                    at += 0 if level else length
            elif isinstance(op, Begin):
                level += 1
            elif isinstance(op, End):
                level -= 1
                at += 0 if level else op.size
            elif isinstance(op, Skeleton) and not level:
                at += op.size
        return at, level

    def _place_plain(self, recipe: Recipe, at: int) -> int:
        lengths = iter(recipe.lengths)
        for op in recipe.operations():
            if isinstance(op, Copy):
                for length in islice(lengths, op.count):
                    self._offsets.append(at)
                    at += length
            else:
                at += op.size
        return at
