"""Packs and records that the index does not know: a writer was killed, or rows were lost. They are
no damage; the next writer enters what a killed one left, and a rebuilt index has them all."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from cas.errors import DamageError, FormatError
from cas.interfaces import Index, SegmentPlace
from cas.pack import HEADER_SIZE, PACK_LIMIT, Readable, Record, decode_header, read_payload
from cas.pack import read_records as records_of
from cas.store.layout import OPEN_PREFIX, Layout, is_pack_name


def unindexed(read: Readable, size: int, index: Index, pack: int) -> int:
    """How many whole records of the pack of that number the index does not know, up to the first
    place where there is none. That may be damage which was repaired, or the end of an open pack,
    whose `size` is given as 0."""
    count = 0
    frame, places = -1, {}
    for record in _until_torn(_records(read, size)):
        segment = record.segment
        if segment is None:
            continue
        if segment.frame != frame:
            frame, places = segment.frame, dict(index.segments_of(segment.frame))
        count += not _is_at(places.get(segment.number), pack, record.offset)
    return count


def _until_torn(records: Iterator[Record]) -> Iterator[Record]:
    with contextlib.suppress(DamageError, FormatError):
        yield from records


def _is_at(place: SegmentPlace | None, pack: int, offset: int) -> bool:
    return place is not None and (place.pack, place.offset) == (pack, offset)


def _records(read: Readable, size: int) -> Iterator[Record]:
    if size:
        yield from records_of(read, size)
        return
    # The end may be torn, by a killed writer or one that is just writing.
    with contextlib.suppress(DamageError, FormatError):
        for record in records_of(read, PACK_LIMIT):
            read_payload(read, record)
            yield record


def strange_packs(layout: Layout, known: set[bytes]) -> Iterator[Path]:
    """The packs in the store whose ids are not among `known`."""
    for name in sorted(filter(is_pack_name, os.listdir(layout.packs))):
        path = layout.packs / name
        try:
            with path.open("rb") as file:
                if decode_header(file.read(HEADER_SIZE)) in known:
                    continue
        except (OSError, FormatError):
            pass
        yield path


def whole_records(path: Path) -> int:
    """How many records of segments a pack has. Raises DamageError, FormatError unless all of it is
    whole, but for the torn end of one that is open."""
    data_size = path.stat().st_size
    with path.open("rb") as file:
        fd = file.fileno()

        def read(size: int, offset: int, /) -> bytes:
            return os.pread(fd, size, offset)

        is_open = path.name.startswith(OPEN_PREFIX)
        return sum(
            record.segment is not None for record in _records(read, 0 if is_open else data_size)
        )
