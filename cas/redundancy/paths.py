"""Keeps many paths in little memory: neighbours share most of what they are, so compressed as one
stream they take some bytes each."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

LEVEL = 1
PIECE = 256 * 1024  # bytes of paths that wait
BITE = 4096  # compressed bytes; a thousand times as many plain ones at most


@dataclass(slots=True)
class Paths:
    """Paths in the order in which they were added."""

    _waiting: list[bytes] = field(default_factory=list)
    _size: int = 0
    _packed: bytearray = field(default_factory=bytearray)
    _packer: Any = field(default_factory=lambda: zlib.compressobj(LEVEL))

    def add(self, path: bytes) -> None:
        """The next one; a path has no NUL."""
        self._waiting.append(path)
        self._size += len(path)
        if self._size >= PIECE:
            self._pack()

    def __iter__(self) -> Iterator[bytes]:
        """All of them; nothing may be added meanwhile."""
        self._pack()
        packed = bytes(self._packed) + self._packer.copy().flush()
        unpacker, rest = zlib.decompressobj(), b""
        for at in range(0, len(packed), BITE):
            plain = unpacker.decompress(packed[at : at + BITE])
            *whole, rest = (rest + plain).split(b"\0")
            yield from whole

    def _pack(self) -> None:
        if self._waiting:
            self._packed += self._packer.compress(b"\0".join(self._waiting) + b"\0")
            self._waiting, self._size = [], 0
