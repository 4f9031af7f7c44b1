"""Counts what packs hold, by a reading of the format that shares no code with the product."""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgpack

HEAD = struct.Struct("<4sBBHQIIIIIQI")

Counted = dict[tuple[str, str, str], list[int]]  # source, tier, run -> chunks, bytes, wire bytes


def records(data: bytes) -> Iterator[tuple[bool, list[int], list[bytes], list[Any], int]]:
    """Of each segment: whether it holds pages and recipes, lengths and ids of its chunks, its
    origin, and where its payload begins."""
    at = 24
    while at < len(data):
        _, kind, _, flags, _, _, _, table, payload, _, _, _ = HEAD.unpack_from(data, at)
        begin = at + HEAD.size + table
        if kind == 1:
            lengths, ids, origin = msgpack.unpackb(data[at + HEAD.size : begin])
            split = [ids[32 * number :][:32] for number in range(len(lengths))]
            yield bool(flags & 1), lengths, split, origin, begin
        at = begin + payload


def count(store: Path) -> tuple[Counted, list[int]]:
    """Content by origin, each chunk where it comes first; and pages and recipes."""
    content: Counted = defaultdict(lambda: [0, 0, 0])
    meta = [0, 0, 0]
    seen: set[bytes] = set()
    for path in (store / "packs").iterdir():
        for is_meta, lengths, ids, origin, _ in records(path.read_bytes()):
            into = meta if is_meta else content[origin[1], origin[2], origin[0].hex()]
            into[2] += origin[5]
            assert seen.isdisjoint(ids), "a store in which a chunk came twice is not for this"
            seen.update(ids)
            into[0] += len(ids)
            into[1] += sum(lengths)
    return dict(content), meta


def harm(store: Path, chunk: bytes, *, record: bool = False) -> Path:
    """Change a byte of the payload that a chunk lies in, or of its record; the pack it was in."""
    for path in (store / "packs").iterdir():
        data = bytearray(path.read_bytes())
        for _, _, ids, _, begin in records(bytes(data)):
            if chunk in ids:
                data[begin - record] ^= 1
                path.chmod(0o644)
                path.write_bytes(data)
                return path
    raise AssertionError("no pack has this chunk")
