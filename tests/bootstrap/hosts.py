"""Hosts for the tests: this machine's Python as a host's, and modules that fit it or do not."""

from __future__ import annotations

import os
import struct
import sys
import zipfile
from collections.abc import Mapping
from importlib import machinery
from pathlib import Path

from cas.bootstrap.elf import Machine
from cas.bootstrap.far import FarPython

X86_64 = Machine(2, 62)


def this_python() -> FarPython:
    """The Python that runs the tests."""
    head = Path(sys.executable).resolve().read_bytes()[:20]
    return FarPython(
        sys.executable,
        tuple(sys.version_info[:3]),
        sys.implementation.name,
        Machine(head[4], head[18] + 256 * head[19]),
        os.confstr("CS_GNU_LIBC_VERSION") or "",
        tuple(machinery.EXTENSION_SUFFIXES),
    )


def python_of(minor: int, libc: str = "glibc 2.31", machine: Machine = X86_64) -> FarPython:
    """A CPython 3.`minor` on some other host."""
    kind = "musl" if libc == "musl" else "gnu"
    suffixes = (f".cpython-3{minor}-{machine}-linux-{kind}.so", ".abi3.so", ".so")
    return FarPython("/usr/bin/python3", (3, minor, 1), "cpython", machine, libc, suffixes)


def module(strings: bytes = b"\0libc.so.6\0GLIBC_2.14\0", number: int = 62) -> bytes:
    """The least that is an ELF file: a header, one segment, the strings, and a section behind."""
    size = 64 + 56 + len(strings)
    ident = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")
    header = struct.pack(
        "<16sHHIQQQIHHHHHH", ident, 3, number, 1, 0, 64, size + 8, 0, 64, 56, 1, 64, 1, 0
    )
    segment = struct.pack("<IIQQQQQQ", 1, 5, 0, 0, 0, size, size, 4096)
    return header + segment + strings + b"debugged" + bytes(64)


def write_wheel(directory: Path, name: str, files: Mapping[str, bytes]) -> Path:
    """A wheel with these files."""
    directory.mkdir(exist_ok=True)
    path = directory / name
    with zipfile.ZipFile(path, "w") as wheel:
        for inside, data in files.items():
            wheel.writestr(inside, data)
    return path
