"""Where the bytes of a content are in the store, and where they go in the file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice

from cas.entry import Content
from cas.errors import DamageError, NotHeldError
from cas.frame import FRAME_LIMIT
from cas.ids import Digest
from cas.interfaces import ContentSource, Location
from cas.rebuild.chunks import wrong_length
from cas.rebuild.run import WRONG_SIZE, content_recipes, plain
from cas.recipe import Hole, Recipe

WINDOW_LEAST = 96 * 2**20  # bytes of data
WINDOW_MOST = 2**30  # reached where a window would decode more than twice what it takes
LOCATED_AT_ONCE = 1024  # chunks


@dataclass(frozen=True, slots=True)
class Span:
    """Bytes of a segment, and where they go in the file; of one chunk, `id`, or of several. `alone`
    if they can be read without others of their frame."""

    location: Location
    at: int
    id: Digest
    alone: bool


@dataclass(slots=True)
class Window:
    """A stretch of the file from `start` to `end`; what is in no span is a hole."""

    start: int
    end: int
    size: int = 0  # of the spans
    spans: list[Span] = field(default_factory=list)
    frames: set[int] = field(default_factory=set)  # that must be decoded

    def add(self, location: Location, chunk_id: Digest, *, alone: bool) -> None:
        """Let the chunk at `location` follow."""
        self.spans.append(Span(location, self.end, chunk_id, alone))
        if not alone:
            self.frames.add(location.frame)
        self.size += location.length
        self.end += location.length

    def holes(self) -> Iterator[tuple[int, int]]:
        """From where to where it is in no span."""
        end = self.start
        for span in self.spans:
            if span.at > end:
                yield end, span.at
            end = span.at + span.location.length
        if self.end > end:
            yield end, self.end

    def ends_before(self, frame: int) -> bool:
        """Whether a chunk of `frame` had better begin the next window: one that has WINDOW_LEAST
        ends where a frame does, if it does not decode much more than it takes."""
        if frame in self.frames:
            return self.size >= WINDOW_MOST
        return len(self.frames) * FRAME_LIMIT <= 2 * self.size


def windows(
    content: Content, source: ContentSource, recipe: Recipe | None = None
) -> Iterator[Window]:
    """The spans of `content`, no archive, in the order of the file, by windows; a small content is
    one. `recipe` is its only one, if that was read already.

    Raises NotHeldError, FormatError, DamageError unless they come out at its size.
    """
    window = Window(0, 0)
    segment, alone = None, False
    recipes = content_recipes(content, source) if recipe is None else [recipe]
    for part in map(plain, recipes):
        chunks = _located(part, source)
        for op in part.operations():
            if isinstance(op, Hole):
                window.end += op.size
                continue
            for location, id_ in islice(chunks, op.count):
                if window.size >= WINDOW_LEAST and window.ends_before(location.frame):
                    yield window
                    window = Window(window.end, window.end)
                if segment != (location.frame, location.segment):
                    segment = (location.frame, location.segment)
                    alone = source.stands_alone(location)
                window.add(location, id_, alone=alone)
        if window.end > content.size:
            break
    if window.end != content.size:
        raise DamageError(WRONG_SIZE, where=content.digest.hex())
    yield window


def _located(recipe: Recipe, source: ContentSource) -> Iterator[tuple[Location, Digest]]:
    """The chunks of `recipe` with their locations."""
    ids, lengths = recipe.ids, recipe.lengths
    for at in range(0, len(ids), LOCATED_AT_ONCE):
        some = ids[at : at + LOCATED_AT_ONCE]
        for id_, length, location in zip(some, lengths[at:], source.locate(some), strict=False):
            if location is None:
                raise NotHeldError("a chunk is not in the store", where=id_.hex())
            if location.length != length:
                raise wrong_length(id_)
            yield location, id_


def joined(spans: Iterable[Span]) -> Iterator[Span]:
    """The spans, those that follow one another both in a segment and in the file made one."""
    last: Span | None = None
    for span in spans:
        if last is None:
            last = span
            continue
        here, there = last.location, span.location
        end = (here.frame, here.segment, here.offset + here.length)
        if end == (there.frame, there.segment, there.offset) and last.at + here.length == span.at:
            length = here.length + there.length
            merged = Location(here.frame, here.segment, here.offset, length)
            last = Span(merged, last.at, last.id, last.alone)
        else:
            yield last
            last = span
    if last is not None:
        yield last
