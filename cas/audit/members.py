"""Which chunks of an archive's list are which member's.

The archive is walked as for a listing (`cas/inside/`): where a member begins, it is noted how many
chunks were copied before it, and on which level of the program. Then the program is gone through,
with a count of the bytes that it has written on each level, and each chunk that it copies belongs
to the innermost member begun before it that is on the chunk's level or below and does not end
before it. What is left of an archive that was cut off, or lies behind its last member, is so the
archive's own.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from cas.archive import ArchiveRecipe
from cas.entry import Content, Kind
from cas.errors import FormatError
from cas.inside.look import SEPARATOR, InnerEntry, Look, Lying
from cas.inside.members import LINKS_LIMIT, normal_path
from cas.inside.skeleton import Framework, Parts
from cas.inside.walk import Walk
from cas.interfaces import ContentSource
from cas.program import Begin, End, Skeleton
from cas.recipe import Copy

NOWHERE = -1


@dataclass(frozen=True, slots=True)
class Mark:
    """A member, how it lies in its archive, the chunks that were copied before it, and the level
    that it is on."""

    entry: InnerEntry
    lying: Lying
    path: bytes
    copied: int
    level: int

    def has(self, level: int, position: int) -> bool:
        """Whether the byte at a position of a level, after it has begun, may be its own."""
        if self.entry.kind is not Kind.FILE or level < self.level:
            return False
        is_sized = self.lying.is_plain and not self.lying.is_level and self.entry.size is not None
        if level > self.level or not is_sized:
            return True
        return self.lying.start <= position < self.lying.start + (self.entry.size or 0)

    def offset(self, level: int, position: int) -> int:
        """Which byte of the file that is, if it can be told."""
        if not self.lying.is_plain or level != self.level + self.lying.is_level:
            return NOWHERE
        return position - (0 if self.lying.is_level else self.lying.start)


@dataclass(frozen=True, slots=True)
class Piece:
    """A chunk that an archive copies, as a piece of a member: its place in that (None where it is
    not known), or in nothing but the archive (an empty path)."""

    path: bytes
    offset: int | None


class Members:
    """What belongs to whom in one archive, by the number of the chunk among those copied."""

    def __init__(self, marks: Sequence[Mark], recipes: Sequence[ArchiveRecipe]) -> None:
        self.marks = marks
        self._owners = array("l")  # by chunk: a number in `marks`, or NOWHERE
        self._offsets = array("q")
        self._assign(recipes)

    def piece(self, number: int) -> Piece:
        """Whose chunk `number` is."""
        owner, offset = self._owners[number], self._offsets[number]
        if owner == NOWHERE:
            return Piece(b"", None)
        return Piece(self.marks[owner].path, None if offset == NOWHERE else offset)

    def chunks_of(self, path: bytes) -> tuple[InnerEntry, list[int]] | None:
        """The last member at `path`, and the numbers of its chunks and of those of what is in it;
        for a further name of another, those of that one. None if there is none."""
        first: InnerEntry | None = None
        for _ in range(LINKS_LIMIT):
            number = self._last_at(path)
            if number is None:
                return None
            entry = self.marks[number].entry
            first = first or entry
            if not entry.link:
                return first, list(self._range(number))
            path = normal_path(path[: path.rfind(SEPARATOR) + 1] + b"/" + entry.link)
        return None

    def own(self) -> list[list[int]]:
        """For each of `marks` the numbers of its own chunks, without those of what is in it."""
        found: list[list[int]] = [[] for _ in self.marks]
        for number, owner in enumerate(self._owners):
            if owner != NOWHERE:
                found[owner].append(number)
        return found

    def _last_at(self, path: bytes) -> int | None:
        found = (n for n, mark in enumerate(self.marks) if mark.path == path)
        return max(found, default=None)

    def _range(self, number: int) -> Iterator[int]:
        """The chunks from a member on that are its own, or of what is in it."""
        mark = self.marks[number]
        for at in range(mark.copied, len(self._owners)):
            owner = self._owners[at]
            if owner == NOWHERE or not is_within(self.marks[owner].path, mark.path):
                return
            yield at

    def _assign(self, recipes: Sequence[ArchiveRecipe]) -> None:
        begun: list[int] = []  # numbers in `marks`, each within the one before
        next_mark = 0
        written = [0]  # on each level that is open
        for recipe in recipes:
            lengths = iter(recipe.lengths[recipe.skeleton :])
            for op in recipe.program:
                if isinstance(op, Copy):
                    for length in islice(lengths, op.count):
                        next_mark = self._begin(begun, next_mark)
                        self._take(begun, len(written) - 1, written[-1])
                        written[-1] += length
                elif isinstance(op, Skeleton):
                    written[-1] += op.size
                elif isinstance(op, Begin):
                    written.append(0)
                elif isinstance(op, End) and len(written) > 1:
                    written.pop()
                    written[-1] += op.size

    def _begin(self, begun: list[int], number: int) -> int:
        """Take in the members that begin before the chunk that is next; which is the first not."""
        at = len(self._owners)
        while number < len(self.marks) and self.marks[number].copied <= at:
            path = self.marks[number].path
            while begun and not path.startswith(self.marks[begun[-1]].path + SEPARATOR):
                begun.pop()
            begun.append(number)
            number += 1
        return number

    def _take(self, begun: list[int], level: int, position: int) -> None:
        """Say whose the next chunk is, from a position of a level."""
        while begun and not self.marks[begun[-1]].has(level, position):
            begun.pop()
        owner = begun[-1] if begun else NOWHERE
        self._owners.append(owner)
        self._offsets.append(self.marks[owner].offset(level, position) if begun else NOWHERE)


def members_of(content: Content, source: ContentSource, name: bytes = b"") -> Members:
    """The members of an archive that was looked into; `name` is its own. Costs a listing: headers
    are read, content is not. Raises NotHeldError, DamageError, FormatError."""
    parts = Parts(content, source)
    passed = 0  # chunks copied by the parts before that in hand
    taken: list[ArchiveRecipe] = []

    def taking() -> Iterator[ArchiveRecipe]:
        nonlocal passed
        for recipe in parts:
            taken.append(recipe)
            yield recipe
            passed += len(recipe.ids) - recipe.skeleton

    walk = Walk(taking(), source)
    pread = Framework(parts, source).read
    marks = []
    try:
        for found in Look(walk).archive(walk.source(content.size, pread), b"", name, 0):
            path = normal_path(found.entry.path)
            mark = Mark(found.entry, found.lying, path, passed + walk.copied, walk.level)
            marks.append(mark)
    except FormatError:
        pass  # what was found before holds
    return Members(marks, list(parts) if len(taken) < len(content.parts) else taken)


def is_within(path: bytes, outer: bytes) -> bool:
    """Whether `path` is `outer`, or in the archive that is `outer`."""
    return path == outer or path.startswith(outer + SEPARATOR)
