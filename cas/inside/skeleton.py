"""Reads skeletons: in the order in which a part's operations use them up, and at any place."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from itertools import accumulate, islice

from cas.archive import ArchiveRecipe, decode_archive_recipe
from cas.entry import Content
from cas.errors import FormatError
from cas.interfaces import ContentSource
from cas.program import Begin, End, Skeleton, skeleton_use
from cas.recipe import Copy


class Parts:
    """The recipes of an archive, decoded when they are asked for, of which one is kept."""

    def __init__(self, content: Content, source: ContentSource) -> None:
        self._ids = content.parts
        self._source = source
        self._last: tuple[int, ArchiveRecipe] | None = None

    def recipe(self, part: int) -> ArchiveRecipe:
        """The recipe of a part. Raises NotHeldError, DamageError, FormatError."""
        if self._last is None or self._last[0] != part:
            self._last = part, decode_archive_recipe(self._source.object(self._ids[part]))
        return self._last[1]

    def __iter__(self) -> Iterator[ArchiveRecipe]:
        return (self.recipe(part) for part in range(len(self._ids)))


class SkeletonReader:
    """The skeleton of one part. Chunks that are passed over are not fetched."""

    def __init__(self, recipe: ArchiveRecipe, source: ContentSource) -> None:
        self._ids = recipe.ids[: recipe.skeleton]
        self._ends = list(accumulate(recipe.lengths[: recipe.skeleton]))
        self._source = source
        self._number = -1  # of the chunk that is held
        self._chunk = b""
        self.position = 0

    def read(self, count: int) -> bytes:
        """The next `count` bytes. Raises FormatError where there are not as many."""
        pieces = []
        while count:
            number = bisect_right(self._ends, self.position)
            start = self._fetch(number)
            piece = self._chunk[self.position - start :][:count]
            pieces.append(piece)
            self.position += len(piece)
            count -= len(piece)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def skip(self, count: int) -> None:
        """Pass over `count` bytes."""
        self.position += count

    def _fetch(self, number: int) -> int:
        """Hold a chunk; where it begins."""
        if number >= len(self._ids):
            raise FormatError("a recipe's skeleton ends too early")
        start = self._ends[number - 1] if number else 0
        if number != self._number:
            self._chunk = self._source.chunk(self._ids[number])
            self._number = number
            if start + len(self._chunk) != self._ends[number]:
                raise FormatError("a recipe has the wrong length for a chunk")
        return start


class Framework:
    """What of an archive is skeleton on its lowest level, to be read at any place: the directory
    of a zip, say. It is found by going through all of the program, when it is asked for."""

    def __init__(self, parts: Parts, source: ContentSource) -> None:
        self._parts = parts
        self._source = source
        self._starts: list[int] = []
        self._runs: list[tuple[int, int, int]] = []  # size, part, where in its skeleton

    def read(self, count: int, offset: int) -> bytes:
        """`count` bytes from `offset`; what is no skeleton reads as zeros."""
        if not self._starts:
            self._find()
        found = bytearray(count)
        at = max(bisect_right(self._starts, offset) - 1, 0)
        while at < len(self._starts) and self._starts[at] < offset + count:
            size, part, place = self._runs[at]
            start = max(self._starts[at], offset)
            end = min(self._starts[at] + size, offset + count)
            if start < end:
                reader = SkeletonReader(self._parts.recipe(part), self._source)
                reader.skip(place + start - self._starts[at])
                found[start - offset : end - offset] = reader.read(end - start)
            at += 1
        return bytes(found)

    def _find(self) -> None:
        at = depth = 0
        for part, recipe in enumerate(self._parts):
            lengths = iter(recipe.lengths[recipe.skeleton :])
            place = 0
            for op in recipe.program:
                size = sum(islice(lengths, op.count)) if isinstance(op, Copy) else 0
                if isinstance(op, Skeleton) and not depth:
                    self._starts.append(at)
                    self._runs.append((op.size, part, place))
                    size = op.size
                place += skeleton_use(op)
                depth += isinstance(op, Begin) - isinstance(op, End)
                if isinstance(op, End):
                    size = op.size
                at += 0 if depth else size
