"""Packs (docs/format.md, section 5). The records of most are plain, so that all bytes are known."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import msgpack

from cas._native import crc32c
from cas.frame import Codec, FrameEncoder
from cas.ids import digest_of
from cas.pack import (
    HEADER_SIZE,
    Origin,
    PageRun,
    Segment,
    encode_header,
    encode_seal,
    encode_segment,
)
from tests.vectors.vector import Maker, Vector

MAKE = Maker("pack")
HEAD = struct.Struct("<4sBBHQIIIIIQ")
HEADER = encode_header(bytes(range(16)))
CHUNKS = [b"one", b"three"]
LENGTHS, IDS = tuple(map(len, CHUNKS)), tuple(map(digest_of, CHUNKS))
PAYLOAD = b"".join(CHUNKS)
PAGE = digest_of(b"page")
ORIGIN = Origin(bytes(range(16, 32)), "npu", "00-critical", 1_700_000_000_000, 0, 123,
                (PageRun(PAGE, 7, 1), PageRun(PAGE, 2**32 - 1, 1)))  # fmt: skip
ADOPTED = Origin(bytes(16), "", "", 0, -1, 0, ())
PLAIN = Segment(1, 0, Codec.PLAIN, False, len(PAYLOAD), LENGTHS, IDS, ORIGIN)
META = replace(PLAIN, frame=2**64 - 1, number=2**32 - 1, meta=True, origin=ADOPTED)


def _pack(*records: bytes, seal: bool = False) -> bytes:
    offsets, body = [], HEADER
    for record in records:
        offsets.append(len(body))
        body += record
    return body + encode_seal(offsets) if seal else body


def _value(segments: list[Segment], *records: bytes, sealed: bool = False) -> dict[str, Any]:
    offsets = [HEADER_SIZE + sum(map(len, records[:at])) for at in range(len(records))]
    return {"id": HEADER[8:], "segments": segments, "seal": offsets if sealed else None}


def vectors() -> Iterator[Vector]:
    """Packs, and what is none."""
    one, two = encode_segment(PLAIN, PAYLOAD), encode_segment(META, PAYLOAD)
    yield MAKE.accept("new", "a header alone", HEADER, _value([]))
    yield MAKE.accept("open", "a pack that is being written", _pack(one), _value([PLAIN], one))
    yield MAKE.accept("sealed", "two records and the seal", _pack(one, two, seal=True),
                      _value([PLAIN, META], one, two, sealed=True))  # fmt: skip
    yield MAKE.accept("sealed-empty", "a seal alone", _pack(seal=True), _value([], sealed=True))
    yield _compressed()
    yield from _bad_headers()
    yield from _damaged(one)
    yield from _newer()
    yield from _bad_seals(one)
    yield from _bad_tables()


def _compressed() -> Vector:
    """A frame of two zstd segments with a plain one between them."""
    encoder = FrameEncoder(3)
    texts = [[b"some text " * 50, b"and more of it " * 40], [b"some text " * 60]]
    first, last = (encoder.segment(t, last=t is texts[1]) for t in texts)
    segments = [
        _of(texts[0], Codec.ZSTD, 0), replace(PLAIN, number=1), _of(texts[1], Codec.ZSTD, 2),
    ]  # fmt: skip
    records = [
        encode_segment(segment, payload)
        for segment, payload in zip(segments, (first, PAYLOAD, last), strict=True)
    ]
    value = _value(segments, *records, sealed=True)
    return MAKE.accept("zstd", "a frame of three segments", _pack(*records, seal=True), value)


def _of(chunks: list[bytes], codec: Codec, number: int) -> Segment:
    lengths, ids = tuple(map(len, chunks)), tuple(map(digest_of, chunks))
    return Segment(1, number, codec, False, sum(lengths), lengths, ids, ADOPTED)


def _bad_headers() -> Iterator[Vector]:
    yield MAKE.refuse("empty", "no bytes", b"")
    yield MAKE.refuse("header-cut-off", "23 bytes", HEADER[:-1])
    yield MAKE.refuse("version-2", "a newer version", b"CASP\x02" + HEADER[5:])
    yield MAKE.refuse("reserved-byte", "a byte that must be zero", b"CASP\x01\1" + HEADER[6:])


def _damaged(record: bytes) -> Iterator[Vector]:
    table = len(record) - len(PAYLOAD) - 1

    def flip(name: str, about: str, at: int) -> Vector:
        changed = bytearray(record)
        changed[at] ^= 1
        return MAKE.refuse(name, about, HEADER + changed, "DamageError")

    for name, at in [
        ("magic", 0), ("kind", 4), ("codec", 5), ("flags", 6), ("frame", 8), ("segment", 16),
        ("plain-size", 20), ("table-size", 24), ("payload-size", 28), ("payload-crc", 32),
        ("base", 36), ("header-crc", 44),
    ]:  # fmt: skip
        yield flip(f"flipped-{name}", f"a bit flipped in the header: {name}", at)
    yield flip("flipped-table", "a bit flipped in the table", table)
    yield flip("flipped-payload", "a bit flipped in the payload", len(record) - 1)
    for name, size in [("magic", 3), ("header", 47), ("table", table), ("payload", -1)]:
        yield MAKE.refuse(f"torn-{name}", f"a record that ends in its {name}",
                          HEADER + record[:size], "DamageError")  # fmt: skip
    yield MAKE.refuse("zeros", "a tail of zeros, as some file systems leave after a crash",
                      HEADER + record + bytes(100), "DamageError")  # fmt: skip


def _record(*, kind: int = 1, codec: int = 0, flags: int = 0, plain_size: int = len(PAYLOAD),
            table: object = None, raw_table: bytes | None = None, payload: bytes = PAYLOAD,
            base: int = 0, frame: int = 0, number: int = 0) -> bytes:  # fmt: skip
    """A record whose checksums hold, whatever it says."""
    body = bytes(msgpack.packb(_table() if table is None else table))
    body = body if raw_table is None else raw_table
    head = HEAD.pack(b"CASS", kind, codec, flags, frame, number, plain_size, len(body),
                     len(payload), crc32c(payload), base)  # fmt: skip
    return head + struct.pack("<I", crc32c(head + body)) + body + payload


def _table(lengths: object = LENGTHS, ids: object = b"".join(IDS), run: object = bytes(16),
           lane: object = 0, runs: object = ()) -> list[object]:  # fmt: skip
    return [lengths, ids, [run, "npu", "00-critical", 0, lane, 0, runs]]


def _newer() -> Iterator[Vector]:
    for name, record in [
        ("kind-0", _record(kind=0)),
        ("kind-3", _record(kind=3)),
        ("codec-2", _record(codec=2)),
        ("flag-2", _record(flags=2)),
        ("flag-high", _record(flags=0x8000)),
        ("base-1", _record(base=1)),
    ]:
        yield MAKE.refuse(name, "whole, but of a newer version", HEADER + record)


def _bad_seals(record: bytes) -> Iterator[Vector]:
    def seal(name: str, about: str, offsets: object, **fields: Any) -> Vector:
        end = _record(kind=2, table=offsets, **{"plain_size": 0, "payload": b"", **fields})
        return MAKE.refuse(name, about, HEADER + record + end)

    end = HEADER_SIZE + len(record)
    for field in ("codec", "flags", "frame", "number", "plain_size", "base"):
        yield seal(f"seal-{field.replace('_', '-')}", f"a seal with a {field}", [24], **{field: 1})
    yield seal("seal-payload", "a seal with a payload", [24], payload=b"x")
    yield seal("seal-of-none", "a seal that leaves out the record", [])
    yield seal("seal-of-more", "a seal with a record too many", [24, end - 1])
    yield seal("seal-of-itself", "a seal that lists itself", [24, end])
    yield seal("seal-twice", "a seal that lists one record twice", [24, 24])
    yield seal("seal-elsewhere", "a seal with another offset", [25])
    yield seal("seal-text", "a seal of text", "24")
    whole = _pack(record, seal=True)
    yield MAKE.refuse("seal-followed", "a record after the seal", whole + record)
    yield MAKE.refuse("seal-byte", "a byte after the seal", whole + b"\0")


def _bad_tables() -> Iterator[Vector]:
    def table(name: str, about: str, error: str = "FormatError", **fields: Any) -> Vector:
        return MAKE.refuse(name, about, HEADER + _record(**fields), error)

    pages = [[PAGE, 0, 1]]
    yield table("table-trailing", "a byte after the table", raw_table=_packed(_table()) + b"\0")
    long = b"\xdc\x00\x03" + _packed(_table())[1:]
    yield table("table-form", "a table whose list is an array 16", raw_table=long)
    yield table("table-of-two", "a table of 2 fields", table=_table()[:2])
    yield table("chunks-too-small", "chunks that do not fill it", plain_size=9, payload=bytes(9))
    yield table("ids-too-few", "two lengths, one id", table=_table(ids=IDS[0]))
    yield table("ids-half", "half an id", table=_table(ids=b"".join(IDS)[:-16]))
    yield table("chunk-of-none", "a chunk of no bytes", table=_table(lengths=(8, 0)))
    yield table("no-chunks", "a segment of nothing", "LimitError", plain_size=0, payload=b"",
                table=_table(lengths=(), ids=b""))  # fmt: skip
    yield table("plain-too-large", "a segment of 16 MiB and a byte", "LimitError",
                plain_size=2**24 + 1, codec=1, table=_table(lengths=(2**24, 1)))  # fmt: skip
    yield table("payload-not-plain", "a plain payload of another size", payload=PAYLOAD[:-1])
    yield table("run-short", "a run of 15 bytes", table=_table(run=bytes(15)))
    yield table("lane-minus-2", "a lane below -1", table=_table(lane=-2))
    yield table("pages-too-few", "an origin of one chunk for two", table=_table(runs=pages))
    yield table("pages-too-many", "an origin of three chunks", table=_table(runs=pages * 3))
    yield table("page-run-of-none", "a run of no chunks",
                table=_table(runs=[[PAGE, 0, 2], [PAGE, 9, 0]]))  # fmt: skip
    yield table("page-id-short", "a page id of 31 bytes", table=_table(runs=[[PAGE[1:], 0, 2]]))


def _packed(value: object) -> bytes:
    return bytes(msgpack.packb(value))
