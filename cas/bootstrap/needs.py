"""What `cas serve` needs beside Python: cas itself, and five packages of others.

`tests/bootstrap/` runs the agent with nothing else in its path, so this list cannot fall behind.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from cas.bootstrap.elf import read_compiled
from cas.bootstrap.far import FarPython
from cas.errors import FormatError

OURS = "cas-sync"
NATIVE = "cas/_native.*"
PACKAGES = ("cas", "cli", "indexes")

_USELESS = ("*.pyi", "*.c", "*.h", "*.pyx", "*.pxd", "*/py.typed", "*/__pycache__/*", "*/tests/*")
_LICENCES = ("*.dist-info/licenses/*", "*.dist-info/LICEN[CS]E*", "*.dist-info/COPYING*")


@dataclass(frozen=True, slots=True)
class Need:
    """A package. `without` are patterns of what the agent does not use of it; `slow` says what it
    is like without its compiled part, and is empty where it does not work at all then."""

    name: str
    without: tuple[str, ...] = ()
    slow: str = ""


NEEDS = (
    Need("click", ("click/testing.py",)),
    Need("fastcdc", slow="new files are read at about 6 MB/s there"),
    Need("lmdb", ("lmdb/cffi.py",)),
    Need("msgpack", slow="lists of files take some ten times as long there"),
    Need("zstandard", ("zstandard/_cffi*", "zstandard/backend_cffi.py", "zstandard/*_rust*")),
)


def useful(need: Need, path: str) -> bool:
    """Whether a file of the package, by its path below site-packages, is to be sent."""
    if _matches(path, _LICENCES):
        return True
    outside = path.startswith(("..", "/")) or ".dist-info/" in path or ".data/" in path
    return not outside and not _matches(path, (*_USELESS, *need.without))


def _matches(path: str, patterns: Iterable[str]) -> bool:
    return any(fnmatch.fnmatchcase(path, pattern) for pattern in patterns)


def misfits(files: Mapping[str, bytes], python: FarPython) -> dict[str, str]:
    """The compiled files that `python` cannot load, and why not."""
    found = {}
    for path, data in files.items():
        if is_compiled(path) and (why := _misfit(path, data, python)):
            found[path] = why
    return found


def is_compiled(path: str) -> bool:
    """Whether it is a compiled module, or a library of one."""
    name = path.rpartition("/")[2]
    return name.endswith(".so") or ".so." in name


def _misfit(path: str, data: bytes, python: FarPython) -> str:
    try:
        made = read_compiled(data)
    except FormatError as error:
        return error.what
    name = path.rpartition("/")[2]
    if made.machine != python.machine:
        return f"it is for {made.machine}, and the host is {python.machine}"
    if ".libs/" not in path and "." + name.partition(".")[2] not in python.suffixes:
        return f"it is not for Python {'.'.join(map(str, python.minor))}"
    if made.musl != (python.libc == "musl"):
        return f"it is for {'musl' if made.musl else 'glibc'}, and the host has {python.libc}"
    if python.glibc is not None and made.glibc > python.glibc:
        return f"it needs glibc 2.{made.glibc}, and the host has {python.libc}"
    return ""
