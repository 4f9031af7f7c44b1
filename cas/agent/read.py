"""The second pass: reads wanted chunks again, in the order in which they lie in a page.

What is read is hashed before it counts. A chunk whose bytes are not those of the scan is reported
as missed, never handed out; so whatever has happened to a file since, nothing else of it leaves.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import TracebackType
from typing import Protocol, TypeAlias

from cas.agent.extract import CHANGED, Extractors
from cas.archive import is_archive
from cas.entry import Content, Entry
from cas.errors import SourceError
from cas.hashing import digests_of
from cas.ids import Digest, digest_of
from cas.recipe import Copy, Recipe, decode_recipe

# Bytes read at once where wanted chunks lie side by side, or one chunk. All of them stay in memory
# as long as one of the chunks does.
READ_SIZE = 2**20

RECIPES_DECODED = 2


@dataclass(frozen=True, slots=True)
class Found:
    """The chunk at `index` of the page's chunk space, hashed and found right."""

    index: int
    data: bytes | memoryview


@dataclass(frozen=True, slots=True)
class Missed:
    """The chunk at `index` cannot be had any more, and why."""

    index: int
    reason: str


Result: TypeAlias = Found | Missed


class Files(Protocol):
    """Opens files, for one thread."""

    def regular_file(self, path: bytes, /) -> tuple[int, object]:
        """A descriptor of the regular file at the entry path `path`, which the caller closes; what
        comes with it does not matter here. Raises OSError."""

    def __enter__(self) -> Files: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
        /,
    ) -> None: ...


class Reach(Protocol):
    """Which files an agent can reach; safe to use from several threads."""

    def opener(self) -> Files:
        """What opens them."""

    def close(self) -> None:
        """No more is opened."""


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a wanted chunk lies in its file."""

    index: int
    id: Digest
    offset: int
    length: int


def read_wanted(
    entries: Sequence[Entry],
    recipe_of: Callable[[Digest], bytes],
    wanted: Sequence[int],
    *,
    guard: Reach,
    extractors: Extractors,
) -> Iterator[Result]:
    """One result for each of `wanted`, ascending indexes into the chunk space of the page with
    these entries, in that order. Files are opened once each, below roots that `guard` admits;
    `extractors` read what lies in archives.

    Needs memory for `READ_SIZE` bytes and one recipe. Raises SourceError for an index that the
    page does not have, and what `recipe_of` raises.
    """
    with guard.opener() as opener:
        first = done = 0
        for entry in entries:
            content = entry.content
            if content is None or done == len(wanted):
                continue
            end = first + content.chunk_count
            start = done
            while done < len(wanted) and wanted[done] < end:
                done += 1
            if done > start and not content.parts:
                yield _read_small(opener, entry.path, content, first)
            elif done > start:
                part = recipe_of(content.parts[0])
                some = wanted[start:done]
                if is_archive(part):
                    yield from _read_archive(opener, entry.path, content, first, some, extractors)
                else:
                    places = _places(content, part, recipe_of, first, some)
                    yield from _read_file(opener, entry.path, places)
            first = end
    if done < len(wanted):
        raise SourceError(f"chunk {wanted[done]} is wanted of a page of {first} chunks")


def _places(
    content: Content,
    part: bytes,
    recipe_of: Callable[[Digest], bytes],
    first: int,
    wanted: Sequence[int],
) -> Iterator[_Place]:
    """Where the chunks `wanted` lie, of a file whose chunks begin at index `first`, and whose first
    recipe is `part`."""
    offset = 0
    remaining = iter(wanted)
    index = next(remaining, None)
    for number, id_ in enumerate(content.parts):
        recipe = _decoded(recipe_of(id_) if number else part)
        if index is None:
            return
        end = first + len(recipe.ids)
        starts = _starts(recipe, offset) if index < end else []
        while index is not None and index < end:
            at = index - first
            yield _Place(index, recipe.ids[at], starts[at], recipe.lengths[at])
            index = next(remaining, None)
        first = end
        offset += recipe.size
    if index is not None:
        raise SourceError("a file's recipes have fewer chunks than its entry says")


@lru_cache(RECIPES_DECODED)
def _decoded(encoded: bytes) -> Recipe:
    """The recipe; a large file's is asked for once for each job, and takes 50 ms to decode."""
    return decode_recipe(encoded)


