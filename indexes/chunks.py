"""Table `chunks`: chunk id -> where its plain bytes are. Rows are never replaced, so that a chunk
keeps its first origin (docs/index.md)."""

from __future__ import annotations

import struct
from collections.abc import Iterable

from cas.ids import Digest
from cas.interfaces import Location
from indexes.view import Row, Update, View

TABLE = b"chunks"
VALUE = struct.Struct("<QIII")  # frame, segment, offset, length


def locate(view: View, chunk: Digest) -> Location | None:
    """Where `chunk` is, or None."""
    value = view.get(TABLE, chunk)
    return None if value is None else Location(*VALUE.unpack(value))


def decode(row: Row) -> tuple[Digest, Location]:
    """A row as values."""
    return Digest(row[0]), Location(*VALUE.unpack(row[1]))


def forget(update: Update, chunks: Iterable[Digest]) -> None:
    """Remove the rows of `chunks`."""
    for id_ in chunks:
        update.delete(TABLE, id_)


def put(update: Update, chunks: Iterable[tuple[Digest, Location]]) -> None:
    """Write the rows of `chunks` that have none yet."""
    pack = VALUE.pack
    rows = ((id_, pack(at.frame, at.segment, at.offset, at.length)) for id_, at in chunks)
    update.put(TABLE, rows, replace=False)
