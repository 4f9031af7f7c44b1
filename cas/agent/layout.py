"""What an archive's program says of itself, for whoever walks it at the source.

The program runs over all parts, of which few are decoded at a time. Where a level's deflate streams
end and the next begin is told by operations that may come some way behind the plain bytes there, so
it is sometimes looked for ahead of the walk.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Sequence

from cas.archive import ArchiveRecipe, decode_archive_recipe
from cas.errors import SourceError
from cas.ids import Digest
from cas.program import Begin, End, Op, Span, Verbatim

RECIPES_DECODED = 3  # that of the walk, and of what is looked for ahead

RecipeOf = Callable[[Digest], bytes]  # the encoded recipe of an id
Place = tuple[int, int]  # a part, and the number of an operation in it


class Program:
    """The recipes of one archive, decoded as they are asked for."""

    def __init__(self, parts: Sequence[Digest], recipe_of: RecipeOf) -> None:
        self._parts = parts
        self._recipe_of = recipe_of
        self._decoded: OrderedDict[int, ArchiveRecipe] = OrderedDict()
        self._firsts = [0]  # where the chunks of each part begin, as far as that is known

    def recipe(self, part: int) -> ArchiveRecipe:
        """The recipe of a part; raises SourceError if there is none."""
        found = self._decoded.get(part)
        if found is None:
            if part >= len(self._parts):
                raise SourceError("an archive's recipes have fewer chunks than its entry says")
            found = decode_archive_recipe(self._recipe_of(self._parts[part]))
            self._decoded[part] = found
            if len(self._decoded) > RECIPES_DECODED:
                self._decoded.popitem(last=False)
        self._decoded.move_to_end(part)
        return found

    def first(self, part: int) -> int:
        """The index of a part's first chunk in the archive's chunk list."""
        while part >= len(self._firsts):
            last = len(self._firsts) - 1
            self._firsts.append(self._firsts[last] + len(self.recipe(last).ids))
        return self._firsts[part]

    def find(self, index: int) -> tuple[int, int]:
        """The part that has the chunk `index`, and its number there; raises SourceError."""
        part = bisect_right(self._firsts, index) - 1
        while index >= self.first(part + 1):
            part += 1
        return part, index - self._firsts[part]

    def operation(self, place: Place) -> tuple[Op | None, Place]:
        """The operation at a place, and the place after it; None after the last."""
        part, at = place
        while part < len(self._parts):
            program = self.recipe(part).program
            if at < len(program):
                return program[at], (part, at + 1)
            part, at = part + 1, 0
        return None, place


class Layout:
    """What lies between the streams of one level, the `number`th over the file. It is told of the
    operations as the walk passes them, or looks for them itself."""

    def __init__(self, program: Program, number: int) -> None:
        self._program = program
        self._number = number
        self._next: Place = (0, 0)  # the operations before it are told
        self._depth = 0  # how many levels are open there
        self._before = [0]  # bytes before each stream; only the last may have more to come
        self._in_stream = False  # a span came after those
        self._begun = 0  # streams

    def tell(self, op: Op, place: Place) -> None:
        """The walk passes a span or verbatim of this level."""
        if place >= self._next:
            self._tell(op)

    def begin_again(self) -> None:
        """The level's first stream is the next one."""
        self._begun = 0

    def between(self, here: Place, depth: int) -> int | None:
        """How many bytes lie before the next stream, or None if none follows. The walk stands
        at `here`, where `depth` levels are open."""
        if here > self._next:
            self._next, self._depth = here, depth
        while len(self._before) < self._begun + (1 if self._in_stream else 2):
            op, after = self._program.operation(self._next)
            if op is None or (isinstance(op, End) and self._depth == self._number):
                break
            self._depth += isinstance(op, Begin) - isinstance(op, End)
            if isinstance(op, (Span, Verbatim)) and op.level == self._number:
                self._tell(op)
            self._next = after
        self._begun += 1
        return self._before[self._begun - 1] if self._begun <= len(self._before) else None

    def _tell(self, op: Op) -> None:
        if isinstance(op, Span):
            self._in_stream = True
        elif isinstance(op, Verbatim):
            if self._in_stream:
                self._before.append(0)
                self._in_stream = False
            self._before[-1] += op.size
