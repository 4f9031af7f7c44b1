"""Keys of LMDB tables: at most 511 bytes, in the byte order of what they stand for.

A name that is longer than fits is cut, and its SHA-256 takes the place of the rest. A cut key is
always exactly as long as fits and a whole one always shorter, so no two names share a key, however
they are chosen. The order of keys is that of the names, but for names alike in all that a cut key
keeps of them (`kept`): those lie side by side, and only their order among themselves is lost.
"""

from __future__ import annotations

from cas.ids import DIGEST_SIZE, digest_of

KEY_LIMIT = 511  # LMDB's, unless built otherwise
OWNER_SIZE = 16
TIER_LIMIT = 255


def fitted(name: bytes, limit: int) -> bytes:
    """`name`, or what stands for it in exactly `limit` bytes when it does not fit in fewer."""
    if len(name) < limit:
        return name
    return name[: kept(limit)] + digest_of(name)


def kept(limit: int) -> int:
    """How many bytes of a name that is cut to `limit` bytes its key keeps."""
    return limit - DIGEST_SIZE


def owner_key(owner: bytes) -> bytes:
    """What the keys of all names that belong to `owner` (a source, a scope) begin with: as long
    for each, so that none is the beginning of another."""
    return digest_of(owner)[:OWNER_SIZE]


def tier_key(tier: str) -> bytes:
    """What the keys of all rows of `tier` begin with: its size first, so that none is the
    beginning of another."""
    name = fitted(tier.encode(), TIER_LIMIT)
    return len(name).to_bytes(1, "big") + name
