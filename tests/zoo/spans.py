"""Deflate streams taken apart and put together with nothing but the compiled core."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cas._native import Config, Span, config_of, rebuild

WINDOW = 32 * 1024


def deflate_of(data: bytes) -> bytes:
    """What follows the header of the first member of a gzip file (RFC 1952)."""
    flags, at = data[3], 10
    if flags & 4:
        at += 2 + int.from_bytes(data[at : at + 2], "little")
    for flag in (8, 16):
        if flags & flag:
            at = data.index(0, at) + 1
    return data[at + (2 if flags & 2 else 0) :]


@dataclass
class Rebuilder:
    """Puts spans together again from their plain bytes and side information."""

    bits: bytearray
    history: bytes = b""
    used: int = 0

    def add(self, plain: bytes, side: bytes) -> None:
        """The next span."""
        part, used = rebuild(self.history, plain, side)
        if self.used:
            self.bits[-1] |= part[0]
            part = part[1:]
        self.bits += part
        self.used = used
        self.history = (self.history + plain)[-WINDOW:]


def sides(spans: Sequence[Span], config: Config) -> Iterator[bytes]:
    """Side information of each span, as one would go on from span to span."""
    for span in spans:
        side = span.analyse(config)
        config = config_of(side) or config
        yield side
