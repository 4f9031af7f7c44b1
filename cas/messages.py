"""The messages between client and agent: the table of docs/protocol.md, and their bytes.

Each message is one frozen value; `encode` and `decode` turn it into the body that follows a header
and back. Field checks are written once, in `_FIELDS`, in the order in which they stand on the wire.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass, fields
from typing import Any, ClassVar

from cas import messagefields as f
from cas import wire
from cas.entry import Problem
from cas.errors import FormatError, LimitError
from cas.frame import compress_small, decompress_small
from cas.ids import DIGEST_SIZE, Digest, as_digest
from cas.page import PAGE_LIMIT
from cas.recipe import RECIPE_LIMIT
from cas.segment import SEGMENT_WIRE_LIMIT
from cas.snapshot import decode_problems

PROTOCOL = 2
MARKER = b"\0CAS-LANE-1\n"
HEADER = struct.Struct("<IBBH")
COMPRESSED = 1
COMPRESS_FROM = 256  # bytes; a shorter body is sent as it is
PIECE_HEAD = struct.Struct("<QIII")
PIECE_SIZE = 64 * 1024
TRUSTED, DOUBTED, LOST = range(3)
MESSAGES = 0  # the frame whose "segments" are messages
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
    """`data` at `offset` of a segment of `total` bytes on the wire; or of message number `segment`,
    when `frame` is MESSAGES."""

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
    """Compress at `level` (0: as the link leaves time for), and keep at most `budget` stored bytes
    unacknowledged."""

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


@dataclass(frozen=True, slots=True)
class Credit:
    """Of this lane: `arrived` bytes of pieces have come over it; `allowed` may be sent in all."""

    TYPE: ClassVar[int] = 18
    arrived: int
    allowed: int


@dataclass(frozen=True, slots=True)
class Doubt:
    """What lane `lane` is worth now (TRUSTED, DOUBTED, LOST): in doubt it brings nothing, and what
    it had taken is to go over others."""

    TYPE: ClassVar[int] = 19
    lane: int
    worth: int


@dataclass(frozen=True, slots=True)
class Backlog:
    """How many bytes are ready at the agent and wait for a lane."""

    TYPE: ClassVar[int] = 20
    size: int


@dataclass(frozen=True, slots=True)
class Ahead:
    """This tier will be scanned next: learn what it holds, and send nothing of it yet."""

    TYPE: ClassVar[int] = 21
    tier: str
    roots: tuple[bytes, ...]
    exclude: tuple[str, ...]
    include: tuple[str, ...]


Message = (
    Hello | Scan | Page | Same | Look | Recipes | Scanned | Want | Piece | Missed | Ack | Beat
    | Tune | Progress | Cancel | Refused | Bye | Credit | Doubt | Backlog
    | Ahead
)  # fmt: skip

FROM_CLIENT = (
    Hello, Scan, Look, Want, Piece, Ack, Beat, Tune, Cancel, Bye, Credit, Doubt,
    Ahead,
)  # fmt: skip
FROM_AGENT = (
    Hello, Page, Same, Recipes, Scanned, Piece, Missed, Beat, Progress, Refused, Credit, Backlog,
)  # fmt: skip
OF_A_LANE = (Hello, Piece, Beat, Credit)  # never in pieces: they are about the lane they are on

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
    Ahead.TYPE: 64 * MIB,
}
MESSAGE_LIMIT = max(LIMITS.values()) + HEADER.size  # in pieces, header included


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
    limit = MESSAGE_LIMIT if frame == MESSAGES else SEGMENT_WIRE_LIMIT
    if total > limit or offset + len(data) > total or not data:
        raise LimitError("a piece outside its segment")
    return Piece(frame, segment, offset, total, data)


def decode_whole(data: bytes) -> Message:
    """The message that came in pieces; raises FormatError (LimitError)."""
    if len(data) < HEADER.size:
        raise FormatError("a message without its header")
    size, kind, flags, zero = HEADER.unpack_from(data)
    if size > limit_of(kind) or zero or size != len(data) - HEADER.size:
        raise FormatError(f"a message of type {kind} and {size} bytes, in pieces")
    message = decode_message(kind, flags, data[HEADER.size :])
    if isinstance(message, OF_A_LANE):
        raise FormatError(f"a {type(message).__name__} in pieces")
    return message


_Decoder = tuple[Callable[..., Any], Sequence[Callable[[object], object]]]
_DECODERS: dict[int, _Decoder] = {
    Hello.TYPE: (Hello, (f.small, f.text, f.text, f.facts)),
    Scan.TYPE: (Scan, (f.small, f.text, f.paths, f.texts, f.texts, f.ids)),
    Page.TYPE: (Page, (f.small, f.small, f.blob)),
    Same.TYPE: (Same, (f.small, f.small, as_digest)),
    Look.TYPE: (Look, (f.small, f.ids)),
    Recipes.TYPE: (Recipes, (f.small, f.blobs)),
    Scanned.TYPE: (Scanned, (f.small, f.small, decode_problems, f.number, f.number)),
    Want.TYPE: (Want, (f.small, f.small, f.blob)),
    Missed.TYPE: (Missed, (f.small, f.small, f.misses)),
    Ack.TYPE: (Ack, (f.pairs,)),
    Beat.TYPE: (Beat, (f.number,)),
    Tune.TYPE: (Tune, (f.level, f.number)),
    Progress.TYPE: (Progress, (f.small, f.number, f.number, f.path)),
    Cancel.TYPE: (Cancel, (f.small,)),
    Refused.TYPE: (Refused, (f.small, f.text, f.text, f.text)),
    Bye.TYPE: (Bye, ()),
    Credit.TYPE: (Credit, (f.number, f.number)),
    Doubt.TYPE: (Doubt, (f.small, f.worth)),
    Backlog.TYPE: (Backlog, (f.number,)),
    Ahead.TYPE: (Ahead, (f.text, f.paths, f.texts, f.texts)),
}

LOOK_AT_ONCE = (MIB - KIB) // DIGEST_SIZE  # recipe ids in one LOOK
