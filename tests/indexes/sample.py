"""Small made-up rows, the same for the same numbers, that fit together as a store's would."""

import hashlib

from cas.frame import Codec
from cas.ids import Digest, digest_of
from cas.interfaces import (
    Changes,
    FileRow,
    Index,
    Location,
    PackRow,
    SegmentPlace,
    SnapshotRow,
)

CHUNKS = 400  # of a batch


def digest(*numbers: int) -> Digest:
    """A digest that stands for `numbers`."""
    return digest_of(repr(numbers).encode())


def place(pack: int, offset: int) -> SegmentPlace:
    """A segment's place."""
    return SegmentPlace(pack, offset, offset + 48, 100, Codec.ZSTD, 1000)


def pack_row(number: int, *, sealed: bool = True) -> PackRow:
    """A pack."""
    id_ = hashlib.md5(str(number).encode(), usedforsecurity=False).digest()
    return PackRow(id_, digest(number).hex(), 1000 + number, sealed)


def file_row(path: bytes, number: int = 0, source: str = "npu", tier: str = "00-first") -> FileRow:
    """A file's newest entry, in a page of that number."""
    return FileRow(source, path, tier, digest(7, number), number)


def snapshot_row(number: int, tier: str = "00-first", *, complete: bool = False) -> SnapshotRow:
    """A snapshot that ended at `number`."""
    return SnapshotRow(digest(8, number), tier, number, complete)


def batch(number: int, size: int = CHUNKS) -> Changes:
    """What a run might write at once: rows in every table, none of them another batch's."""
    return Changes(
        chunks=[(digest(number, n), Location(number, n // 100, n, 50 + n)) for n in range(size)],
        segments=[(number, n, place(number, n)) for n in range(size // 100 + 1)],
        packs=[(number, pack_row(number))],
        recipes=[(digest(number, -1), (digest(number, -2), digest(number, -3)))],
        snapshots=[snapshot_row(number)],
        files=[file_row(b"data/%d/%d" % (number, n), number) for n in range(20)],
        pending_pages=[("01-second", digest(number, -4))],
    )


def holds(index: Index, number: int, size: int = CHUNKS) -> bool:
    """Whether all of a batch is in `index`; it must be all of it or nothing."""
    changes = batch(number, size)
    found = [
        *index.held([chunk for chunk, _ in changes.chunks]),
        index.locate(digest(number, 0)) == changes.chunks[0][1],
        index.segments_of(number) == [(n, at) for _, n, at in changes.segments],
        index.packs().get(number) == changes.packs[0][1],
        index.recipes_of(digest(number, -1)) == changes.recipes[0][1],
        changes.snapshots[0] in index.snapshots(),
        sorted(changes.files, key=lambda row: row.path)
        == list(index.files_below("npu", b"data/%d" % number)),
        changes.pending_pages[0][1] in index.pending_pages("01-second"),
    ]
    assert all(found) or not any(found), "a batch is there in part"
    return all(found)
