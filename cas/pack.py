"""A pack: an append-only file of records, one for each segment (docs/format.md, section 5).

```
header   "CASP" version(1) 3 zero bytes, pack id (16)                                  24 bytes
record   "CASS" kind codec flags frame segment plain_size table_size payload_size
         payload_crc base header_crc | table | payload                           48 + t + p
...
seal     a record of kind SEAL without payload, its table the offsets of all records
```

Every record can be told whole from torn by its two CRC-32Cs (RFC 3720) without hashing, and its
table has the chunks' lengths, ids and origin: so an index can be rebuilt from packs alone. While a
pack is written it is named `open-<pack id>`; sealed, it is read-only and named by its SHA-256.
All integers are little-endian.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from itertools import pairwise
from typing import Protocol

from cas import wire
from cas._native import crc32c
from cas.errors import DamageError, FormatError, LimitError
from cas.frame import SEGMENT_PLAIN_LIMIT, SEGMENT_STORED_LIMIT, Codec
from cas.ids import DIGEST_SIZE, Digest, as_digest, split_digests
from cas.recipe import LENGTH_LIMIT

MAGIC = b"CASP\x01\0\0\0"
ID_SIZE = 16
HEADER_SIZE = len(MAGIC) + ID_SIZE
PACK_TARGET = 64 * 2**20  # a pack is sealed when it has reached this and its frames are done
PACK_LIMIT = 2**32 - 1  # offsets are 32 bits wide
CHUNKS_LIMIT = 65536  # in one segment
TABLE_LIMIT = 8 * 2**20
RECORD = struct.Struct("<4sBBHQIIIIIQI")
RECORD_MAGIC = b"CASS"
RECORD_SIZE = RECORD.size  # 48
META = 1  # flag: the chunks are pages and recipes, not content


class Kind(IntEnum):
    """What a record holds."""

    SEGMENT = 1
    SEAL = 2


@dataclass(frozen=True, slots=True)
class PageRun:
    """`count` chunks that follow one another in a page's chunk space, from `first`."""

    page: Digest
    first: int
    count: int


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a segment's chunks were first had from: the run that brought them, over which lane
    (0 is the first; an adopted segment has none, -1), when, and which chunks of which pages they
    were, in the segment's order. `wire_size` is what the segment cost on the wire."""

    run: bytes
    source: str
    tier: str
    time_ms: int
    lane: int
    wire_size: int
    runs: tuple[PageRun, ...]


@dataclass(frozen=True, slots=True)
class Segment:
    """What a record says about its segment, without the payload."""

    frame: int
    number: int
    codec: Codec
    meta: bool
    plain_size: int
    lengths: tuple[int, ...]
    ids: tuple[Digest, ...]
    origin: Origin


@dataclass(frozen=True, slots=True)
class Record:
    """One record of a pack: where it starts, its segment (None for the seal), and its payload's
    place and checksum. `offsets` is what a seal says: where all records before it start."""

    offset: int
    segment: Segment | None
    payload_offset: int
    payload_size: int
    payload_crc: int
    offsets: tuple[int, ...] = ()

    @property
    def end(self) -> int:
        """Where the next record starts."""
        return self.payload_offset + self.payload_size


class Readable(Protocol):
    """A file that can be read anywhere, like `os.pread` on it."""

    def __call__(self, size: int, offset: int, /) -> bytes: ...


def encode_header(pack_id: bytes) -> bytes:
    """The first bytes of a pack."""
    return MAGIC + pack_id


def decode_header(data: bytes) -> bytes:
    """The pack id; raises FormatError."""
    if len(data) != HEADER_SIZE or data[: len(MAGIC)] != MAGIC:
        raise FormatError("not a pack of this version", advice="a newer cas may have written it")
    return data[len(MAGIC) :]


def encode_segment(segment: Segment, payload: bytes | memoryview) -> bytes:
    """The record of one segment: header, table, payload. Raises FormatError (LimitError) for one
    that no reader would accept."""
    _check(segment, len(payload))
    origin = segment.origin
    runs = [[run.page, run.first, run.count] for run in origin.runs]
    table = wire.encode(
        [
            list(segment.lengths),
            b"".join(segment.ids),
            [origin.run, origin.source, origin.tier, origin.time_ms, origin.lane,
             origin.wire_size, runs],
        ]
    )  # fmt: skip
    head = _encode_head(
        Kind.SEGMENT,
        table,
        payload,
        codec=segment.codec,
        flags=META if segment.meta else 0,
        frame=segment.frame,
        number=segment.number,
        plain_size=segment.plain_size,
    )
    return b"".join((head, table, payload))


def encode_seal(offsets: list[int]) -> bytes:
    """The record that ends a pack."""
    table = wire.encode(offsets)
    return _encode_head(Kind.SEAL, table, b"") + table


def _encode_head(
    kind: Kind,
    table: bytes,
    payload: bytes | memoryview,
    *,
    codec: int = 0,
    flags: int = 0,
    frame: int = 0,
    number: int = 0,
    plain_size: int = 0,
) -> bytes:
    fields = (
        RECORD_MAGIC, kind, codec, flags, frame, number, plain_size, len(table), len(payload),
        crc32c(payload), 0,
    )  # fmt: skip
    bare = RECORD.pack(*fields, 0)
    crc = crc32c(table, crc32c(bare[:-4]))
    return RECORD.pack(*fields, crc)


