"""Takes an `ar` archive apart, that of Debian packages and of linkers (ar(5)).

There is no standard: GNU and System V end a name with a slash and keep long ones in a member called
`//`, BSD puts them before the data (`#1/length`). Members begin at even offsets.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from cas.entry import Kind
from cas.unpack.member import Frame, Member
from cas.unpack.source import PEEK_LIMIT, Source, member

MAGIC = b"!<arch>\n"
HEADER_SIZE = 60
NAME_LIMIT = 32768
SECOND = 10**9


@dataclass(slots=True)
class _Header:
    name: bytes
    size: int
    mtime: int
    mode: int
    uid: int
    gid: int


def members(source: Source, frame: Frame) -> Iterator[Member]:
    """The members of the archive that `source` is at. It goes on to the first bytes that are no
    header, or ends before anything is read."""
    if _parse(source.peek(len(MAGIC) + HEADER_SIZE)[len(MAGIC) :]) is None:
        return
    frame(source.exactly(len(MAGIC)))
    long_names = b""
    while (header := _parse(source.peek(HEADER_SIZE))) is not None:
        frame(source.exactly(HEADER_SIZE))
        if header.name == b"//" and header.size <= PEEK_LIMIT:
            long_names = source.peek(header.size)
        yield from _member(source, frame, header, long_names)


def _member(source: Source, frame: Frame, header: _Header, long_names: bytes) -> Iterator[Member]:
    name, size = header.name, header.size
    if name.startswith(b"#1/") and (length := _number(name[3:])) is not None:
        if length <= min(size, NAME_LIMIT):
            name = source.exactly(length)
            frame(name)
            size -= length
    elif name[:1] == b"/" and (at := _number(name[1:])) is not None and name != b"/":
        name = long_names[at : at + NAME_LIMIT].split(b"\n", 1)[0]
    name = name.rstrip(b"\0").removesuffix(b"/") or name
    body = member(source, size)
    yield Member(
        name, Kind.FILE, size, body, header.mtime * SECOND, header.mode, header.uid, header.gid
    )
    body.skip()
    if header.size % 2:
        frame(source.exactly(1))


def _parse(block: bytes) -> _Header | None:
    if len(block) < HEADER_SIZE or block[58:60] != b"`\n":
        return None
    size = _number(block[48:58])
    if size is None:
        return None
    mtime, uid, gid = (_number(block[a:b]) or 0 for a, b in ((16, 28), (28, 34), (34, 40)))
    mode = _number(block[40:48], 8) or 0
    return _Header(block[:16].rstrip(b" "), size, mtime, mode, uid, gid)


def _number(field: bytes, base: int = 10) -> int | None:
    digits = field.rstrip(b" ")
    return (
        int(digits, base) if digits.isdigit() and not digits.strip(b"0123456789"[:base]) else None
    )
