"""Gives the chunks of a list in its order, each hashed, read ahead by another thread.

A stream that shares chunks with others finds them in many frames. Asked for one by one they would
open the same frames again and again; so they are taken by *windows*, and what a window wants of one
frame is read together. A window is held in memory: it is larger only where a small one would decode
much more than it takes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field

from cas.errors import FormatError, NotHeldError
from cas.frame import FRAME_LIMIT
from cas.ids import Digest, digest_of
from cas.interfaces import ContentSource, Location, Read

WINDOW_LEAST = 8 * 2**20  # bytes of distinct chunks
WINDOW_MOST = 48 * 2**20
WINDOW_CHUNKS = 2**14
WINDOWS_AHEAD = 1
LOCATED_AT_ONCE = 1024  # chunks

Chunk = tuple[Digest, int]  # with its length


@dataclass(slots=True)
class _Window:
    """Chunks that are read together: `ids` in their order, and where each distinct one is."""

    ids: list[Digest] = field(default_factory=list)
    places: dict[Digest, Location] = field(default_factory=dict)
    frames: set[int] = field(default_factory=set)  # that must be decoded
    size: int = 0

    def add(self, chunk_id: Digest, location: Location, *, alone: bool) -> None:
        self.ids.append(chunk_id)
        if chunk_id not in self.places:
            self.places[chunk_id] = location
            self.size += location.length
            if not alone:
                self.frames.add(location.frame)

    @property
    def is_full(self) -> bool:
        if self.size >= WINDOW_MOST or len(self.ids) >= WINDOW_CHUNKS:
            return True
        return self.size >= max(WINDOW_LEAST, len(self.frames) * FRAME_LIMIT // 2)


def in_order(
    chunks: Iterable[Chunk], source: ContentSource, pool: Executor
) -> Generator[bytes, None, None]:
    """The bytes of `chunks`, each hashed; a thread of `pool` reads ahead of whoever takes them.
    Needs memory for `WINDOWS_AHEAD` + 1 windows. Raises NotHeldError, DamageError, FormatError."""
    waiting: deque[tuple[_Window, Future[dict[Digest, bytes]]]] = deque()
    try:
        for window in _windows(chunks, source):
            waiting.append((window, pool.submit(_read, window, source)))
            if len(waiting) > WINDOWS_AHEAD:
                yield from _given(*waiting.popleft())
        while waiting:
            yield from _given(*waiting.popleft())
    finally:
        for _, reading in waiting:
            reading.cancel()


def _given(window: _Window, reading: Future[dict[Digest, bytes]]) -> Iterator[bytes]:
    data = reading.result()
    del reading  # or it would hold the bytes of the window as long as they are given out
    last = {id_: number for number, id_ in enumerate(window.ids)}
    for number, id_ in enumerate(window.ids):
        yield data.pop(id_) if last[id_] == number else data[id_]


def _windows(chunks: Iterable[Chunk], source: ContentSource) -> Iterator[_Window]:
    window = _Window()
    for id_, location in _located(chunks, source):
        window.add(id_, location, alone=source.stands_alone(location))
        if window.is_full:
            yield window
            window = _Window()
    if window.ids:
        yield window


def _located(chunks: Iterable[Chunk], source: ContentSource) -> Iterator[tuple[Digest, Location]]:
    some: list[Chunk] = []
    for chunk in chunks:
        some.append(chunk)
        if len(some) == LOCATED_AT_ONCE:
            yield from _located_together(some, source)
            some = []
    yield from _located_together(some, source)


def _located_together(
    some: list[Chunk], source: ContentSource
) -> Iterator[tuple[Digest, Location]]:
    locations = source.locate([id_ for id_, _ in some])
    for (id_, length), location in zip(some, locations, strict=True):
        if location is None:
            raise NotHeldError("a chunk is not in the store", where=id_.hex())
        if location.length != length:
            raise wrong_length(id_)
        yield id_, location


def wrong_length(chunk_id: Digest) -> FormatError:
    """A recipe and a chunk do not fit."""
    return FormatError("a recipe has the wrong length for a chunk", where=chunk_id.hex())


def _read(window: _Window, source: ContentSource) -> dict[Digest, bytes]:
    """All chunks of a window, frame by frame."""
    data: dict[Digest, bytes] = {}
    frames: dict[int, list[Digest]] = {}
    for id_, location in window.places.items():
        if location.frame in window.frames:
            frames.setdefault(location.frame, []).append(id_)
        else:
            data[id_] = _hashed(id_, location, source.read, source)
    for ids in frames.values():
        ids.sort(key=lambda id_: (window.places[id_].segment, window.places[id_].offset))
        with source.scan(window.places[ids[0]]) as read:
            for id_ in ids:
                data[id_] = _hashed(id_, window.places[id_], read, source)
    return data


def _hashed(chunk_id: Digest, location: Location, read: Read, source: ContentSource) -> bytes:
    data = bytes(read(location))
    if digest_of(data) != chunk_id:
        return source.chunk(chunk_id)  # or says what is wrong
    return data
