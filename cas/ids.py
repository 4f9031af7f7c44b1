"""Digests: SHA-256 of plain bytes, the one hash of cas (FIPS 180-4; docs/format.md, section 1).

A chunk id, a file digest, a recipe id, a page id and a pack's name are all this, so that
`sha256sum` can check any of them.
"""

from __future__ import annotations

import hashlib
from typing import NewType, cast

from cas.errors import FormatError

Digest = NewType("Digest", bytes)

DIGEST_SIZE = 32


def digest_of(data: bytes | bytearray | memoryview) -> Digest:
    """SHA-256 of `data`; releases the GIL for more than 2 KiB."""
    return Digest(hashlib.sha256(data).digest())


EMPTY_DIGEST = digest_of(b"")


def parse_digest(text: str) -> Digest:
    """The digest written as 64 lower-case hex digits; raises FormatError for anything else."""
    try:
        raw = bytes.fromhex(text)
    except ValueError:
        raw = b""
    if len(raw) != DIGEST_SIZE or raw.hex() != text:
        raise FormatError("not a digest", where=text[:80], advice="64 hex digits 0-9a-f are needed")
    return Digest(raw)


def as_digest(raw: object) -> Digest:
    """`raw` as a digest after checking type and size; raises FormatError."""
    if not isinstance(raw, bytes) or len(raw) != DIGEST_SIZE:
        raise FormatError("a digest must be 32 bytes")
    return Digest(raw)


def split_digests(blob: bytes) -> list[Digest]:
    """The digests that lie end to end in `blob`; raises FormatError when it does not come out."""
    if len(blob) % DIGEST_SIZE:
        raise FormatError("digests do not fill their field")
    # Cast as a whole: a call of Digest for each costs as much as the slice.
    ids = [blob[at : at + DIGEST_SIZE] for at in range(0, len(blob), DIGEST_SIZE)]
    return cast("list[Digest]", ids)
