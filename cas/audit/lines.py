"""An audit: for every extent of something, its chunk and where that was first had from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from cas.audit.filemap import Extent
from cas.audit.records import Records, Row
from cas.audit.sums import held_there
from cas.audit.trace import Trace, Tracer
from cas.entry import Entry
from cas.errors import DamageError, NotHeldError
from cas.ids import Digest
from cas.interfaces import Index
from cas.pack import Origin


@dataclass(frozen=True, slots=True)
class Line:
    """One extent of what is audited: of the file at `path` of `tier` (empty for content that is
    audited by its digest). A chunk of a run has no extent. `trace` is None for a chunk that is not
    here, or whose record cannot be read; `again`: the chunk stands in an earlier line too."""

    tier: str
    path: bytes
    chunk: Digest
    length: int
    extent: Extent | None
    trace: Trace | None
    again: bool


class Audit:
    """Makes lines, over one or several things; a chunk counts as new once."""

    def __init__(self, tracer: Tracer) -> None:
        self.tracer = tracer
        self._seen: set[Digest] = set()

    def entries(self, tier: str, entries: Iterable[Entry]) -> Iterator[Line]:
        """All content of `entries`, one after another. A file whose recipe has not come is one line
        without an extent. Raises DamageError, FormatError."""
        for entry in entries:
            content = entry.content
            if content is None or not content.size:
                continue
            try:
                extents = list(self.tracer.pages.map(content, entry.path).extents())
            except NotHeldError:
                again = self._is_again(content.digest)
                yield Line(tier, entry.path, content.digest, content.size, None, None, again)
                continue
            yield from self.extents(tier, entry.path, extents)

    def extents(self, tier: str, path: bytes, extents: Sequence[Extent]) -> Iterator[Line]:
        """Some extents of one file."""
        traces = self.tracer.traces([extent.chunk for extent in extents])
        for extent, trace in zip(extents, traces, strict=True):
            again = self._is_again(extent.chunk)
            yield Line(tier, path, extent.chunk, extent.length, extent, trace, again)

    def _is_again(self, chunk: Digest) -> bool:
        if chunk in self._seen:
            return True
        self._seen.add(chunk)
        return False


@dataclass(frozen=True, slots=True)
class Origins:
    """Origins of a kind: those of a run, a tier, a source; None where it does not matter."""

    run: bytes | None = None
    tier: str | None = None
    source: str | None = None

    def has(self, origin: Origin) -> bool:
        """Whether `origin` is one of them."""
        return (
            self.run in (None, origin.run)
            and self.tier in (None, origin.tier)
            and self.source in (None, origin.source)
        )


def lines_from(
    tracer: Tracer, index: Index, origins: Origins, damaged: list[DamageError]
) -> Iterator[Line]:
    """A line for each chunk of content that is held from some origins, in the order in which they
    were stored. `damaged` as for `Records.all`."""
    for row, number in _held_from(tracer.records, index, origins, damaged):
        trace = tracer.traced(row, number)
        yield Line("", b"", trace.chunk, trace.length, None, trace, again=False)


def chunks_from(
    records: Records, index: Index, origins: Origins, damaged: list[DamageError]
) -> Iterator[Digest]:
    """The chunks of `lines_from`, without finding out more of them."""
    for row, number in _held_from(records, index, origins, damaged):
        yield row.segment.ids[number]


def _held_from(
    records: Records, index: Index, origins: Origins, damaged: list[DamageError]
) -> Iterator[tuple[Row, int]]:
    for row in records.all(damaged):
        if not row.segment.meta and origins.has(row.origin):
            for number, is_held in enumerate(held_there(index, row)):
                if is_held:
                    yield row, number
