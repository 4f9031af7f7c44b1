"""How each format is read here: from a vector to what it says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cas import wire
from cas.archive import decode_archive_recipe
from cas.chunker import cut_whole
from cas.errors import DamageError, FormatError
from cas.frame import Codec, FrameDecoder
from cas.ids import digest_of
from cas.pack import HEADER_SIZE, Segment, decode_header, read_payload, read_records
from cas.page import decode_page
from cas.recipe import decode_recipe
from cas.snapshot import decode_snapshot
from tests.vectors.cuts import INPUTS
from tests.vectors.sides import read_side
from tests.vectors.vector import Vector


def readable(data: bytes) -> Callable[[int, int], bytes]:
    """`data` as a file that can be read anywhere."""
    return lambda size, offset: data[offset : offset + size]


def read_pack(data: bytes) -> dict[str, Any]:
    """All that a pack says, every payload decoded and every chunk hashed."""
    pack_id = decode_header(data[:HEADER_SIZE])
    segments: list[Segment] = []
    seal: tuple[int, ...] | None = None
    decoders: dict[int, FrameDecoder] = {}
    for record in read_records(readable(data), len(data)):
        payload = read_payload(readable(data), record)
        if record.segment is None:
            seal = record.offsets
        else:
            check_chunks(record.segment, _decoded(record.segment, payload, decoders))
            segments.append(record.segment)
    return {"id": pack_id, "segments": segments, "seal": seal}


def _decoded(segment: Segment, payload: bytes, decoders: dict[int, FrameDecoder]) -> bytes:
    if segment.codec is Codec.PLAIN:
        return payload
    decoder = decoders.setdefault(segment.frame, FrameDecoder())
    return decoder.segment(payload, segment.plain_size)


def check_chunks(segment: Segment, plain: bytes) -> None:
    """Raise unless every chunk hashes to its id."""
    at = 0
    for length, id_ in zip(segment.lengths, segment.ids, strict=True):
        if digest_of(plain[at : at + length]) != id_:
            raise DamageError("a chunk is not what it should be")
        at += length


def read_frame(vector: Vector) -> list[dict[str, Any]]:
    """Size and digest of each segment."""
    decoder, at, found = FrameDecoder(), 0, []
    for plain_size, stored_size in vector.given:
        plain = decoder.segment(vector.body[at : at + stored_size], plain_size)
        found.append({"size": len(plain), "digest": digest_of(plain)})
        at += stored_size
    return found


def _cut(vector: Vector) -> list[int]:
    return cut_whole(INPUTS[vector.given["input"]](vector.given["size"]))


def _side(vector: Vector) -> dict[str, Any]:
    try:
        return read_side(vector)
    except ValueError as error:  # the compiled core has no errors of its own
        raise FormatError(str(error)) from error


READERS: dict[str, Callable[[Vector], Any]] = {
    "value": lambda vector: wire.decode(vector.body, limit=2**24, what="value"),
    "recipe": lambda vector: decode_recipe(vector.body),
    "archive": lambda vector: decode_archive_recipe(vector.body),
    "page": lambda vector: decode_page(vector.body),
    "snapshot": lambda vector: decode_snapshot(vector.body),
    "pack": lambda vector: read_pack(vector.body),
    "frame": read_frame,
    "chunker": _cut,
    "side": _side,
}
