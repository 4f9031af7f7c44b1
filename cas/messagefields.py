"""The fields of messages: what each may be, whatever a peer has put there.

Each function takes a decoded msgpack value and gives what it stands for; it raises FormatError
(LimitError) for anything else.
"""

from __future__ import annotations

from cas import wire
from cas.entry import PATH_LIMIT
from cas.ids import Digest, split_digests

BYTES_LIMIT = 64 * 2**20


def number(value: object) -> int:
    """An unsigned 64-bit number."""
    return wire.as_int(value, "number", 0, wire.U64)


def small(value: object) -> int:
    """An unsigned 32-bit number."""
    return wire.as_int(value, "number", 0, wire.U32)


def text(value: object) -> str:
    """A text."""
    return wire.as_text(value, "text", PATH_LIMIT)


def texts(value: object) -> tuple[str, ...]:
    """A list of texts."""
    return tuple(text(item) for item in wire.as_list(value, "texts"))


def path(value: object) -> bytes:
    """A path."""
    return wire.as_bytes(value, "path", PATH_LIMIT)


def paths(value: object) -> tuple[bytes, ...]:
    """A list of paths."""
    return tuple(path(item) for item in wire.as_list(value, "paths"))


def ids(value: object) -> tuple[Digest, ...]:
    """Ids end to end."""
    return tuple(split_digests(wire.as_bytes(value, "ids", BYTES_LIMIT)))


def blob(value: object) -> bytes:
    """Bytes."""
    return wire.as_bytes(value, "bytes", BYTES_LIMIT)


def blobs(value: object) -> tuple[bytes, ...]:
    """A list of bytes."""
    return tuple(blob(item) for item in wire.as_list(value, "list of bytes"))


def facts(value: object) -> tuple[tuple[str, str], ...]:
    """(name, text) pairs."""
    rows = (wire.as_list(row, "fact", 2) for row in wire.as_list(value, "facts"))
    return tuple((text(name), text(said)) for name, said in rows)


def misses(value: object) -> tuple[tuple[int, str], ...]:
    """(index, reason) pairs."""
    rows = (wire.as_list(row, "miss", 2) for row in wire.as_list(value, "misses"))
    return tuple((small(index), text(reason)) for index, reason in rows)


def pairs(value: object) -> tuple[tuple[int, int], ...]:
    """(frame, segment) pairs."""
    rows = (wire.as_list(row, "pair", 2) for row in wire.as_list(value, "pairs"))
    return tuple((number(frame), small(segment)) for frame, segment in rows)


def level(value: object) -> int:
    """A zstd level, or 0."""
    return wire.as_int(value, "level", 0, 22)


def worth(value: object) -> int:
    """What a lane is worth: 0 to 2."""
    return wire.as_int(value, "worth", 0, 2)
