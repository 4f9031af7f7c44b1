"""One header of a tar archive, and what extends it (POSIX.1-2008, "pax"; the manual of GNU tar,
"Basic Tar Format" and "Storing Sparse Files").

Four dialects share a block of 512 bytes: those of Unix V7, ustar, GNU and PAX. A block is a header
if its checksum says so; the sum is of unsigned bytes, but some old writers took signed ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from cas.entry import Kind

BLOCK = 512
SECOND = 10**9
SIZE_LIMIT = 2**62
RUNS_LIMIT = 2**16  # of data in one sparse file; what has more is not taken apart
KINDS = {
    b"2": Kind.SYMLINK,
    b"3": Kind.CHARACTER_DEVICE,
    b"4": Kind.BLOCK_DEVICE,
    b"5": Kind.DIRECTORY,
    b"6": Kind.FIFO,
}
LINK, GNU_SPARSE = b"1", b"S"
LONG_NAME, LONG_LINK, EXTENDED, SUN_EXTENDED, GLOBAL = b"L", b"K", b"x", b"X", b"g"
EXTENSIONS = (LONG_NAME, LONG_LINK, EXTENDED, SUN_EXTENDED, GLOBAL)

# GNU's old sparse format: offset and size of runs, in the header and in blocks that follow it.
_RUN = 24
_HEADER_RUNS, _HEADER_MORE, _REAL_SIZE = slice(386, 482), 482, slice(483, 495)
_BLOCK_RUNS, _BLOCK_MORE = slice(0, 504), 504

Run = tuple[int, int]
Records = dict[bytes, bytes]


@dataclass(slots=True)
class Header:
    """What one block says. `size` is that of the data behind it; for many kinds of files there is
    none, whatever is said."""

    path: bytes
    type: bytes
    size: int
    mtime: int
    mode: int
    uid: int
    gid: int
    link: bytes
    block: bytes

    @property
    def has_more_runs(self) -> bool:
        """Whether a block with more of the sparse map follows."""
        return self.type == GNU_SPARSE and self.block[_HEADER_MORE] not in b"\x000"


def parse_header(block: bytes) -> Header | None:
    """The header in `block`, or nothing if it is none."""
    if len(block) < BLOCK or not _has_its_checksum(block):
        return None
    size = number(block[124:136])
    if size is None or not 0 <= size < SIZE_LIMIT:
        return None
    path = _text(block[:100])
    # In GNU's dialect, "ustar" and two spaces, there are times where the others have a prefix.
    if block[257:263] == b"ustar\0" and (prefix := _text(block[345:500])):
        path = prefix + b"/" + path
    mode, uid, gid = (number(block[at : at + 8]) or 0 for at in (100, 108, 116))
    mtime = number(block[136:148]) or 0
    return Header(path, block[156:157], size, mtime, mode, uid, gid, _text(block[157:257]), block)


def _has_its_checksum(block: bytes) -> bool:
    field = block[148:156]
    said = number(field)
    if not said:  # the sum has eight spaces in it at least, so it is never 0
        return False
    spaces = 8 * ord(" ")
    if said == sum(block) - sum(field) + spaces:
        return True
    rest = block[:148] + block[156:]
    return said == sum(rest) - 256 * sum(byte > 127 for byte in rest) + spaces


def number(field: bytes) -> int | None:
    """A number in octal digits or, where the first bit says so, in base 256."""
    if field[0] & 0x80:
        bits = 8 * len(field) - 1
        value = int.from_bytes(field, "big") & ((1 << bits) - 1)
        return value - (1 << bits) if value >> (bits - 1) else value
    text = field.split(b"\0", 1)[0].strip(b" ")
    if not text:
        return 0
    # int() itself takes signs, underscores and other spaces.
    return int(text, 8) if not text.strip(b"01234567") else None


def _text(field: bytes) -> bytes:
    return field.split(b"\0", 1)[0]


def pax_records(data: bytes) -> list[tuple[bytes, bytes]]:
    """The records `length key=value` of an extended header, up to one that is none."""
    records = []
    at = 0
    while (space := data.find(b" ", at, at + 20)) > at and data[at:space].isdigit():
        end = at + int(data[at:space])
        key, equals, value = data[space + 1 : end - 1].partition(b"=")
        if not equals or data[end - 1 : end] != b"\n":
            break
        records.append((key, value))
        at = end
    return records


def pax_number(value: bytes | None) -> int | None:
    """A decimal number, if `value` is one."""
    return int(value) if value and len(value) < 20 and value.isdigit() else None


def pax_time(value: bytes) -> int | None:
    """Decimal seconds with a fraction, as nanoseconds."""
    whole, _, fraction = value.partition(b".")
    digits = whole.removeprefix(b"-")
    if not digits.isdigit() or len(digits) > 19 or not (fraction or b"0").isdigit():
        return None
    ns = int(digits) * SECOND + int(fraction[:9].ljust(9, b"0"))
    return -ns if whole[:1] == b"-" else ns


def header_runs(block: bytes) -> Iterator[Run]:
    """The sparse map in a header of type S."""
    return _runs(block[_HEADER_RUNS])


def more_runs(block: bytes) -> tuple[list[Run], bool]:
    """The sparse map in a block that follows, and whether another one does."""
    return list(_runs(block[_BLOCK_RUNS])), block[_BLOCK_MORE] not in b"\x000"


def real_size(block: bytes) -> int | None:
    """The size, holes included, in a header of type S."""
    return number(block[_REAL_SIZE])


def _runs(field: bytes) -> Iterator[Run]:
    for at in range(0, len(field), _RUN):
        if not field[at]:
            return
        offset, size = number(field[at : at + 12]), number(field[at + 12 : at + _RUN])
        if offset is None or size is None:
            return
        yield offset, size


def map_runs(numbers: list[bytes]) -> tuple[Run, ...] | None:
    """Runs from their offsets and sizes in turn, in decimal; nothing if that is not what they
    are."""
    values = [pax_number(text) for text in numbers]
    if len(values) % 2 or len(values) > 2 * RUNS_LIMIT:
        return None
    known = [value for value in values if value is not None]
    return tuple(zip(known[::2], known[1::2], strict=True)) if len(known) == len(values) else None


def fits(runs: tuple[Run, ...], stored: int, size: int) -> bool:
    """Whether `runs` are in order, in a file of `size` bytes, and `stored` together."""
    end = 0
    for offset, length in runs:
        if offset < end:
            return False
        end = offset + length
    return end <= size and sum(length for _, length in runs) == stored
