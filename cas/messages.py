"""The messages between client and agent: the table of docs/protocol.md, and their bytes.

Each message is one frozen value; `encode` and `decode` turn it into the body that follows a header
and back. Field checks are written once, in `_FIELDS`, in the order in which they stand on the wire.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass, fields
from typing import Any, ClassVar

from cas import wire
from cas.entry import PATH_LIMIT, Problem
from cas.errors import FormatError, LimitError
from cas.frame import compress_small, decompress_small
from cas.ids import DIGEST_SIZE, Digest, as_digest, split_digests
from cas.page import PAGE_LIMIT
from cas.recipe import RECIPE_LIMIT
from cas.segment import SEGMENT_WIRE_LIMIT
from cas.snapshot import decode_problems

PROTOCOL = 1
MARKER = b"\0CAS-LANE-1\n"
HEADER = struct.Struct("<IBBH")
COMPRESSED = 1
COMPRESS_FROM = 256  # bytes; a shorter body is sent as it is
PIECE_HEAD = struct.Struct("<QIII")
PIECE_SIZE = 64 * 1024
KIB, MIB = 2**10, 2**20


@dataclass(frozen=True, slots=True)
class Hello:
    """First from both ends: what speaks, and how it cuts chunks."""

    TYPE: ClassVar[int] = 1
    protocol: int
    version: str
    chunker: str
    facts: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Scan:
    """Scan these roots; pages of `known` ids need not be sent."""

    TYPE: ClassVar[int] = 2
    scan: int
    tier: str
    roots: tuple[bytes, ...]
    exclude: tuple[str, ...]
    include: tuple[str, ...]
    known: tuple[Digest, ...]


@dataclass(frozen=True, slots=True)
class Page:
    """The next page of a scan, encoded."""

    TYPE: ClassVar[int] = 3
    scan: int
    number: int
    encoded: bytes


@dataclass(frozen=True, slots=True)
class Same:
    """The next page of a scan, which is one of those known."""

    TYPE: ClassVar[int] = 4
    scan: int
    number: int
    page: Digest


@dataclass(frozen=True, slots=True)
class Look:
    """Send these recipes."""

    TYPE: ClassVar[int] = 5
    scan: int
    recipes: tuple[Digest, ...]


@dataclass(frozen=True, slots=True)
class Recipes:
    """Recipes that were asked for, encoded."""

    TYPE: ClassVar[int] = 6
    scan: int
    encoded: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class Scanned:
    """The scan is over: how many pages it had, and what was wrong."""

    TYPE: ClassVar[int] = 7
    scan: int
    pages: int
    problems: tuple[Problem, ...]
    started_ms: int
    finished_ms: int


@dataclass(frozen=True, slots=True)
class Want:
    """Send the chunks of this page whose bits are set."""

    TYPE: ClassVar[int] = 8
    scan: int
    number: int
    bitmap: bytes


@dataclass(frozen=True, slots=True)
class Piece:
    """`data` at `offset` of a segment of `total` bytes on the wire."""

    TYPE: ClassVar[int] = 9
    frame: int
    segment: int
    offset: int
    total: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Missed:
    """Wanted chunks that cannot be had: (index in the page's chunk space, reason)."""

    TYPE: ClassVar[int] = 10
    scan: int
    number: int
    chunks: tuple[tuple[int, str], ...]


@dataclass(frozen=True, slots=True)
class Ack:
    """These (frame, segment) are durable here."""

    TYPE: ClassVar[int] = 11
    segments: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Beat:
    """A heartbeat; the agent sends it back."""

    TYPE: ClassVar[int] = 12
    number: int


@dataclass(frozen=True, slots=True)
class Tune:
    """Compress at `level`, and keep at most `budget` stored bytes unacknowledged."""

    TYPE: ClassVar[int] = 13
    level: int
    budget: int


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a scan is."""

    TYPE: ClassVar[int] = 14
    scan: int
    names: int
    read: int
    path: bytes


@dataclass(frozen=True, slots=True)
class Cancel:
    """Drop what is still wanted of this scan."""

    TYPE: ClassVar[int] = 15
    scan: int


@dataclass(frozen=True, slots=True)
class Refused:
    """The agent cannot do what was asked; `scan` is 0 when it was no scan."""

    TYPE: ClassVar[int] = 16
    scan: int
    what: str
    where: str
    advice: str


@dataclass(frozen=True, slots=True)
class Bye:
    """The client needs nothing more."""

    TYPE: ClassVar[int] = 17


Message = (
    Hello | Scan | Page | Same | Look | Recipes | Scanned | Want | Piece | Missed | Ack | Beat
    | Tune | Progress | Cancel | Refused | Bye
)  # fmt: skip

FROM_CLIENT = (Hello, Scan, Look, Want, Ack, Beat, Tune, Cancel, Bye)
FROM_AGENT = (
    Hello, Page, Same, Recipes, Scanned, Piece, Missed, Beat, Progress, Refused,
)  # fmt: skip

_SMALL = 64 * KIB
LIMITS: dict[int, int] = {
    Scan.TYPE: 64 * MIB,
    Page.TYPE: PAGE_LIMIT + MIB,
    Look.TYPE: MIB,
    Recipes.TYPE: RECIPE_LIMIT + MIB,
    Scanned.TYPE: 64 * MIB,
    Want.TYPE: 64 * MIB,
    Piece.TYPE: PIECE_SIZE + PIECE_HEAD.size,
    Missed.TYPE: 16 * MIB,
    Ack.TYPE: MIB,
}


def limit_of(kind: int) -> int:
    """The most bytes a body of this type may have, on the wire and decompressed."""
    return LIMITS.get(kind, _SMALL)


def encode_message(message: Message) -> bytes:
    """The message as it crosses the wire, header included."""
    if isinstance(message, Piece):
        head = PIECE_HEAD.pack(message.frame, message.segment, message.offset, message.total)
        size = len(head) + len(message.data)
        return b"".join((HEADER.pack(size, Piece.TYPE, 0, 0), head, message.data))
    body = wire.encode(_to_fields(message))
    flags = 0
    if len(body) >= COMPRESS_FROM:
        small = compress_small(body)
        if len(small) < len(body):
            body, flags = small, COMPRESSED
    return HEADER.pack(len(body), message.TYPE, flags, 0) + body


def decode_message(kind: int, flags: int, body: bytes) -> Message:
    """The message of type `kind` in `body`; raises FormatError (LimitError)."""
    if kind == Piece.TYPE:
        return _decode_piece(flags, body)
    if kind not in _DECODERS:
        raise FormatError(f"unknown message type {kind}")
    if flags & COMPRESSED:
        body = decompress_small(body, limit=limit_of(kind))
    if flags & ~COMPRESSED:
        raise FormatError(f"unknown flags {flags} on a message")
    make, checks = _DECODERS[kind]
    row = wire.decode(body, limit=limit_of(kind), what=make.__name__)
    values = wire.as_list(row, make.__name__, len(checks))
    message: Message = make(*(check(value) for check, value in zip(checks, values, strict=True)))
    return message


def _to_fields(message: Message) -> list[object]:
    if isinstance(message, Scan):
        known = b"".join(message.known)
        return [message.scan, message.tier, message.roots, message.exclude, message.include, known]
    if isinstance(message, Look):
        return [message.scan, b"".join(message.recipes)]
    if isinstance(message, Scanned):
        problems = [astuple(problem) for problem in message.problems]
        return [message.scan, message.pages, problems, message.started_ms, message.finished_ms]
    return [getattr(message, field.name) for field in fields(message)]


def _decode_piece(flags: int, body: bytes) -> Piece:
    if flags or len(body) < PIECE_HEAD.size:
        raise FormatError("a piece without its head")
    frame, segment, offset, total = PIECE_HEAD.unpack_from(body)
    data = body[PIECE_HEAD.size :]
    if total > SEGMENT_WIRE_LIMIT or offset + len(data) > total or not data:
        raise LimitError("a piece outside its segment")
    return Piece(frame, segment, offset, total, data)


def _number(value: object) -> int:
    return wire.as_int(value, "number", 0, wire.U64)


def _small(value: object) -> int:
    return wire.as_int(value, "number", 0, wire.U32)


def _text(value: object) -> str:
    return wire.as_text(value, "text", PATH_LIMIT)


def _texts(value: object) -> tuple[str, ...]:
    return tuple(_text(item) for item in wire.as_list(value, "texts"))


def _path(value: object) -> bytes:
    return wire.as_bytes(value, "path", PATH_LIMIT)


def _paths(value: object) -> tuple[bytes, ...]:
    return tuple(_path(item) for item in wire.as_list(value, "paths"))


def _ids(value: object) -> tuple[Digest, ...]:
    return tuple(split_digests(wire.as_bytes(value, "ids", 64 * MIB)))


def _blob(value: object) -> bytes:
    return wire.as_bytes(value, "bytes", 64 * MIB)


def _blobs(value: object) -> tuple[bytes, ...]:
    return tuple(_blob(item) for item in wire.as_list(value, "list of bytes"))


def _facts(value: object) -> tuple[tuple[str, str], ...]:
    rows = (wire.as_list(row, "fact", 2) for row in wire.as_list(value, "facts"))
    return tuple((_text(name), _text(said)) for name, said in rows)


def _misses(value: object) -> tuple[tuple[int, str], ...]:
    rows = (wire.as_list(row, "miss", 2) for row in wire.as_list(value, "misses"))
    return tuple((_small(index), _text(reason)) for index, reason in rows)


def _pairs(value: object) -> tuple[tuple[int, int], ...]:
    rows = (wire.as_list(row, "pair", 2) for row in wire.as_list(value, "pairs"))
    return tuple((_number(frame), _small(segment)) for frame, segment in rows)


def _level(value: object) -> int:
    return wire.as_int(value, "level", 1, 22)


_Decoder = tuple[Callable[..., Any], Sequence[Callable[[object], object]]]
_DECODERS: dict[int, _Decoder] = {
    Hello.TYPE: (Hello, (_small, _text, _text, _facts)),
    Scan.TYPE: (Scan, (_small, _text, _paths, _texts, _texts, _ids)),
    Page.TYPE: (Page, (_small, _small, _blob)),
    Same.TYPE: (Same, (_small, _small, as_digest)),
    Look.TYPE: (Look, (_small, _ids)),
    Recipes.TYPE: (Recipes, (_small, _blobs)),
    Scanned.TYPE: (Scanned, (_small, _small, decode_problems, _number, _number)),
    Want.TYPE: (Want, (_small, _small, _blob)),
    Missed.TYPE: (Missed, (_small, _small, _misses)),
    Ack.TYPE: (Ack, (_pairs,)),
    Beat.TYPE: (Beat, (_number,)),
    Tune.TYPE: (Tune, (_level, _number)),
    Progress.TYPE: (Progress, (_small, _number, _number, _path)),
    Cancel.TYPE: (Cancel, (_small,)),
    Refused.TYPE: (Refused, (_small, _text, _text, _text)),
    Bye.TYPE: (Bye, ()),
}

LOOK_AT_ONCE = (MIB - KIB) // DIGEST_SIZE  # recipe ids in one LOOK
