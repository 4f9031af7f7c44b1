"""A segment on the wire: what its pieces, put together, say (docs/protocol.md).

The head names the chunks by their places in pages of the running scans; lengths and digests the
client knows from the recipes. The payload is stored as it is.
"""

from __future__ import annotations

from dataclasses import dataclass

from cas import wire
from cas.errors import FormatError, LimitError
from cas.frame import SEGMENT_PLAIN_LIMIT, SEGMENT_STORED_LIMIT

SEGMENT_HEAD_LIMIT = 2**20
SEGMENT_WIRE_LIMIT = SEGMENT_STORED_LIMIT + SEGMENT_HEAD_LIMIT


@dataclass(frozen=True, slots=True)
class SegmentHead:
    """What a segment on the wire says of itself: `runs` are (scan, page number, first, count)."""

    codec: int
    plain_size: int
    last: bool
    runs: tuple[tuple[int, int, int, int], ...]


def encode_segment(head: SegmentHead, payload: bytes) -> bytes:
    """A segment as its pieces carry it."""
    fields_ = [head.codec, head.plain_size, int(head.last), [list(run) for run in head.runs]]
    encoded = wire.encode(fields_)
    return len(encoded).to_bytes(4, "little") + encoded + payload


def decode_segment(data: bytes) -> tuple[SegmentHead, memoryview]:
    """Head and payload of a segment; raises FormatError (LimitError)."""
    size = int.from_bytes(data[:4], "little")
    if size > min(SEGMENT_HEAD_LIMIT, len(data) - 4):
        raise LimitError(f"a segment head of {size} bytes")
    row = wire.decode(data[4 : 4 + size], limit=SEGMENT_HEAD_LIMIT, what="segment head")
    codec, plain_size, last, runs = wire.as_list(row, "segment head", 4)
    head = SegmentHead(
        wire.as_int(codec, "codec", 0, 1),
        wire.as_int(plain_size, "plain size", 1, SEGMENT_PLAIN_LIMIT),
        bool(wire.as_int(last, "last", 0, 1)),
        tuple(_run(run) for run in wire.as_list(runs, "runs")),
    )
    return head, memoryview(data)[4 + size :]


def _run(row: object) -> tuple[int, int, int, int]:
    scan, page, first, count = wire.as_ints(wire.as_list(row, "run", 4), "run", 0, wire.U32)
    if not count:
        raise FormatError("an empty run")
    return scan, page, first, count
