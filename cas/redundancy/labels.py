"""What a scan says of how well chunks will compress: a label for each.

Nothing of the content is at hand, but there is more to go by than names. Whatever was compressed at
the source tells by how much: an archive's recipe has the plain and the compressed size of each
level. Skeletons are headers and zeros. A chunk as long as the chunker lets them be is one in which
it found no place to cut, most often because it is one thing repeated. And a small file finds more
of its like in the frame's history than a part of a large one does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from itertools import takewhile

from cas.archive import ArchiveRecipe
from cas.chunker import MAX_SIZE
from cas.entry import Content
from cas.program import Begin, End, Skeleton
from cas.recipe import Copy
from cas.redundancy.chunks import Part
from cas.redundancy.kinds import kind_of
from cas.redundancy.records import LABELS_LIMIT
from cas.store.store import Store

SMALL, LARGE = 64 * 1024, 2**20  # bytes of a file or member: below, from
HEADER_MOST = 512  # bytes; a tar's first header has as many
STEP = 0.05  # ratios of levels are told apart by so much


class Sort(Enum):
    """What is known of a chunk."""

    SKELETON = "skeleton"
    FILL = "fill"
    LEVEL = "level"  # in a stream that was compressed at the source
    DENSE = "dense"  # what was left of a compressed stream that could not be taken apart
    PLAIN = "plain"


class Width(Enum):
    """How large the file or member is."""

    SMALL = "small"
    MIDDLE = "middle"
    LARGE = "large"


DEFLATED = {Width.SMALL: 0.25, Width.MIDDLE: 0.3, Width.LARGE: 0.42}
DEFLATED_REST = 0.02  # headers, padding, fill


@dataclass(frozen=True, slots=True)
class Label:
    """`ratio` is compressed by plain size of a LEVEL, `kind` what the name of a PLAIN file ends
    in."""

    sort: Sort
    width: Width = Width.SMALL
    ratio: float = 0.0
    kind: bytes = b""


@dataclass(slots=True)
class _Level:
    """A compressed stream: what it was compressed to, and its plain bytes by what they are; `dense`
    are those that are compressed streams themselves."""

    compressed: int = 0
    dense: int = 0
    skeleton: int = 0
    fill: int = 0
    files: dict[Width, int] = field(default_factory=dict)

    def copy(self, lengths: Sequence[int]) -> None:
        """Count a member of these chunks."""
        size = sum(lengths)
        fill = MAX_SIZE * lengths.count(MAX_SIZE)
        width = _width(size)
        self.fill += fill
        self.files[width] = self.files.get(width, 0) + size - fill

    def ratio(self, width: Width) -> float:
        """By how much it compressed members of this width: what it was compressed to, less what is
        no member's, is allotted as members of their widths usually compress (`DEFLATED`)."""
        usual = sum(size * DEFLATED[other] for other, size in self.files.items())
        left = self.compressed - self.dense - DEFLATED_REST * (self.skeleton + self.fill)
        ratio = DEFLATED[width] * max(0.0, left) / max(1.0, usual)
        return round(min(1.0, ratio) / STEP) * STEP


class Labeller:
    """Labels the chunks of parts as they come, and remembers which labels there are."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._numbers: dict[Label, int] = {}
        self.labels: list[Label] = []
        self._content: Content | None = None  # of the archive in hand
        self._levels: Iterator[_Level] = iter(())
        self._open: list[_Level] = []
        self._is_stream = False

    def __call__(self, part: Part) -> Sequence[int]:
        """The number of the label of each chunk: its index in `labels`."""
        if isinstance(part.recipe, ArchiveRecipe):
            return self._archive(part, part.recipe)
        label = self._number(_plain(part))
        return [self._filled(label, length) for length in part.lengths]

    def _archive(self, part: Part, recipe: ArchiveRecipe) -> list[int]:
        if part.content is not self._content:
            self._content = part.content
            self._levels, self._open = iter(self._levels_of(part.content)), []
            self._is_stream = _is_stream(recipe)
        numbers = [self._number(Label(Sort.SKELETON))] * recipe.skeleton
        for op in recipe.program:
            if isinstance(op, Begin):
                self._open.append(next(self._levels, _Level()))
            elif isinstance(op, End) and self._open:  # nobody has run this program yet
                self._open.pop()
            elif isinstance(op, Copy):
                lengths = recipe.lengths[len(numbers) : len(numbers) + op.count]
                number = self._number(self._member(_width(sum(lengths))))
                numbers += [self._filled(number, length) for length in lengths]
        return numbers

    def _member(self, width: Width) -> Label:
        """The label of what is copied where the program stands."""
        if self._open:
            return Label(Sort.LEVEL, width, self._open[-1].ratio(width))
        return Label(Sort.DENSE) if self._is_stream else Label(Sort.PLAIN, width)

    def _levels_of(self, content: Content) -> list[_Level]:
        """All levels of an archive in the order in which they begin, over all of its parts."""
        levels: list[_Level] = []
        stack: list[_Level] = []
        for part in content.parts:
            recipe = self._store.recipe(part)
            if isinstance(recipe, ArchiveRecipe):
                _add_levels(recipe, levels, stack)
        return levels

    def _filled(self, number: int, length: int) -> int:
        return self._number(Label(Sort.FILL)) if length == MAX_SIZE else number

    def _number(self, label: Label) -> int:
        number = self._numbers.get(label)
        if number is None:
            if len(self.labels) == LABELS_LIMIT - 1:
                label = Label(Sort.PLAIN)
            number = self._numbers.setdefault(label, len(self.labels))
            if number == len(self.labels):
                self.labels.append(label)
        return number


def _add_levels(recipe: ArchiveRecipe, levels: list[_Level], stack: list[_Level]) -> None:
    """Count what the levels of one part take in and come to."""
    at = recipe.skeleton
    for op in recipe.program:
        if isinstance(op, Begin):
            stack.append(_Level())
            levels.append(stack[-1])
        elif isinstance(op, End) and stack:
            stack.pop().compressed = op.size
            if stack:
                stack[-1].dense += op.size
        elif isinstance(op, Copy):
            if stack:
                stack[-1].copy(recipe.lengths[at : at + op.count])
            at += op.count
        elif isinstance(op, Skeleton) and stack:
            stack[-1].skeleton += op.size


def _is_stream(recipe: ArchiveRecipe) -> bool:
    """Whether an archive is one compressed stream, by how its first part begins: what lies beside
    its level then was compressed too."""
    before = list(takewhile(lambda op: not isinstance(op, Begin), recipe.program))
    return len(before) < len(recipe.program) and all(
        isinstance(op, Skeleton) and op.size < HEADER_MOST for op in before
    )


def _plain(part: Part) -> Label:
    return Label(Sort.PLAIN, _width(part.content.size), kind=kind_of(part.entry.path))


def _width(size: int) -> Width:
    if size < SMALL:
        return Width.SMALL
    return Width.MIDDLE if size < LARGE else Width.LARGE