def read_record(read: Readable, offset: int) -> Record:
    """The record at `offset`, its header and table checked, its payload not yet.

    Raises DamageError when the bytes are torn or changed, FormatError (LimitError) when they are
    whole but not a record that this version may read.
    """
    head = read(RECORD_SIZE, offset)
    if len(head) != RECORD_SIZE or head[:4] != RECORD_MAGIC:
        raise DamageError("no record where one should be", where=f"offset {offset}")
    (
        _, kind, codec, flags, frame, number, plain_size, table_size, payload_size, payload_crc,
        base, crc,
    ) = RECORD.unpack(head)  # fmt: skip
    if table_size > TABLE_LIMIT or payload_size > SEGMENT_STORED_LIMIT:
        raise DamageError("a record over its limits", where=f"offset {offset}")
    table = read(table_size, offset + RECORD_SIZE)
    if len(table) != table_size or crc32c(table, crc32c(head[:-4])) != crc:
        raise DamageError("a record's header is damaged or torn", where=f"offset {offset}")
    place = (offset + RECORD_SIZE + table_size, payload_size, payload_crc)
    if kind == Kind.SEAL:
        if any((codec, flags, frame, number, plain_size, payload_size, payload_crc, base)):
            raise FormatError("a seal says more than it may", where=f"offset {offset}")
        return Record(offset, None, *place, _decode_seal(table, offset))
    if kind != Kind.SEGMENT or base or flags & ~META or codec not in tuple(Codec):
        raise FormatError(
            "a record of a newer kind", where=f"offset {offset}", advice="use a newer cas"
        )
    segment = Segment(
        frame, number, Codec(codec), bool(flags & META), plain_size, *_decode_table(table)
    )
    _check(segment, payload_size)
    return Record(offset, segment, *place)


def _check(segment: Segment, payload_size: int) -> None:
    """Raise unless a segment's parts fit one another and their limits."""
    if not 0 < segment.plain_size <= SEGMENT_PLAIN_LIMIT or payload_size > SEGMENT_STORED_LIMIT:
        raise LimitError(f"a segment of {segment.plain_size} bytes is not within its limits")
    if len(segment.ids) > CHUNKS_LIMIT:
        raise LimitError(f"a segment of {len(segment.ids)} chunks is over the limit")
    if len(segment.lengths) != len(segment.ids) or sum(segment.lengths) != segment.plain_size:
        raise FormatError("a segment's chunks do not fill it")
    if segment.codec == Codec.PLAIN and payload_size != segment.plain_size:
        raise FormatError("a plain segment's payload is not its bytes")
    if segment.origin.runs and sum(r.count for r in segment.origin.runs) != len(segment.ids):
        raise FormatError("a segment's origin does not name each of its chunks")


def read_payload(read: Readable, record: Record) -> bytes:
    """The payload of `record`; raises DamageError when its checksum is wrong."""
    payload = read(record.payload_size, record.payload_offset)
    if len(payload) != record.payload_size or crc32c(payload) != record.payload_crc:
        raise DamageError("a segment is damaged or torn", where=f"offset {record.offset}")
    return payload


def read_records(read: Readable, size: int, offset: int = HEADER_SIZE) -> Iterator[Record]:
    """The records from `offset` to `size`; raises like `read_record` at the first bad one, and
    FormatError when a seal is not the last of them or does not list those before it."""
    seen: list[int] = []
    whole = offset == HEADER_SIZE
    while offset < size:
        record = read_record(read, offset)
        if record.segment is None:
            listed = record.offsets if whole else record.offsets[-len(seen) :] if seen else ()
            if record.end != size or listed != tuple(seen):
                raise FormatError("a seal that does not fit its pack", where=f"offset {offset}")
        yield record
        seen.append(offset)
        offset = record.end


def _decode_seal(table: bytes, end: int) -> tuple[int, ...]:
    body = wire.decode(table, limit=TABLE_LIMIT, what="seal")
    offsets = wire.as_ints(body, "offsets", HEADER_SIZE, end - 1)
    if any(one >= other for one, other in pairwise(offsets)):
        raise FormatError("a seal's offsets are not in order", where=f"offset {end}")
    return tuple(offsets)


def _decode_table(data: bytes) -> tuple[tuple[int, ...], tuple[Digest, ...], Origin]:
    body = wire.decode(data, limit=TABLE_LIMIT, what="segment table")
    lengths, blob, origin = wire.as_list(body, "segment table", 3)
    lengths = wire.as_ints(lengths, "chunk lengths", 1, LENGTH_LIMIT)
    ids = split_digests(wire.as_bytes(blob, "chunk ids", CHUNKS_LIMIT * DIGEST_SIZE))
    return tuple(lengths), tuple(ids), _decode_origin(origin)


def _decode_origin(row: object) -> Origin:
    run, source, tier, time_ms, lane, wire_size, runs = wire.as_list(row, "origin", 7)
    return Origin(
        wire.as_fixed(run, "run", ID_SIZE),
        wire.as_text(source, "source"),
        wire.as_text(tier, "tier"),
        wire.as_int(time_ms, "time"),
        wire.as_int(lane, "lane", -1, wire.U32),
        wire.as_int(wire_size, "wire size"),
        tuple(_decode_page_run(row) for row in wire.as_list(runs, "page runs")),
    )


def _decode_page_run(row: object) -> PageRun:
    page, first, count = wire.as_list(row, "page run", 3)
    return PageRun(
        as_digest(page),
        wire.as_int(first, "first chunk", 0, wire.U32),
        wire.as_int(count, "count", 1, CHUNKS_LIMIT),
    )
