"""The seams: what the engine is handed, each as small as its users need.

`cas` never imports `indexes`; it is handed objects of these shapes (`indexes/` over LMDB, a dict in
`cas/store/memory_index.py` for tests and vectors), and one conformance suite runs them all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Protocol

from cas.frame import Codec
from cas.ids import Digest


@dataclass(frozen=True, slots=True)
class Location:
    """Where a chunk's plain bytes are: `length` bytes at `offset` of a segment's plain bytes."""

    frame: int
    segment: int
    offset: int
    length: int


@dataclass(frozen=True, slots=True)
class SegmentPlace:
    """Where a segment's record is: `pack` is the number of a pack in this index, `offset` that of
    the record, `payload_*` those of the payload in the pack file."""

    pack: int
    offset: int
    payload_offset: int
    payload_size: int
    codec: Codec
    plain_size: int


@dataclass(frozen=True, slots=True)
class PackRow:
    """A pack as the index knows it: `name` in `packs/`, `size` bytes that are indexed."""

    id: bytes
    name: str
    size: int
    sealed: bool


@dataclass(frozen=True, slots=True)
class SnapshotRow:
    """A snapshot as the index knows it. `complete`: all its content was here when that was last
    established; garbage collection keeps it so."""

    id: Digest
    tier: str
    finished_ms: int
    complete: bool


@dataclass(frozen=True, slots=True)
class FileRow:
    """The newest entry known at a path of a source: which page of which tier it is in."""

    source: str
    path: bytes
    tier: str
    page: Digest
    number: int


@dataclass(slots=True)
class Changes:
    """What one transaction writes; all of it is durable when `Index.commit` returns, or none.

    `chunks` never replaces a location that is there already: the first origin stays. What is
    forgotten goes before anything is written: a chunk whose bytes are damaged can so be fetched
    again, a snapshot whose file is lost be made again.
    """

    chunks: list[tuple[Digest, Location]] = field(default_factory=list)
    segments: list[tuple[int, int, SegmentPlace]] = field(default_factory=list)  # frame, number
    packs: list[tuple[int, PackRow]] = field(default_factory=list)
    recipes: list[tuple[Digest, tuple[Digest, ...]]] = field(default_factory=list)
    snapshots: list[SnapshotRow] = field(default_factory=list)
    files: list[FileRow] = field(default_factory=list)
    pending_pages: list[tuple[str, Digest]] = field(default_factory=list)  # tier, page
    settled_tiers: list[str] = field(default_factory=list)  # whose pending pages are dropped first
    forgotten_chunks: list[Digest] = field(default_factory=list)
    forgotten_snapshots: list[SnapshotRow] = field(default_factory=list)

    def __bool__(self) -> bool:
        return any((self.chunks, self.segments, self.packs, self.recipes, self.snapshots,
                    self.files, self.pending_pages, self.settled_tiers, self.forgotten_chunks,
                    self.forgotten_snapshots))  # fmt: skip


class Index(Protocol):
    """The store's tables. Losing them loses time, not data: packs and snapshots say it all."""

    def locate(self, chunk: Digest) -> Location | None:
        """Where `chunk` is, or None."""

    def locate_all(self, chunks: Sequence[Digest]) -> list[Location | None]:
        """Where each of `chunks` is, or None; one consistent view, and cheaper than one by one."""

    def held(self, chunks: Sequence[Digest]) -> list[bool]:
        """For each of `chunks` whether it is here; one consistent view."""

    def segments_of(self, frame: int) -> list[tuple[int, SegmentPlace]]:
        """The frame's segments (number, place) in ascending number."""

    def recipes_of(self, file: Digest) -> tuple[Digest, ...] | None:
        """The ids of the recipes (parts) that rebuild the file of this digest, or None."""

    def packs(self) -> dict[int, PackRow]:
        """All packs by number."""

    def next_frame(self) -> int:
        """One more than the highest frame number in use."""

    def snapshots(self, tier: str | None = None) -> list[SnapshotRow]:
        """Snapshots, oldest first; of one tier or of all."""

    def pending_pages(self, tier: str) -> list[Digest]:
        """Pages received for a scan of `tier` that has not finished, in order of arrival."""

    def find_file(self, source: str, path: bytes) -> FileRow | None:
        """The newest entry at this path, or None."""

    def files_below(self, source: str, prefix: bytes) -> Iterator[FileRow]:
        """The newest entries at and below the directory `prefix`, in byte order of the paths."""

    def chunks(self, prefix: bytes = b"") -> Iterator[tuple[Digest, Location]]:
        """Every chunk whose id begins with `prefix`, in order of the ids."""

    def commit(self, changes: Changes) -> None:
        """Write all of `changes` in one transaction that is durable on return."""

    def close(self) -> None:
        """Release the index."""


@dataclass(frozen=True, slots=True)
class CachedFile:
    """What the agent remembers of a file: `stat` is its identity then (an opaque value that
    differs whenever the file may have changed), `entry` the encoded result."""

    stat: bytes
    entry: bytes


class ScanCache(Protocol):
    """The agent's memory of former scans, so that an unchanged file is never read again. Only a
    cache: any of it may be missing."""

    def page(self, scope: bytes, first: bytes) -> bytes | None:
        """What was put for the page of `scope` that begins with path `first`."""

    def files(self, paths: Sequence[bytes]) -> list[CachedFile | None]:
        """What was put for each path."""

    def recipe(self, recipe_id: Digest) -> bytes | None:
        """The encoded recipe of this id."""

    def put(
        self,
        *,
        pages: Iterable[tuple[bytes, bytes, bytes]] = (),  # scope, first path, value
        files: Iterable[tuple[bytes, CachedFile]] = (),
        recipes: Iterable[tuple[Digest, bytes]] = (),
    ) -> None:
        """Remember; survives a kill of the process once it returns."""

    def close(self) -> None:
        """Release the cache."""


class ContentSource(Protocol):
    """Reads what a store holds; safe to use from several threads."""

    def object(self, object_id: Digest) -> bytes:
        """The encoded page or recipe of this id. Raises NotHeldError, DamageError."""

    def chunk(self, chunk_id: Digest) -> bytes:
        """A chunk's plain bytes, hashed and found right. Raises NotHeldError, DamageError."""

    def locate(self, chunk_ids: Sequence[Digest]) -> list[Location | None]:
        """Where each chunk lies; None for one that is not held."""

    def read(self, location: Location) -> memoryview:
        """The bytes there, of one chunk or of several that follow one another in a segment. They
        are not hashed: only for a caller who hashes all that they are part of, and uses nothing of
        it before that came out right. Raises DamageError."""

    def stands_alone(self, location: Location) -> bool:
        """Whether the bytes there can be read without what is before them in their frame."""

    def scan(self, start: Location) -> AbstractContextManager[Read]:
        """A `read` for whoever wants much of one frame, in ascending order of segment and offset
        from `start` on: each segment is decoded once, and not kept. A few threads at a time have
        one, others wait; a thread must not begin one inside another."""


Read = Callable[[Location], memoryview]
