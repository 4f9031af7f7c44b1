"""The framing of zlib streams (RFC 1950)."""

from __future__ import annotations

ZLIB_HEADER, ZLIB_TRAILER = 2, 4  # bytes


def is_zlib_header(head: bytes) -> bool:
    """Whether `head` could begin a zlib stream without a dictionary."""
    if len(head) < ZLIB_HEADER:
        return False
    method, flags = head[0], head[1]
    fits = method & 0x0F == 8 and method >> 4 <= 7 and (method << 8 | flags) % 31 == 0
    return fits and not flags & 0x20
