"""A page: some hundred entries in path order, encoded by columns (docs/format.md, section 3).

Columns put like beside like: paths share prefixes, owners repeat, times lie close together, and
the digests, which nothing compresses, are one run. A page's id is the SHA-256 of its encoded form,
so unchanged pages are the same objects from snapshot to snapshot and need not be sent again.

Where a page ends depends on the path of its last entry alone (`Paginator`), so a change in one
place moves no other boundary.

The *chunk space* of a page is the concatenation of the chunk lists of its entries' contents, in
entry order; the far end is asked for chunks by their index in it.
"""

from __future__ import annotations

import zlib
from itertools import pairwise

from cas import wire
from cas.entry import (
    DEVICES,
    FLAGS,
    PATH_LIMIT,
    UNREADABLE,
    Content,
    Entry,
    Kind,
    Owner,
    check_path,
    path_order,
)
from cas.errors import FormatError, LimitError
from cas.ids import DIGEST_SIZE, Digest, digest_of, split_digests
from cas.recipe import SIZE_LIMIT

MAGIC = b"CASg\x01"
PAGE_LIMIT = 8 * 2**20  # bytes, encoded
ENTRIES_LIMIT = 4096
ENTRIES_LEAST = 64
CUT_MASK = 0x3FF  # one path in 1024 ends a page
BYTES_SOON = 512 * 1024  # a page of about this size ends whatever the path
CHUNKS_LIMIT = 2**32 - 1
PARTS_LIMIT = 2**16
XATTRS_LIMIT = 2**20  # bytes, of one entry
TARGET_LIMIT = 65536
NAME_LIMIT = 1024  # of a user or group
LINK_LIMIT = 64


class Paginator:
    """Says where pages end. Deterministic: the same entries always give the same pages."""

    def __init__(self) -> None:
        self._count = 0
        self._size = 0

    def ends_after(self, entry: Entry) -> bool:
        """Whether `entry` is the last of its page; call for each entry in order."""
        self._count += 1
        self._size += 64 + len(entry.path)
        if entry.xattrs or entry.target or entry.content:
            self._size += _bulk(entry)
        full = self._count >= ENTRIES_LIMIT or self._size >= BYTES_SOON
        if full or (self._count >= ENTRIES_LEAST and zlib.crc32(entry.path) & CUT_MASK == CUT_MASK):
            self._count = self._size = 0
            return True
        return False


def _bulk(entry: Entry) -> int:
    parts = len(entry.content.parts) * DIGEST_SIZE if entry.content else 0
    return parts + len(entry.target) + sum(len(n) + len(v) for n, v in entry.xattrs)


def encode_page(entries: list[Entry]) -> bytes:
    """The one encoded form of a page of `entries`, which must be in path order."""
    owners: dict[Owner, int] = {}
    prefixes, suffixes, times = [], [], []
    owner_index, sizes, digests, counts, parts = [], [], [], [], []
    targets, devices, extras = [], [], []
    last_path, last_time = b"", 0
    for number, entry in enumerate(entries):
        shared = _shared_prefix(last_path, entry.path)
        prefixes.append(shared)
        suffixes.append(entry.path[shared:])
        owner_index.append(owners.setdefault(entry.owner, len(owners)))
        times.append(entry.mtime_ns - last_time)
        last_path, last_time = entry.path, entry.mtime_ns
        if entry.kind is Kind.FILE:
            sizes.append(entry.size)
            content = entry.content
            if content is not None:
                digests.append(content.digest)
                counts.append(content.chunk_count)
                if content.parts:
                    parts.append([number, b"".join(content.parts)])
        elif entry.kind is Kind.SYMLINK:
            targets.append(entry.target)
        elif entry.kind in DEVICES:
            devices.append(list(entry.device or (0, 0)))
        if entry.link or entry.xattrs or entry.flags:
            extras.append([number, entry.link, [list(x) for x in entry.xattrs], entry.flags])
    kinds = bytes([entry.kind for entry in entries])
    owner_rows = [[o.mode, o.uid, o.gid, o.user, o.group] for o in owners]
    fields = [
        prefixes, suffixes, kinds, owner_rows, owner_index, times, sizes, b"".join(digests),
        counts, parts, targets, devices, extras,
    ]  # fmt: skip
    return MAGIC + wire.encode(fields)


def page_id(encoded: bytes) -> Digest:
    """The id of a page, from its encoded form."""
    return digest_of(encoded)


