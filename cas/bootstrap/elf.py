"""What a compiled module asks of the machine that loads it, and the module without what no loader
reads.

Layouts as in elf(5) and the System V gABI, chapters 4 and 5; only little-endian files, which all
machines of interest have. Which C library a module was linked to is told by the name of that
library, which the loader looks for; which version of glibc by the greatest version among its
symbols. Both stand in the file as plain strings.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass

from cas.errors import FormatError

_VERSION = re.compile(rb"\0GLIBC_2\.([0-9]{1,3})(?:\.[0-9]+)?(?=\0)")
_MUSL = re.compile(rb"\0(?:libc\.musl-|ld-musl-)")
_GLIBC = b"\0libc.so.6\0"
_MACHINES = {3: "i386", 21: "ppc64le", 22: "s390x", 40: "arm", 62: "x86_64", 183: "aarch64",
             243: "riscv64", 258: "loongarch64"}  # fmt: skip

_HEADERS = {1: "<16sHHIIIIIHHHHHH", 2: "<16sHHIQQQIHHHHHH"}  # by class: 32 and 64 bits
_SEGMENTS = {1: ("<IIIIIIII", 1, 4), 2: ("<IIQQQQQQ", 2, 5)}  # and where offset and size are


@dataclass(frozen=True, slots=True)
class Machine:
    """The processor, as an ELF header has it."""

    bits: int  # 1 for 32, 2 for 64
    number: int

    def __str__(self) -> str:
        return _MACHINES.get(self.number, f"machine {self.number}")


@dataclass(frozen=True, slots=True)
class Compiled:
    """A compiled module's demands. `glibc` is the second number of the version, 0 for none."""

    machine: Machine
    musl: bool
    glibc: int


def read_compiled(data: bytes) -> Compiled:
    """What the module asks for. Raises FormatError for what is no little-endian ELF file."""
    header = _header(data)
    versions = [int(found) for found in _VERSION.findall(data)]
    musl = _GLIBC not in data and _MUSL.search(data) is not None
    return Compiled(Machine(data[4], header[2]), musl, max(versions, default=0))


def without_sections(data: bytes) -> bytes:
    """The module without its sections: symbols for debuggers, and the table that names them.

    A loader maps segments and never looks at sections; with them a module can be five times as
    large. Raises FormatError.
    """
    header = list(_header(data))
    layout, at, size = _SEGMENTS[data[4]]
    start, step, count = header[5], header[9], header[10]
    end = max(start + step * count, header[8])
    if not count or step < struct.calcsize(layout) or start + step * count > len(data):
        raise FormatError("the table of segments does not lie in the file")
    for number in range(count):
        segment = struct.unpack_from(layout, data, start + number * step)
        end = max(end, segment[at] + segment[size])
    if end > len(data):
        raise FormatError("a segment does not lie in the file")
    header[6] = header[12] = header[13] = 0
    head = struct.pack(_HEADERS[data[4]], *header)
    return head + data[len(head) : end]


def _header(data: bytes) -> tuple[int, ...]:
    layout = _HEADERS.get(data[4]) if len(data) > 5 and data[:4] == b"\x7fELF" else None
    if layout is None or data[5] != 1 or len(data) < struct.calcsize(layout):
        raise FormatError("this is no compiled module of a kind that is known")
    return struct.unpack_from(layout, data)
