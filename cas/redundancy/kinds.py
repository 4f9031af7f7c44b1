"""Kinds of files by what their names end in. What is an archive is known by its content; for the
rest a snapshot has only the name."""

from __future__ import annotations

import re
from functools import lru_cache

NONE = b""  # the kind of files without an extension
_COMPRESSED = (b"gz", b"bz2", b"xz", b"zst")
_EXTENSION = re.compile(rb"[a-z][a-z0-9_+-]{0,11}|7z")
_LIBRARY = re.compile(rb"\.so(\.[0-9]+)+$")  # libm.so.6: the number is a version's, not a kind's


def kind_of(path: bytes) -> bytes:
    """`tar.gz` for `a/b.tar.gz`, `so` for `libm.so.6`, NONE for `Makefile`, `.bashrc`, `a.1`."""
    name = path.rpartition(b"/")[2]
    dot = name.find(b".", 1)
    if dot < 0:
        return NONE
    # Of what goes before its first dot no more matters than whether it is one: few are different.
    return _kind_of(name if name[:1] == b"." else b"x" + name[dot:])


@lru_cache(4096)
def _kind_of(name: bytes) -> bytes:
    name = _LIBRARY.sub(b".so", name.lower())
    stem, _, last = name.lstrip(b".").rpartition(b".")
    if not stem or _EXTENSION.fullmatch(last) is None:
        return NONE
    before = stem.rpartition(b".")[2]
    if last in _COMPRESSED and before != stem and _EXTENSION.fullmatch(before):
        return before + b"." + last
    return last
