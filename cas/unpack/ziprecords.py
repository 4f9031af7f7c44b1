"""The records of a zip archive (PKWARE's APPNOTE.TXT 6.3, section 4.3): local headers, the central
directory, and what ends it.

Offsets in a directory count from where the archive began before something was put in front of it;
here they are corrected, by where the directory is really found.
"""

from __future__ import annotations

import calendar
import struct
from dataclasses import dataclass, field

from cas.unpack.source import PEEK_LIMIT, Source

LOCAL, CENTRAL, DESCRIPTOR = b"PK\x03\x04", b"PK\x01\x02", b"PK\x07\x08"
END, END64, LOCATOR64 = b"PK\x05\x06", b"PK\x06\x06", b"PK\x06\x07"
SIGNATURE, EXTRA_DATA = b"PK\x05\x05", b"PK\x06\x08"

DIRECTORY_LIMIT = 16 * 2**20  # bytes; a larger one is not read ahead
COMMENT_LIMIT = 65535
SECOND = 10**9
_END_SIZE, _LOCATOR_SIZE, _END64_SIZE = 22, 20, 56
_LOCAL, _CENTRAL = struct.Struct("<4s5H3L2H"), struct.Struct("<4s6H3L5H2L")
_END, _END64 = struct.Struct("<4s4H2LH"), struct.Struct("<4sQ2H2L4Q")
_ZIP64, _TIMES = 1, 0x5455  # extra fields
_FULL = 0xFFFFFFFF  # the number is in the zip64 field
_DESCRIPTOR_SIZES = (12, 20)  # a CRC and two sizes of 4 or 8 bytes


@dataclass(slots=True)
class Record:
    """What a header says of one member."""

    flags: int
    method: int
    stored: int  # bytes in the archive
    size: int
    attributes: int = 0  # the directory's; of Unix, if the mode is not 0


@dataclass(slots=True)
class Local:
    """A local header of `header_size` bytes."""

    record: Record
    name: bytes
    mtime_ns: int
    header_size: int


@dataclass(slots=True)
class Directory:
    """The members by where their local headers are, and where the directory is itself."""

    at: int
    records: dict[int, Record] = field(default_factory=dict)


def parse_local(source: Source) -> Local | None:
    """The local header that is next, if one is."""
    head = source.peek(_LOCAL.size)
    if len(head) < _LOCAL.size or head[:4] != LOCAL:
        return None
    _, _, flags, method, time, date, _, stored, size, names, extras = _LOCAL.unpack(head)
    whole = source.peek(_LOCAL.size + names + extras)
    if len(whole) < _LOCAL.size + names + extras:
        return None
    extra = _extra_fields(whole[_LOCAL.size + names :])
    size, stored = _wide([size, stored], extra.get(_ZIP64, b""))
    name = whole[_LOCAL.size : _LOCAL.size + names]
    mtime_ns = _mtime(extra.get(_TIMES, b""), date, time)
    return Local(Record(flags, method, stored, size), name, mtime_ns, len(whole))


def record_size(source: Source) -> int:
    """How long the record of another kind is that is next; 0 if none is, or not all of one."""
    head = source.peek(_CENTRAL.size)
    kind, size = head[:4], 0
    if kind == CENTRAL and len(head) == _CENTRAL.size:
        size = len(head) + sum(_CENTRAL.unpack(head)[10:13])
    elif kind == END and len(head) >= _END_SIZE:
        size = _END_SIZE + int.from_bytes(head[20:22], "little")
    elif kind == LOCATOR64:
        size = _LOCATOR_SIZE
    elif kind == END64:
        size = 12 + int.from_bytes(head[4:12], "little")
    elif kind == SIGNATURE:
        size = 6 + int.from_bytes(head[4:6], "little")
    elif kind == EXTRA_DATA:
        size = 8 + int.from_bytes(head[4:8], "little")
    return size if size <= PEEK_LIMIT and len(source.peek(size)) == size else 0


