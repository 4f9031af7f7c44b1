"""Takes a tar archive apart: whatever tar wrote it, and whatever follows its end.

Headers, extended headers, sparse maps, padding and the blocks of zeros at the end are framed; what
members hold is a body. A block that is no header where one should be ends the iteration, unread.
After the end there may be zeros up to a record's size, and then another archive ("tar -A" does not
write such, "cat" does): the iteration goes on there.

What POSIX leaves open: for links, directories and devices the size may be given and no data there
(for a hard link most writers do, some have data), so there the next block decides.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from cas.entry import Kind
from cas.unpack.member import Frame, Member, Run
from cas.unpack.source import Source, member
from cas.unpack.tarheader import (
    BLOCK,
    EXTENSIONS,
    GLOBAL,
    GNU_SPARSE,
    KINDS,
    LINK,
    LONG_LINK,
    LONG_NAME,
    RUNS_LIMIT,
    SECOND,
    Header,
    Records,
    fits,
    header_runs,
    map_runs,
    more_runs,
    parse_header,
    pax_number,
    pax_records,
    pax_time,
    real_size,
)

EXTENSION_LIMIT = 2**20  # bytes of one extended header, or of a sparse map
ZEROS_LIMIT = 2**21  # bytes of zeros at the end that are framed: the largest record anyone uses
_ZEROS = bytes(BLOCK)


@dataclass(slots=True)
class _Extension:
    """What extended headers said of the member that follows, and of all that follow."""

    path: bytes | None = None
    link: bytes | None = None
    records: Records = field(default_factory=dict)
    runs: list[bytes] = field(default_factory=list)  # GNU's sparse format 0.0: a record for each


def members(source: Source, frame: Frame) -> Iterator[Member]:
    """The members of the archive that `source` is at, and of those that follow it."""
    globals_: Records = {}
    extension = _Extension(records={})
    while True:
        block = source.peek(BLOCK)
        header = parse_header(block)
        if header is None:
            if block != _ZEROS or not _frame_zeros(source, frame):
                return
        elif header.type in EXTENSIONS:
            data = _extension_data(source, frame, header.size)
            if data is None:
                return
            _extend(extension, globals_, header.type, data)
        else:
            extension.records = {**globals_, **extension.records}
            frame(source.exactly(BLOCK))
            yield from _member(source, frame, header, extension)
            extension = _Extension(records={})


def _frame_zeros(source: Source, frame: Frame) -> bool:
    """Frame blocks of zeros; whether something else follows, and not too many came before it."""
    left = ZEROS_LIMIT
    while left and (piece := source.peek(min(left, 2**16))):
        zeros = len(piece) - len(piece.lstrip(b"\0"))
        whole = zeros if zeros == len(piece) else zeros - zeros % BLOCK
        frame(source.exactly(whole))
        left -= whole
        if whole < len(piece):
            return True
    return False


def _extension_data(source: Source, frame: Frame, size: int) -> bytes | None:
    """What an extended header says; nothing when that is too much, or cut off."""
    if size > EXTENSION_LIMIT:
        return None
    whole = source.exactly(BLOCK + size + -size % BLOCK)
    frame(whole)
    return whole[BLOCK : BLOCK + size] if len(whole) >= BLOCK + size else None


def _extend(extension: _Extension, globals_: Records, kind: bytes, data: bytes) -> None:
    if kind == LONG_NAME:
        extension.path = data.split(b"\0", 1)[0]
    elif kind == LONG_LINK:
        extension.link = data.split(b"\0", 1)[0]
    elif kind == GLOBAL:
        globals_.update(pax_records(data))
    else:
        for key, value in pax_records(data):
            if key in (b"GNU.sparse.offset", b"GNU.sparse.numbytes"):
                extension.runs.append(value)
            extension.records[key] = value


def _member(
    source: Source, frame: Frame, header: Header, extension: _Extension
) -> Iterator[Member]:
    records = extension.records
    stored = pax_number(records.get(b"size"))
    if stored is None:
        stored = header.size
    path = _path(header, extension)
    kind = KINDS.get(header.type, Kind.FILE)
    if header.type == b"\0" and path[-1:] == b"/":  # how the first tars wrote a directory
        kind = Kind.DIRECTORY
    if stored and (kind is not Kind.FILE or header.type == LINK) and _has_no_data(source):
        stored = 0
    padding = -stored % BLOCK
    runs, size, stored = _sparse(source, frame, header, extension, stored)
    body = member(source, stored)
    item = Member(path, kind, size, body, runs=runs)
    _describe(item, header, extension)
    yield item
    body.skip()
    if padding:
        frame(source.exactly(padding))


def _has_no_data(source: Source) -> bool:
    block = source.peek(BLOCK)
    return len(block) < BLOCK or block == _ZEROS or parse_header(block) is not None


def _path(header: Header, extension: _Extension) -> bytes:
    records = extension.records
    return records.get(b"GNU.sparse.name") or records.get(b"path") or extension.path or header.path


def _describe(item: Member, header: Header, extension: _Extension) -> None:
    """Add what only a listing wants to know."""
    records = extension.records
    mtime_ns = pax_time(records.get(b"mtime", b""))
    item.mtime_ns = header.mtime * SECOND if mtime_ns is None else mtime_ns
    item.mode = header.mode
    uid, gid = pax_number(records.get(b"uid")), pax_number(records.get(b"gid"))
    item.uid = header.uid if uid is None else uid
    item.gid = header.gid if gid is None else gid
    link = records.get(b"linkpath") or extension.link or header.link
    if header.type == LINK:
        item.link = link
    elif item.kind is Kind.SYMLINK:
        item.target = link


def _sparse(
    source: Source, frame: Frame, header: Header, extension: _Extension, stored: int
) -> tuple[tuple[Run, ...] | None, int, int]:
    """Of the member whose data is next, which may be sparse: its runs, its size with the holes, and
    how many bytes are data. A map that stands before the data is framed."""
    records = extension.records
    runs: tuple[Run, ...] | None = None
    size: int | None = None
    if header.type == GNU_SPARSE:
        runs = _old_runs(source, frame, header)
        size = real_size(header.block)
    elif records.get(b"GNU.sparse.major") == b"1":
        size = pax_number(records.get(b"GNU.sparse.realsize"))
        text = _map_before_data(source, stored)
        if text is not None:
            frame(source.exactly(len(text)))
            stored -= len(text)
            runs = map_runs(text.split(b"\n")[1 : 1 + 2 * int(text.split(b"\n", 1)[0])])
    elif b"GNU.sparse.size" in records:
        size = pax_number(records[b"GNU.sparse.size"])
        listed = records.get(b"GNU.sparse.map", b"")
        runs = map_runs(listed.split(b",") if listed else extension.runs)
    if runs is None or size is None or not fits(runs, stored, size):
        return None, stored if size is None else size, stored
    return runs, size, stored


def _old_runs(source: Source, frame: Frame, header: Header) -> tuple[Run, ...]:
    runs = list(header_runs(header.block))
    has_more = header.has_more_runs
    while has_more and len(runs) < RUNS_LIMIT and len(block := source.peek(BLOCK)) == BLOCK:
        frame(source.exactly(BLOCK))
        more, has_more = more_runs(block)
        runs += more
    return tuple(runs)


def _map_before_data(source: Source, stored: int) -> bytes | None:
    """The sparse map of format 1.0 with its padding: a count, and as many pairs of numbers."""
    for size in (BLOCK, 2**16, EXTENSION_LIMIT):
        text = source.peek(min(size, stored))
        count = pax_number(text.split(b"\n", 1)[0])
        if count is None or count > RUNS_LIMIT:
            return None
        lines = text.split(b"\n", 1 + 2 * count)
        if len(lines) == 2 + 2 * count:
            end = len(text) - len(lines[-1])
            return text[: min(end + -end % BLOCK, len(text))]
    return None
