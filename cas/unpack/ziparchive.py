"""Takes a zip archive apart (PKWARE's APPNOTE.TXT 6.3).

What is where says the central directory at the end, which is read first where the source can be
read at any place; else the local headers in front of the members have to do, and for members of
unknown size the end of their stream. In both cases the archive is walked from its start: local
headers, data descriptors, the directory and the comment are framed. What nobody speaks of is a gap:
a program in front, a block of signatures, deleted members.
"""

from __future__ import annotations

import stat
from collections.abc import Iterator

from cas.entry import Kind
from cas.program import Codec
from cas.unpack.limits import FRAME_LIMIT
from cas.unpack.member import Frame, Gap, Item, Member
from cas.unpack.source import Source, member
from cas.unpack.ziprecords import (
    Directory,
    Local,
    Record,
    descriptor_size,
    parse_local,
    read_directory,
    record_size,
)

STORED, DEFLATED = 0, 8
ENCRYPTED, STREAMED = 1, 8  # of the flags
SHORT_COMMENT = 1000  # bytes
METHODS = {9: "deflate64", 12: "bzip2", 14: "lzma", 93: "zstd", 95: "xz", 98: "ppmd", 99: "AES"}


def has_directory(source: Source) -> bool:
    """Whether `source`, which begins with something else, has a zip archive at its end. So many
    programs are asked for theirs that it is not looked for behind a long comment."""
    return read_directory(source, SHORT_COMMENT) is not None


def members(source: Source, frame: Frame) -> Iterator[Item]:
    """The members of the archive that `source` is at the start of, and gaps between them."""
    directory = read_directory(source)
    records = directory.records if directory else {}
    marks = _marks(directory)
    while source.peek(1):
        here = source.position
        while marks and marks[-1] < here:
            marks.pop()
        if marks and marks[-1] > here:
            yield from _gap(source, frame, marks[-1] - here)
            continue
        known = records.get(here)
        local = None if records and known is None else parse_local(source)
        if local is not None:
            yield from _member(source, frame, local, known)
        elif size := record_size(source):
            frame(source.exactly(size))
        elif marks:
            marks.pop()  # nothing is where it should be
        else:
            return


def _marks(directory: Directory | None) -> list[int]:
    """Where something must begin, by the directory; the last of all first."""
    return [] if directory is None else sorted((*directory.records, directory.at), reverse=True)


def _gap(source: Source, frame: Frame, size: int) -> Iterator[Gap]:
    if size <= FRAME_LIMIT:
        frame(source.exactly(size))
        return
    body = member(source, size)
    yield Gap(body)
    body.skip()


def _member(source: Source, frame: Frame, local: Local, known: Record | None) -> Iterator[Member]:
    record = known or local.record
    is_streamed = known is None and bool(record.flags & STREAMED)
    frame(source.exactly(local.header_size))
    item = Member(local.name, _kind(local.name, record), record.size, source, local.mtime_ns)
    item.mode = record.attributes >> 16 & 0o7777
    if record.flags & ENCRYPTED:
        item.opaque = "encrypted"
    elif record.method == DEFLATED:
        item.codec = Codec.DEFLATE
    elif record.method != STORED:
        item.opaque = f"compressed by {METHODS.get(record.method, f'method {record.method}')}"
    item.endless = is_streamed and not record.stored and record.method != STORED
    if not item.endless:
        item.body = member(source, record.stored)
    yield item
    if not item.endless:
        item.body.skip()
    if is_streamed and (size := descriptor_size(source)):
        frame(source.exactly(size))


def _kind(name: bytes, record: Record) -> Kind:
    if stat.S_ISLNK(record.attributes >> 16):
        return Kind.SYMLINK
    return Kind.DIRECTORY if name.endswith(b"/") else Kind.FILE