def descriptor_size(source: Source) -> int:
    """How long the data descriptor is that is next: with its signature or without, of 4 or 8 bytes
    for each size, which only shows by what follows it."""
    head = source.peek(32)
    start = 4 if head[:4] == DESCRIPTOR else 0
    for size in _DESCRIPTOR_SIZES:
        if head[start + size : start + size + 2] == b"PK":
            return start + size
    return start + _DESCRIPTOR_SIZES[0] if start else 0


def read_directory(source: Source, comment_limit: int = COMMENT_LIMIT) -> Directory | None:
    """The central directory of the archive, if `source` can be read at any place and has one."""
    if source.pread is None or source.size is None:
        return None
    start = max(source.size - comment_limit - _END_SIZE, 0)
    tail = _read_at(source, source.size - start, start)
    at = tail.rfind(END)
    if at < 0 or len(tail) - at < _END_SIZE:
        return None
    _, _, _, _, count, size, offset, _ = _END.unpack(tail[at : at + _END_SIZE])
    end = start + at
    if _FULL in (size, offset) or count == 0xFFFF:
        wide = _read_end64(source, end)
        if wide is not None:
            end, size, offset = wide
    if size > min(end, DIRECTORY_LIMIT) or end - size < offset:
        return None
    return _parse_directory(_read_at(source, size, end - size), end - size, end - size - offset)


def _read_end64(source: Source, end: int) -> tuple[int, int, int] | None:
    """From the zip64 end record that is before the end record at `end`: where it is, the size of
    the directory and its offset."""
    at = end - _LOCATOR_SIZE - _END64_SIZE
    if at < 0:
        return None
    both = _read_at(source, _END64_SIZE + _LOCATOR_SIZE, at)
    if both[:4] != END64 or both[_END64_SIZE : _END64_SIZE + 4] != LOCATOR64:
        return None
    fields = _END64.unpack(both[:_END64_SIZE])
    return at, fields[8], fields[9]


def _parse_directory(data: bytes, start: int, shift: int) -> Directory | None:
    directory = Directory(start)
    at = 0
    while data[at : at + 4] == CENTRAL and len(data) - at >= _CENTRAL.size:
        fields = _CENTRAL.unpack(data[at : at + _CENTRAL.size])
        flags, method, stored, size = fields[3], fields[4], fields[8], fields[9]
        names, extras, comment, _, _, attributes, offset = fields[10:]
        end = at + _CENTRAL.size + names + extras + comment
        if _FULL in (stored, size, offset):
            extra = _extra_fields(data[at + _CENTRAL.size + names : end - comment])
            size, stored, offset = _wide([size, stored, offset], extra.get(_ZIP64, b""))
        if shift + offset < start:
            record = Record(flags, method, stored, size, attributes)
            directory.records.setdefault(shift + offset, record)
        at = end
    return directory if directory.records else None


def _read_at(source: Source, count: int, offset: int) -> bytes:
    return b"" if source.pread is None else source.pread(count, offset)


def _extra_fields(data: bytes) -> dict[int, bytes]:
    fields: dict[int, bytes] = {}
    at = 0
    while at + 4 <= len(data):
        kind, size = struct.unpack_from("<2H", data, at)
        fields.setdefault(kind, data[at + 4 : at + 4 + size])
        at += 4 + size
    return fields


def _wide(numbers: list[int], zip64: bytes) -> list[int]:
    """`numbers`, those that did not fit in 4 bytes as the zip64 field has them, in turn."""
    wide = []
    for number in numbers:
        if number == _FULL and len(zip64) >= 8:
            wide.append(int.from_bytes(zip64[:8], "little"))
            zip64 = zip64[8:]
        else:
            wide.append(number)
    return wide


def _mtime(times: bytes, date: int, time: int) -> int:
    """The time of a change in ns: exact where Unix wrote it, else of DOS, by an unknown clock."""
    if len(times) >= 5 and times[0] & 1:
        return int.from_bytes(times[1:5], "little", signed=True) * SECOND
    day = (1980 + (date >> 9), min(date >> 5 & 15 or 1, 12), date & 31 or 1)
    return calendar.timegm((*day, time >> 11, time >> 5 & 63, 2 * (time & 31), 0, 0, 0)) * SECOND
