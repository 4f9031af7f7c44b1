"""Entries as the headers of a tar archive (POSIX.1-2008, `pax`, "pax Interchange Format").

The same entries always give the same bytes. A name gets an extended header only where the old one
cannot say it: names over 100 bytes, parts of a second, large numbers, extended attributes, holes.
Names are bytes, in both: a tar that takes names as bytes makes the very names again. One that is no
UTF-8 and needs an extended header says so there (`hdrcharset=BINARY`).

Extended attributes, access control lists and file capabilities among them, are raw values under
`SCHILY.xattr.` (star's convention; GNU tar and libarchive read it). Holes are GNU's sparse format
1.0: the map of data stands before the data, so a hole costs nothing, however large it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from cas.entry import DEVICES, Entry, Kind
from cas.errors import LimitError

BLOCK = 512
RECORD = 20 * BLOCK  # an archive ends with two blocks of zeros, filled up to this
NAME_SIZE, OWNER_SIZE, LINK_SIZE = 100, 31, 100  # bytes in the old header; an owner ends with NUL
ID_LIMIT, NUMBER_LIMIT = 8**7, 8**11  # of a field of 8 bytes, and of one of 12
LINK_TYPE, EXTENDED_TYPE = b"1", b"x"
TYPES = {
    Kind.FILE: b"0",
    Kind.SYMLINK: b"2",
    Kind.CHARACTER_DEVICE: b"3",
    Kind.BLOCK_DEVICE: b"4",
    Kind.DIRECTORY: b"5",
    Kind.FIFO: b"6",
}
SECOND = 10**9

Region = tuple[int, int]  # of data: offset, size


@dataclass(frozen=True, slots=True)
class SparseMap:
    """Where the data of a file with holes is: how many regions, how many bytes they have together,
    and how long the map is, written out and padded."""

    regions: int
    data_size: int
    size: int


def header(entry: Entry, *, link_to: bytes = b"", sparse: SparseMap | None = None) -> bytes:
    """What stands before the data of `entry`, which is padded to blocks: its content, or with
    `sparse` the map and the regions, or nothing. `link_to` is the path of an earlier name of the
    same file. Raises LimitError for a device number that tar cannot hold."""
    name = entry.path + b"/" if entry.kind is Kind.DIRECTORY else entry.path
    size = entry.size if entry.kind is Kind.FILE and not link_to else 0
    target = link_to or entry.target
    records: dict[bytes, bytes] = {}
    field_name = name
    if sparse is not None:
        records |= {
            b"GNU.sparse.major": b"1",
            b"GNU.sparse.minor": b"0",
            b"GNU.sparse.name": name,
            b"GNU.sparse.realsize": b"%d" % entry.size,
        }
        size = sparse.size + sparse.data_size
        field_name = b"GNUSparseFile.0/" + name.rpartition(b"/")[2]
    elif len(name) > NAME_SIZE:
        records[b"path"] = name
    owner = entry.owner
    _unless_fitting(records, b"linkpath", target, LINK_SIZE)
    _unless_fitting(records, b"uname", owner.user, OWNER_SIZE)
    _unless_fitting(records, b"gname", owner.group, OWNER_SIZE)
    numbers = {b"uid": (owner.uid, ID_LIMIT), b"gid": (owner.gid, ID_LIMIT),
               b"size": (size, NUMBER_LIMIT)}  # fmt: skip
    records |= {key: b"%d" % n for key, (n, limit) in numbers.items() if n >= limit}
    if entry.mtime_ns % SECOND or not 0 <= entry.mtime_ns < NUMBER_LIMIT * SECOND:
        records[b"mtime"] = _time(entry.mtime_ns)
    if not link_to:
        records |= {_attribute_key(key): value for key, value in entry.xattrs}
    kind = LINK_TYPE if link_to else TYPES[entry.kind]
    old = _old_header(
        field_name, kind, size, mode=owner.mode, ids=(owner.uid, owner.gid),
        seconds=entry.mtime_ns // SECOND, target=target, names=(owner.user, owner.group),
        device=_device(entry),
    )  # fmt: skip
    return _extended(name, records) + old


def _unless_fitting(records: dict[bytes, bytes], key: bytes, value: bytes, limit: int) -> None:
    if len(value) > limit:
        records[key] = value


def _device(entry: Entry) -> tuple[int, int]:
    device = entry.device if entry.kind in DEVICES and entry.device is not None else (0, 0)
    if max(device) >= ID_LIMIT:
        raise LimitError(f"tar cannot hold the device number {device[0]}, {device[1]}")
    return device


def _time(mtime_ns: int) -> bytes:
    seconds, rest = divmod(abs(mtime_ns), SECOND)
    sign = b"-" if mtime_ns < 0 else b""
    return (b"%s%d.%09d" % (sign, seconds, rest)).rstrip(b"0").rstrip(b".")


def _attribute_key(name: bytes) -> bytes:
    """A key ends at the first equals sign, so GNU tar writes it otherwise in a name."""
    return b"SCHILY.xattr." + name.replace(b"%", b"%25").replace(b"=", b"%3D")


def _extended(name: bytes, records: dict[bytes, bytes]) -> bytes:
    """The extended header that holds `records`; nothing for none."""
    if not records:
        return b""
    text = [value for key, value in records.items() if not key.startswith(b"SCHILY.")]
    if not all(map(_is_utf8, text)):
        records = {b"hdrcharset": b"BINARY", **records}
    body = b"".join(_record(key, value) for key, value in records.items())
    own_name = b"PaxHeaders/" + name.rstrip(b"/").rpartition(b"/")[2]
    return _old_header(own_name, EXTENDED_TYPE, len(body), mode=0o644) + body + padding(len(body))


def _is_utf8(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


def _record(key: bytes, value: bytes) -> bytes:
    """`LENGTH KEY=VALUE` and a newline; the length counts itself."""
    rest = b" %s=%s\n" % (key, value)
    length = len(rest)
    while length != len(rest) + len(str(length)):
        length = len(rest) + len(str(length))
    return b"%d" % length + rest


def _old_header(
    name: bytes,
    kind: bytes,
    size: int,
    *,
    mode: int,
    ids: tuple[int, int] = (0, 0),
    seconds: int = 0,
    target: bytes = b"",
    names: tuple[bytes, bytes] = (b"", b""),
    device: tuple[int, int] = (0, 0),
) -> bytes:
    """A `ustar` header; what does not fit in a field is cut off, or 0."""
    start = b"".join(
        (
            name[:NAME_SIZE].ljust(NAME_SIZE, b"\0"),
            _octal(mode, 8), _octal(ids[0], 8), _octal(ids[1], 8),
            _octal(size, 12), _octal(max(seconds, 0), 12),
        )
    )  # fmt: skip
    end = b"".join(
        (
            kind,
            target[:LINK_SIZE].ljust(LINK_SIZE, b"\0"),
            b"ustar\00000",
            names[0][:OWNER_SIZE].ljust(OWNER_SIZE + 1, b"\0"),
            names[1][:OWNER_SIZE].ljust(OWNER_SIZE + 1, b"\0"),
            _octal(device[0], 8), _octal(device[1], 8),
        )
    ).ljust(BLOCK - len(start) - 8, b"\0")  # fmt: skip
    total = sum(start) + sum(end) + 8 * ord(" ")
    return start + b"%06o\0 " % total + end


def _octal(number: int, width: int) -> bytes:
    digits = width - 1
    return b"%0*o\0" % (digits, number if number < 8**digits else 0)


def padding(size: int) -> bytes:
    """The zeros that follow `size` bytes of data."""
    return bytes(-size % BLOCK)


def archive_end(size: int) -> bytes:
    """What ends an archive of `size` bytes so far."""
    end = 2 * BLOCK
    return bytes(end + -(size + end) % RECORD)


def sparse_map(regions: Iterable[Region]) -> SparseMap:
    """Measure the map of `regions`."""
    count = data_size = text_size = 0
    for offset, size in regions:
        count += 1
        data_size += size
        text_size += len(_pair(offset, size))
    text_size += len(b"%d\n" % count)
    return SparseMap(count, data_size, text_size + -text_size % BLOCK)


def sparse_map_text(count: int, regions: Iterable[Region]) -> Iterator[bytes]:
    """The map, by pieces, without its padding."""
    yield b"%d\n" % count
    for offset, size in regions:
        yield _pair(offset, size)


def _pair(offset: int, size: int) -> bytes:
    return b"%d\n%d\n" % (offset, size)