def _starts(recipe: Recipe, offset: int) -> list[int]:
    """The offset of each of the recipe's chunks, in the file where it begins at `offset`."""
    starts: list[int] = []
    for op in recipe.operations():
        if isinstance(op, Copy):
            for length in recipe.lengths[len(starts) : len(starts) + op.count]:
                starts.append(offset)
                offset += length
        else:
            offset += op.size
    return starts


def _read_file(opener: Files, path: bytes, places: Iterator[_Place]) -> Iterator[Result]:
    try:
        fd, _ = opener.regular_file(path)
    except OSError as error:
        reason = _unread(error)
        yield from (Missed(place.index, reason) for place in places)
        return
    try:
        for run in _neighbours(places):
            yield from _read_run(fd, run)
    finally:
        os.close(fd)


def _read_archive(
    opener: Files,
    path: bytes,
    content: Content,
    first: int,
    wanted: Sequence[int],
    extractors: Extractors,
) -> Iterator[Result]:
    """The chunks `wanted` of an archive whose chunks begin at index `first`."""
    try:
        fd, _ = opener.regular_file(path)
    except OSError as error:
        yield from (Missed(index, _unread(error)) for index in wanted)
        return
    try:
        chunks = extractors.of(path, content.parts).chunks(fd, [index - first for index in wanted])
        for index, data in zip(wanted, chunks, strict=True):
            yield Missed(index, data) if isinstance(data, str) else Found(index, data)
    finally:
        os.close(fd)


def _read_small(opener: Files, path: bytes, content: Content, index: int) -> Result:
    """The one chunk of a file that is no more: most files are."""
    try:
        fd, _ = opener.regular_file(path)
        try:
            data = _read_at(fd, 0, content.size)
        finally:
            os.close(fd)
    except OSError as error:
        return Missed(index, _unread(error))
    return Found(index, data) if digest_of(data) == content.digest else Missed(index, CHANGED)


def _unread(error: OSError) -> str:
    return f"cannot be read any more: {error.strerror or error}"


def _neighbours(places: Iterator[_Place]) -> Iterator[list[_Place]]:
    """`places` in runs that lie end to end, to be read at once."""
    run: list[_Place] = []
    for place in places:
        if run:
            end = run[-1].offset + run[-1].length
            size = place.offset + place.length - run[0].offset
            if place.offset != end or size > READ_SIZE:
                yield run
                run = []
        run.append(place)
    if run:
        yield run


def _read_run(fd: int, run: list[_Place]) -> Iterator[Result]:
    start = run[0].offset
    size = run[-1].offset + run[-1].length - start
    try:
        data = _read_at(fd, start, size)
    except OSError as error:
        reason = _unread(error)
        yield from (Missed(place.index, reason) for place in run)
        return
    lengths = [place.length for place in run]
    # A file that has become shorter lacks the last of them, or a part.
    digests = digests_of(data, lengths) if len(data) == size else None
    view, at = memoryview(data), 0
    for number, place in enumerate(run):
        chunk = view[at : at + place.length]
        at += place.length
        if place.id == (digest_of(chunk) if digests is None else digests[number]):
            yield Found(place.index, chunk)
        else:
            yield Missed(place.index, CHANGED)


def _read_at(fd: int, offset: int, size: int) -> bytes:
    """`size` bytes from `offset`, or fewer at the end of the file."""
    data = os.pread(fd, size, offset)
    while 0 < len(data) < size:
        more = os.pread(fd, size - len(data), offset + len(data))
        if not more:
            break
        data += more
    return data
