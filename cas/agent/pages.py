"""A page as a scan hands it out, and as the agent's cache keeps it for the next scan.

What is kept goes by the page's first path. It is good again when the walk comes to the same names
with the same identities (`signature`), so that nothing of it need be looked at one by one.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from cas import wire
from cas._native import describe
from cas.agent.mounts import Mounts
from cas.agent.walk import Item
from cas.entry import Entry
from cas.errors import FormatError
from cas.ids import DIGEST_SIZE, Digest, as_digest, split_digests
from cas.page import ENTRIES_LIMIT, PAGE_LIMIT, encode_page, page_id

_ROW_LIMIT = 3 * PAGE_LIMIT


@dataclass(frozen=True, slots=True)
class ScannedPage:
    """One page of a scan: its id and encoded form, its first path, how many entries it has, their
    bytes of content, and how long its chunk space is."""

    id: Digest
    encoded: bytes
    first: bytes
    entries: int
    logical: int
    chunks: int


@dataclass(frozen=True, slots=True)
class KeptPage:
    """A page in the cache. `ended_scan`: it is as short as it is because nothing came after it.
    `recipes` are those that its contents need."""

    page: ScannedPage
    signature: bytes
    ended_scan: bool
    recipes: tuple[Digest, ...]


def make_page(entries: list[Entry]) -> ScannedPage:
    """The page of these entries."""
    encoded = encode_page(entries)
    contents = [entry.content for entry in entries if entry.content is not None]
    return ScannedPage(
        page_id(encoded),
        encoded,
        entries[0].path,
        len(entries),
        sum(entry.size for entry in entries),
        sum(content.chunk_count for content in contents),
    )


def signature(items: list[Item], mounts: Mounts) -> bytes:
    """One value for names and what they are, in order."""
    paths, identities, devices = describe(items)
    if not all(map(mounts.has_stable_inodes, devices)):
        identities = b"".join([mounts.identity(status) for _, status in items])
    # No path has a zero byte, and an identity begins with what says how long it is.
    return hashlib.sha256(b"%d\0%b%b" % (len(items), paths, identities)).digest()


def encode_kept(kept: KeptPage) -> bytes:
    """The value that the cache keeps."""
    page = kept.page
    fields = [
        kept.signature, kept.ended_scan, b"".join(kept.recipes),
        page.id, page.encoded, page.first, page.entries, page.logical, page.chunks,
    ]  # fmt: skip
    return wire.encode(fields)


def decode_kept(value: bytes) -> KeptPage:
    """The page in a value of the cache; raises FormatError for anything else."""
    fields = wire.decode(value, limit=_ROW_LIMIT, what="kept page")
    (
        signed, ended_scan, recipes, id_, encoded, first, entries, logical, chunks,
    ) = wire.as_list(fields, "kept page", 9)  # fmt: skip
    page = ScannedPage(
        as_digest(id_),
        wire.as_bytes(encoded, "page", PAGE_LIMIT),
        wire.as_bytes(first, "path", PAGE_LIMIT),
        wire.as_int(entries, "entries", 1, ENTRIES_LIMIT),
        wire.as_int(logical, "size"),
        wire.as_int(chunks, "chunks"),
    )
    if page_id(page.encoded) != page.id:
        raise FormatError("a kept page is not what was kept")
    blob = wire.as_bytes(recipes, "recipes", PAGE_LIMIT)
    signed = wire.as_bytes(signed, "signature", DIGEST_SIZE)
    return KeptPage(page, signed, bool(ended_scan), tuple(split_digests(blob)))
