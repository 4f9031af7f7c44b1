"""Tables `segments` and `packs`: which pack a segment's record is in, and which file that is
(docs/index.md)."""

from __future__ import annotations

import struct
from collections.abc import Iterable

from cas.frame import Codec
from cas.interfaces import PackRow, SegmentPlace
from indexes.view import Row, Update, View

SEGMENTS = b"segments"
SEGMENT_KEY = struct.Struct(">QI")  # frame, number
SEGMENT = struct.Struct("<IIIIIB")  # pack, offset, payload offset, payload size, plain size, codec

PACKS = b"packs"
PACK_KEY = struct.Struct(">I")
PACK = struct.Struct("<16sQB")  # id, size, sealed; the name follows


def segments_of(view: View, frame: int) -> list[tuple[int, SegmentPlace]]:
    """The segments of `frame` (number, place), in ascending number."""
    prefix = frame.to_bytes(8, "big")
    return [(_number(row), _place(row)) for row in view.scan(SEGMENTS, prefix)]


def _number(row: Row) -> int:
    number: int = SEGMENT_KEY.unpack(row[0])[1]
    return number


def _place(row: Row) -> SegmentPlace:
    pack, offset, payload_offset, payload_size, plain_size, codec = SEGMENT.unpack(row[1])
    return SegmentPlace(pack, offset, payload_offset, payload_size, Codec(codec), plain_size)


def next_frame(view: View) -> int:
    """One more than the highest frame that has a segment; 0 when there is none."""
    key = view.last_key(SEGMENTS)
    return 0 if key is None else int(SEGMENT_KEY.unpack(key)[0]) + 1


def put_segments(update: Update, segments: Iterable[tuple[int, int, SegmentPlace]]) -> None:
    """Write `segments` (frame, number, place); a segment that has moved is where it was last."""
    update.put(SEGMENTS, (_segment_row(*segment) for segment in segments))


def _segment_row(frame: int, number: int, at: SegmentPlace) -> Row:
    value = SEGMENT.pack(
        at.pack, at.offset, at.payload_offset, at.payload_size, at.plain_size, at.codec
    )
    return SEGMENT_KEY.pack(frame, number), value


def packs(view: View) -> dict[int, PackRow]:
    """All packs by number."""
    found = {}
    for key, value in view.scan(PACKS):
        id_, size, sealed = PACK.unpack_from(value)
        found[PACK_KEY.unpack(key)[0]] = PackRow(id_, value[PACK.size :].decode(), size, sealed > 0)
    return found


def put_packs(update: Update, rows: Iterable[tuple[int, PackRow]]) -> None:
    """Write `rows` by number, in place of older ones."""
    update.put(PACKS, (_pack_row(number, row) for number, row in rows))


def _pack_row(number: int, row: PackRow) -> Row:
    return PACK_KEY.pack(number), PACK.pack(row.id, row.size, row.sealed) + row.name.encode()
