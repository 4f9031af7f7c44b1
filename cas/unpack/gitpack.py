"""Takes a git pack apart, versions 2 and 3 (git's gitformat-pack(5)).

A pack is a row of objects: a header with the type and the plain size, for a difference also what it
is to, then a zlib stream. Nothing says how long that is in the pack, so it is inflated here to find
its end; only of what is longer than a look ahead the end is left to who takes the stream apart.

Blobs are files, and mostly lie in the work tree beside the pack too. Commits, trees and differences
are nothing that others have, and short: they are told from blobs by `framed`.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass

from cas.entry import Kind
from cas.program import Codec
from cas.recipe import SIZE_LIMIT
from cas.unpack.member import Frame, Member
from cas.unpack.source import PEEK_LIMIT, Source, member
from cas.unpack.zlibheader import ZLIB_HEADER, ZLIB_TRAILER, is_zlib_header

HEADER_SIZE = 12
HEADER_LIMIT = 64  # bytes of an object's header, with what a difference is to
SMALL_LOOK = 16 * 1024  # bytes, first: most objects end in them
STEP = 256 * 1024  # plain bytes at a time
BLOB = 3
TYPES = {1: b"commit", 2: b"tree", BLOB: b"blob", 4: b"tag", 6: b"delta", 7: b"delta"}
_OFFSET_DELTA, _NAMED_DELTA = 6, 7
_NAME_SIZES = (20, 32)  # SHA-1, SHA-256


@dataclass(slots=True)
class _Header:
    """An object's header, with that of its zlib stream: so many bytes."""

    type: int
    size: int
    length: int


def is_header(head: bytes) -> bool:
    """Whether a pack could begin like `head`."""
    return head[:4] == b"PACK" and len(head) >= HEADER_SIZE and head[4:8] in _VERSIONS


_VERSIONS = (b"\0\0\0\2", b"\0\0\0\3")


def members(source: Source, frame: Frame) -> Iterator[Member]:
    """The objects of the pack that `source` is at, each by its type and where it begins, as `git
    verify-pack -v` tells it too. The iteration ends before what is none, or with the last; the
    pack's digest is left in the source. If there is not one object, nothing was read."""
    start = source.position
    head = source.peek(HEADER_SIZE + HEADER_LIMIT)
    if _parse(head[HEADER_SIZE:]) is None:
        return
    frame(source.exactly(HEADER_SIZE))
    for _ in range(int.from_bytes(head[8:HEADER_SIZE], "big")):
        name = source.position - start
        header = _parse(source.peek(HEADER_LIMIT))
        if header is None:
            return
        frame(source.exactly(header.length))
        yield from _member(source, header, b"%s-%d" % (TYPES[header.type], name))
        frame(source.exactly(ZLIB_TRAILER))


def _member(source: Source, header: _Header, path: bytes) -> Iterator[Member]:
    item = Member(path, Kind.FILE, header.size, source, codec=Codec.DEFLATE)
    item.framed = header.type != BLOB
    stored = _stored_size(source, header.size)
    if stored is None:
        item.endless = True
        yield item
        return
    item.body = member(source, stored)
    yield item
    item.body.skip()


def _parse(data: bytes) -> _Header | None:
    """The header that `data` begins with, if one does."""
    if not data:
        return None
    type_, size, at = data[0] >> 4 & 7, data[0] & 15, 1
    shift = 4
    while data[at - 1] & 0x80:
        if at >= len(data) or shift > 60:
            return None
        size |= (data[at] & 0x7F) << shift
        shift += 7
        at += 1
    if type_ not in TYPES or size > SIZE_LIMIT:
        return None
    for end in _base_ends(data, at, type_):
        if is_zlib_header(data[end : end + ZLIB_HEADER]):
            return _Header(type_, size, end + ZLIB_HEADER)
    return None


def _base_ends(data: bytes, at: int, type_: int) -> Iterator[int]:
    """Where what a difference is to, which begins at `at`, can end."""
    if type_ == _NAMED_DELTA:
        yield from (at + size for size in _NAME_SIZES)
    elif type_ == _OFFSET_DELTA:
        while at < len(data) and data[at] & 0x80:
            at += 1
        yield at + 1
    else:
        yield at


def _stored_size(source: Source, size: int) -> int | None:
    """How long the deflate stream is that `source` is at, of `size` plain bytes; None if it goes on
    behind what can be looked at, or is none."""
    for look in (SMALL_LOOK, PEEK_LIMIT):
        data = source.peek(look)
        found = _inflated_size(data, size)
        if found is not None or len(data) < look:
            return found
    return None


def _inflated_size(data: bytes, size: int) -> int | None:
    inflater = zlib.decompressobj(-zlib.MAX_WBITS)
    left, plain = data, 0
    try:
        while not inflater.eof:
            piece = inflater.decompress(left, STEP)
            plain += len(piece)
            left = inflater.unconsumed_tail
            if plain > size or not (piece or left or inflater.eof):
                return None
    except zlib.error:
        return None
    return len(data) - len(inflater.unused_data) if plain == size else None
