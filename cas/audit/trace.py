"""Where a chunk was first had from: the names behind its record.

The record says which run, tier and source brought it, and at which index of which page's chunk
space it stood; the page, and the recipe of the file there, say the rest. What the source called
itself is in the snapshot that the same scan ended in, or the next of that tier and source.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from cas.audit.pages import Pages, Place
from cas.audit.records import Records, Row
from cas.errors import DamageError, FormatError, NotHeldError
from cas.ids import Digest
from cas.interfaces import Location
from cas.pack import Origin
from cas.store.store import Store

ADOPTED = "adopted"  # the source of what `cas adopt` takes in
NO_LANE = -1
BATCH = 1000  # chunks that the index is asked for at a time


@dataclass(frozen=True, slots=True)
class Trace:
    """Where one chunk was first had from. `wire` is what it cost on the wire; `place` is None where
    the record does not say, or what it takes to know is gone; `host` is empty where no snapshot
    says. A page or recipe (`meta`) has no place."""

    chunk: Digest
    length: int
    origin: Origin
    host: str
    wire: int
    place: Place | None
    meta: bool = False

    @property
    def adopted(self) -> bool:
        """Whether it was here already, in a file of this machine."""
        return is_adopted(self.origin)


def is_adopted(origin: Origin) -> bool:
    """Whether a segment came from a file that was here already."""
    return origin.lane == NO_LANE or origin.source == ADOPTED


class Tracer:
    """Traces chunks of a store. Not thread-safe. `close` it at the end."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.pages = Pages(store)
        self.records = Records(store)
        self.damaged: list[DamageError] = []  # why records could not be read
        self._unreadable: set[tuple[int, int]] = set()  # segments
        self._hosts: dict[tuple[bytes, str, str], str] = {}

    def traces(self, chunks: Iterable[Digest]) -> Iterator[Trace | None]:
        """Where each of `chunks` was first had from; None for one that is not held, or whose record
        cannot be read: then `damaged` says so."""
        batch: list[Digest] = []
        for chunk in chunks:
            batch.append(chunk)
            if len(batch) == BATCH:
                yield from self._traced(batch)
                batch = []
        yield from self._traced(batch)

    def trace(self, chunk: Digest) -> Trace | None:
        """As `traces`, for one."""
        return next(self.traces([chunk]))

    def traced(self, row: Row, number: int) -> Trace:
        """Where a chunk of a record was had from, by its number there."""
        segment, origin = row.segment, row.origin
        return Trace(
            segment.ids[number],
            segment.lengths[number],
            origin,
            self._host(origin),
            row.wire[number],
            None if segment.meta else self._place(origin, number),
            segment.meta,
        )

    def close(self) -> None:
        """Let go of the packs."""
        self.records.close()

    def _traced(self, chunks: Sequence[Digest]) -> Iterator[Trace | None]:
        for chunk, at in zip(chunks, self._store.index.locate_all(chunks), strict=True):
            yield None if at is None else self._of(chunk, at)

    def _of(self, chunk: Digest, at: Location) -> Trace | None:
        segment = at.frame, at.segment
        if segment in self._unreadable:
            return None
        try:
            row = self.records.row(at)
            number = row.number(chunk, at)
        except (DamageError, FormatError) as error:
            self._unreadable.add(segment)
            self.damaged.append(DamageError(error.what, where=error.where))
            return None
        return self.traced(row, number)

    def _place(self, origin: Origin, number: int) -> Place | None:
        before = 0
        for run in origin.runs:
            if number < before + run.count:
                return self.pages.place(run.page, run.first + number - before)
            before += run.count
        return None

    def _host(self, origin: Origin) -> str:
        key = origin.run, origin.tier, origin.source
        if key not in self._hosts:
            self._hosts[key] = self._find_host(origin)
        return self._hosts[key]

    def _find_host(self, origin: Origin) -> str:
        """The host of the first snapshot of the tier and source after the chunk came; else of the
        newest before, else of the newest of any tier of the source."""
        rows = self._store.snapshots(origin.tier)
        after = [row for row in rows if row.finished_ms >= origin.time_ms]
        others = [row for row in reversed(self._store.snapshots()) if row.tier != origin.tier]
        for row in [*after, *reversed(rows[: len(rows) - len(after)]), *others]:
            try:
                snapshot = self._store.snapshot(row.id)
            except (NotHeldError, DamageError, FormatError):
                continue
            if snapshot.source == origin.source:
                return snapshot.host
        return ""
