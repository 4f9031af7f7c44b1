"""Counts what packs hold, by a reading of the format that shares no code with the product."""

from __future__ import annotations

import struct
from collections import defaultdict
from pathlib import Path

import msgpack

HEAD = struct.Struct("<4sBBHQIIIIIQI")

Counted = dict[tuple[str, str, str], list[int]]  # source, tier, run -> chunks, bytes, wire bytes


def count(store: Path) -> tuple[Counted, list[int]]:
    """Content by origin, each chunk where it comes first; and pages and recipes."""
    content: Counted = defaultdict(lambda: [0, 0, 0])
    meta = [0, 0, 0]
    seen: set[bytes] = set()
    for path in (store / "packs").iterdir():
        data = path.read_bytes()
        at = 24
        while at < len(data):
            _, kind, _, flags, _, _, _, table, payload, _, _, _ = HEAD.unpack_from(data, at)
            if kind == 1:
                lengths, ids, origin = msgpack.unpackb(data[at + 48 : at + 48 + table])
                into = meta if flags & 1 else content[origin[1], origin[2], origin[0].hex()]
                into[2] += origin[5]
                for number, length in enumerate(lengths):
                    id_ = ids[32 * number :][:32]
                    assert id_ not in seen, "a store in which a chunk came twice is not for this"
                    seen.add(id_)
                    into[0] += 1
                    into[1] += length
            at += 48 + table + payload
    return dict(content), meta