def _shared_prefix(one: bytes, other: bytes) -> int:
    if other.startswith(one):
        return len(one)
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[:middle] == other[:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def decode_page(data: bytes) -> list[Entry]:
    """The entries of a page; raises FormatError (LimitError) unless it is wholly valid."""
    if data[: len(MAGIC)] != MAGIC:
        raise FormatError("not a page of this version", advice="a newer cas may have written it")
    body = wire.decode(memoryview(data)[len(MAGIC) :], limit=PAGE_LIMIT, what="page")
    columns = wire.as_list(body, "page", 13)
    try:
        entries = _Columns(columns).entries()
    except (IndexError, ValueError, TypeError) as error:
        raise FormatError(f"a page's columns do not fit: {error}") from error
    if any(path_order(a.path) >= path_order(b.path) for a, b in pairwise(entries)):
        raise FormatError("a page's entries are not in path order")
    # What the columns leave open (an unused owner, say) must not give two forms of one page.
    if encode_page(entries) != data:
        raise FormatError("a page is not in its one accepted form")
    return entries


class _Columns:
    """Reads the columns of one page, row by row."""

    def __init__(self, columns: list[object]) -> None:
        (
            prefixes, suffixes, kinds, owners, owner_index, times, sizes, digests,
            counts, parts, targets, devices, extras,
        ) = columns  # fmt: skip
        self.prefixes = wire.as_ints(prefixes, "prefixes", 0, PATH_LIMIT)
        if not 1 <= len(self.prefixes) <= ENTRIES_LIMIT:
            raise LimitError(f"a page of {len(self.prefixes)} entries")
        self.suffixes = wire.as_list(suffixes, "suffixes", len(self.prefixes))
        self.kinds = wire.as_bytes(kinds, "kinds", ENTRIES_LIMIT)
        self.owners = [_decode_owner(row) for row in wire.as_list(owners, "owners")]
        self.owner_index = wire.as_ints(owner_index, "owner", 0, ENTRIES_LIMIT)
        self.times = wire.as_ints(times, "times", wire.I64_MIN, wire.I64_MAX)
        self.sizes = iter(wire.as_ints(sizes, "sizes", 0, SIZE_LIMIT))
        self.digests = iter(split_digests(wire.as_bytes(digests, "digests", PAGE_LIMIT)))
        self.counts = iter(wire.as_ints(counts, "chunk counts", 0, CHUNKS_LIMIT))
        self.parts = dict(_decode_parts(row) for row in wire.as_list(parts, "parts"))
        self.targets = iter(wire.as_list(targets, "targets"))
        self.devices = iter(wire.as_list(devices, "devices"))
        self.extras = dict(_decode_extra(row) for row in wire.as_list(extras, "extras"))

    def entries(self) -> list[Entry]:
        if not len(self.kinds) == len(self.owner_index) == len(self.times) == len(self.prefixes):
            raise FormatError("a page's columns differ in length")
        rows, path, time = [], b"", 0
        for number, shared in enumerate(self.prefixes):
            suffix = wire.as_bytes(self.suffixes[number], "path", PATH_LIMIT)
            if shared > len(path):
                raise FormatError("a path shares more than there is")
            path = check_path(path[:shared] + suffix)
            time += self.times[number]
            rows.append(self._row(number, path, time))
        for column in (self.sizes, self.digests, self.counts, self.targets, self.devices):
            if next(column, None) is not None:
                raise FormatError("a page's column has rows left over")
        return rows

    def _row(self, number: int, path: bytes, mtime_ns: int) -> Entry:
        kind = Kind(self.kinds[number])
        link, xattrs, flags = self.extras.get(number, (b"", (), 0))
        owner = self.owners[self.owner_index[number]]
        size, content, target, device = 0, None, b"", None
        if kind is Kind.FILE:
            size = _next_int(self.sizes)
            if not flags & UNREADABLE:
                parts = self.parts.get(number, ())
                content = Content(size, _next_digest(self.digests), _next_int(self.counts), parts)
                _check_content(content)
        elif kind is Kind.SYMLINK:
            target = wire.as_bytes(next(self.targets, None), "target", TARGET_LIMIT)
        elif kind in DEVICES:
            major, minor = wire.as_ints(next(self.devices, None), "device", 0, wire.U32)
            device = (major, minor)
        wire.as_int(mtime_ns, "mtime", wire.I64_MIN, wire.I64_MAX)
        return Entry(
            path, kind, owner, mtime_ns, size, content, target, device, link, xattrs, flags
        )


def _next_int(column: object) -> int:
    return wire.as_int(next(column, None), "column")  # type: ignore[call-overload]  # an iterator


def _next_digest(column: object) -> Digest:
    digest: Digest | None = next(column, None)  # type: ignore[call-overload]  # an iterator
    if digest is None:
        raise FormatError("a page has too few digests")
    return digest


def _check_content(content: Content) -> None:
    if content.parts:
        return
    if content.chunk_count != (1 if content.size else 0):
        raise FormatError("a content without recipes must be one chunk, or empty")


def _decode_owner(row: object) -> Owner:
    mode, uid, gid, user, group = wire.as_list(row, "owner", 5)
    return Owner(
        wire.as_int(mode, "mode", 0, 0o7777),
        wire.as_int(uid, "uid", 0, wire.U32),
        wire.as_int(gid, "gid", 0, wire.U32),
        wire.as_bytes(user, "user", NAME_LIMIT),
        wire.as_bytes(group, "group", NAME_LIMIT),
    )


def _decode_parts(row: object) -> tuple[int, tuple[Digest, ...]]:
    number, blob = wire.as_list(row, "parts", 2)
    ids = split_digests(wire.as_bytes(blob, "part ids", PARTS_LIMIT * DIGEST_SIZE))
    if not ids:
        raise FormatError("an empty list of parts must be left out")
    return wire.as_int(number, "entry number"), tuple(ids)


def _decode_extra(row: object) -> tuple[int, tuple[bytes, tuple[tuple[bytes, bytes], ...], int]]:
    number, link, rows, flags = wire.as_list(row, "extra", 4)
    xattrs = []
    for name, value in (wire.as_list(x, "xattr", 2) for x in wire.as_list(rows, "xattrs")):
        xattrs.append(
            (
                wire.as_bytes(name, "xattr name", 1024),
                wire.as_bytes(value, "xattr value", XATTRS_LIMIT),
            )
        )
    if xattrs != sorted(set(xattrs)):
        raise FormatError("xattrs must be sorted")
    flags = wire.as_int(flags, "flags", 0, FLAGS)
    return wire.as_int(number, "entry number"), (
        wire.as_bytes(link, "link", LINK_LIMIT),
        tuple(xattrs),
        flags,
    )
