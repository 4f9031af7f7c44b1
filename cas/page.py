"""A page: some hundred entries in path order, encoded by columns (docs/format.md, section 3).

Columns put like beside like: paths share prefixes, owners repeat, times lie close together, and
the digests, which nothing compresses, are one run. A page's id is the SHA-256 of its encoded form,
so unchanged pages are the same objects from snapshot to snapshot and need not be sent again.

Where a page ends depends on the path and size of its last entry alone (`Paginator`), so a change in
one place moves no other boundary.

The *chunk space* of a page is the concatenation of the chunk lists of its entries' contents, in
entry order; the far end is asked for chunks by their index in it.

Decoding goes column by column too, since a scan of a million names is read here. That only one
form is accepted is not tried by encoding again but follows from the checks: each column has just
the rows that the kinds and flags call for, a path shares all it can with the one before, owners
are numbered as they first come, and rows that say nothing are refused.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sized
from itertools import accumulate

from cas import wire
from cas.entry import (
    DEVICES,
    FLAGS,
    HOLE_DIGEST,
    IMPLIED,
    INCONSISTENT,
    NAME_LIMIT,
    PATH_LIMIT,
    UNREADABLE,
    Content,
    Entry,
    Kind,
    Owner,
    check_path,
)
from cas.errors import FormatError, LimitError
from cas.ids import DIGEST_SIZE, EMPTY_DIGEST, Digest, digest_of, split_digests
from cas.recipe import CHUNKS_LIMIT as RECIPE_CHUNKS
from cas.recipe import LENGTH_LIMIT, SIZE_LIMIT

MAGIC = b"CASg\x01"
PAGE_LIMIT = 8 * 2**20  # bytes, encoded; also of all its paths written out
ENTRIES_LIMIT = 4096
ENTRIES_LEAST = 64
CUT_MASK = 0x3FF  # one path in 1024 ends a page
CONTENT_CUT = 64 * 2**20  # bytes; one page for each, about: fetching them need not wait for long
BYTES_SOON = 512 * 1024  # a page of about this size ends whatever the path
CHUNKS_LIMIT = 2**32 - 1
PARTS_LIMIT = 2**16
XATTRS_LIMIT = 2**20  # bytes, all names and values of one entry
XATTR_NAME_LIMIT = 1024
TARGET_LIMIT = 65536
OWNER_LIMIT = 1024  # bytes, the name of a user or group
LINK_LIMIT = 64

Extra = tuple[bytes, tuple[tuple[bytes, bytes], ...], int]  # link, xattrs, flags
Parts = dict[int, tuple[Digest, ...]]

_NO_EXTRA: Extra = (b"", (), 0)
_KINDS = {int(kind): kind for kind in Kind}
_SLASH = ord("/")


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
        if full or self._cuts(zlib.crc32(entry.path), entry.size):
            self._count = self._size = 0
            return True
        return False

    def _cuts(self, crc: int, size: int) -> bool:
        """Whether the entry itself asks for an end: by chance, the more content the likelier."""
        by_path = crc & CUT_MASK == CUT_MASK
        return (by_path and self._count >= ENTRIES_LEAST) or crc < size * 2**32 // CONTENT_CUT


def _bulk(entry: Entry) -> int:
    parts = len(entry.content.parts) * DIGEST_SIZE if entry.content else 0
    return parts + len(entry.target) + sum(len(n) + len(v) for n, v in entry.xattrs)


def encode_page(entries: list[Entry]) -> bytes:
    """The one encoded form of a page of `entries`, which must be legal and in path order.

    Raises FormatError for what would be lost or read as something else; an illegal path, say,
    only the reader refuses.
    """
    owners: dict[Owner, int] = {}
    prefixes, suffixes, times = [], [], []
    owner_index, sizes, digests, counts, parts = [], [], [], [], []
    targets, devices, extras = [], [], []
    last_path, last_time = b"", 0
    for number, entry in enumerate(entries):
        _check_kept(entry)
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
        prefixes, suffixes, kinds, owner_rows, owner_index, _wrapped(times), sizes,
        b"".join(digests), counts, parts, targets, devices, extras,
    ]  # fmt: skip
    return MAGIC + wire.encode(fields)


def _check_kept(entry: Entry) -> None:
    content = entry.content
    if not wire.I64_MIN <= entry.mtime_ns <= wire.I64_MAX:
        raise FormatError("a time of more than 64 bits", where=repr(entry.path))
    if content is not None and content.size != entry.size:
        raise FormatError("a file and its content differ in size", where=repr(entry.path))
    if entry.kind is Kind.FILE and (content is None) != bool(entry.flags & UNREADABLE):
        raise FormatError(
            "a file without content must be marked unreadable, no other may be",
            where=repr(entry.path),
        )


def page_id(encoded: bytes) -> Digest:
    """The id of a page, from its encoded form."""
    return digest_of(encoded)


def _shared_prefix(one: bytes, other: bytes) -> int:
    """How many bytes both begin with: where, as numbers, their first difference lies."""
    size = min(len(one), len(other))
    differ = int.from_bytes(one[:size], "big") ^ int.from_bytes(other[:size], "big")
    return size - (differ.bit_length() + 7) // 8


def _wrapped(times: list[int]) -> list[int]:
    """`times` modulo 2^64, as signed numbers of 64 bits: two of them may lie further apart."""
    if times and (min(times) < wire.I64_MIN or max(times) > wire.I64_MAX):
        return [((time - wire.I64_MIN) & wire.U64) + wire.I64_MIN for time in times]
    return times


def decode_page(data: bytes) -> list[Entry]:
    """The entries of a page; raises FormatError (LimitError) unless it is wholly valid."""
    if data[: len(MAGIC)] != MAGIC:
        raise FormatError("not a page of this version", advice="a newer cas may have written it")
    body = wire.decode(memoryview(data)[len(MAGIC) :], limit=PAGE_LIMIT, what="page")
    (
        prefixes, suffixes, kind_bytes, owner_rows, owner_index, deltas, sizes, digests, counts,
        part_rows, targets, device_rows, extra_rows,
    ) = wire.as_list(body, "page", 13)  # fmt: skip
    paths = _decode_paths(prefixes, suffixes)
    kinds = _decode_kinds(kind_bytes, len(paths))
    owners = _decode_owners(owner_rows, owner_index, len(paths))
    times = _decode_times(deltas, len(paths))
    extras = _decode_extras(extra_rows, len(paths))
    parts = _decode_parts(part_rows, len(paths))
    contents = _decode_contents(kinds, extras, parts, (sizes, digests, counts))
    _check_implied(extras, kinds, times)
    symlinks = _decode_targets(targets, kinds)
    devices = _decode_devices(device_rows, kinds)
    entries = []
    for number, (path, kind, owner, time) in enumerate(
        zip(paths, kinds, owners, times, strict=True)
    ):
        size, content, target, device = 0, None, b"", None
        if kind is Kind.FILE:
            size, content = next(contents)
        elif kind is Kind.SYMLINK:
            target = next(symlinks)
        elif kind in DEVICES:
            device = next(devices)
        link, xattrs, flags = extras.get(number, _NO_EXTRA)
        entries.append(
            Entry(path, kind, owner, time, size, content, target, device, link, xattrs, flags)
        )
    return entries


def _decode_paths(prefixes: object, suffixes: object) -> list[bytes]:
    shares = wire.as_ints(prefixes, "prefixes", 0, PATH_LIMIT)
    ends = wire.as_blobs(suffixes, "paths", PATH_LIMIT)
    if not 1 <= len(shares) <= ENTRIES_LIMIT:
        raise LimitError(f"a page of {len(shares)} entries")
    _check_length(ends, len(shares))
    paths = []
    path, written = b"", 0
    for shared, end in zip(shares, ends, strict=True):
        path = _next_path(path, shared, end)
        written += len(path)
        if written > PAGE_LIMIT:
            raise LimitError("a page whose paths are over its limit")
        paths.append(path)
    if b"\0" in b"".join(ends):
        raise FormatError("a path has a zero byte")
    return paths


def _next_path(last: bytes, shared: int, end: bytes) -> bytes:
    """The path that shares its first `shared` bytes with `last` and goes on with `end`.

    Checked here: that it shares no less than it could, that it is later in path order, and that
    its parts are legal. The first two hang on the first byte that differs, with the slash before
    all others; of the parts, those that end within the shared bytes were checked with `last`.
    """
    if shared < len(last):
        before, after = last[shared], end[0] if end else _SLASH
        if after == _SLASH or after <= before != _SLASH:
            raise FormatError("a page's paths are out of order, or share less than they could")
    elif shared > len(last) or not end:
        raise FormatError("a page's path shares more than there is, or comes twice")
    path = last[:shared] + end
    if len(path) > PATH_LIMIT:
        raise LimitError(f"a path of {len(path)} bytes is over the limit of {PATH_LIMIT}")
    start = path.rfind(b"/", 0, shared) + 1
    # One part of three bytes or more is neither empty nor one dot or two.
    if b"/" in end or not 2 < len(path) - start <= NAME_LIMIT:
        check_path(path[start:])
    return path


def _decode_kinds(value: object, count: int) -> list[Kind]:
    kinds = wire.as_bytes(value, "kinds", ENTRIES_LIMIT)
    _check_length(kinds, count)
    try:
        return [_KINDS[kind] for kind in kinds]
    except KeyError as error:
        raise FormatError(f"unknown kind {error} of an entry", advice="use a newer cas") from None


def _decode_owners(rows: object, index: object, count: int) -> list[Owner]:
    owners = [_decode_owner(row) for row in wire.as_list(rows, "owners")]
    numbers = wire.as_ints(index, "owner", 0, max(len(owners) - 1, 0))
    _check_length(numbers, count)
    if list(dict.fromkeys(numbers)) != list(range(len(owners))) or len(set(owners)) != len(owners):
        raise FormatError("a page's owners are not those of its entries, as they first come")
    return [owners[number] for number in numbers]


def _decode_owner(row: object) -> Owner:
    mode, uid, gid, user, group = wire.as_list(row, "owner", 5)
    return Owner(
        wire.as_int(mode, "mode", 0, 0o7777),
        wire.as_int(uid, "uid", 0, wire.U32),
        wire.as_int(gid, "gid", 0, wire.U32),
        wire.as_name(user, "user", OWNER_LIMIT),
        wire.as_name(group, "group", OWNER_LIMIT),
    )


def _decode_times(value: object, count: int) -> list[int]:
    deltas = wire.as_ints(value, "times", wire.I64_MIN, wire.I64_MAX)
    _check_length(deltas, count)
    return _wrapped(list(accumulate(deltas)))


def _decode_extras(value: object, count: int) -> dict[int, Extra]:
    extras = {}
    last = -1
    for row in wire.as_list(value, "extras"):
        number, link, xattrs, flags = wire.as_list(row, "extra", 4)
        last = wire.as_int(number, "entry number", last + 1, count - 1)
        extra = (
            wire.as_bytes(link, "link", LINK_LIMIT),
            _decode_xattrs(xattrs),
            wire.as_int(flags, "flags", 0, FLAGS),
        )
        if extra == _NO_EXTRA:
            raise FormatError("an extra that says nothing must be left out")
        extras[last] = extra
    return extras


def _decode_xattrs(value: object) -> tuple[tuple[bytes, bytes], ...]:
    xattrs = []
    last, size = b"", 0
    for row in wire.as_list(value, "xattrs"):
        name, data = wire.as_list(row, "xattr", 2)
        name = wire.as_name(name, "xattr name", XATTR_NAME_LIMIT)
        if name <= last:
            raise FormatError("xattrs must have names, each once, in byte order")
        data = wire.as_bytes(data, "xattr", XATTRS_LIMIT)
        size += len(name) + len(data)
        xattrs.append((name, data))
        last = name
    if size > XATTRS_LIMIT:
        raise LimitError(f"xattrs of {size} bytes are over the limit of {XATTRS_LIMIT}")
    return tuple(xattrs)


def _decode_parts(value: object, count: int) -> Parts:
    parts: Parts = {}
    last = -1
    for row in wire.as_list(value, "parts"):
        number, blob = wire.as_list(row, "parts", 2)
        last = wire.as_int(number, "entry number", last + 1, count - 1)
        parts[last] = tuple(split_digests(wire.as_bytes(blob, "ids", PARTS_LIMIT * DIGEST_SIZE)))
        if not parts[last]:
            raise FormatError("an empty list of parts must be left out")
    return parts


def _decode_contents(
    kinds: list[Kind], extras: dict[int, Extra], parts: Parts, columns: tuple[object, ...]
) -> Iterator[tuple[int, Content | None]]:
    """Size and content of each file, in order, from the columns sizes, digests and counts."""
    files = [number for number, kind in enumerate(kinds) if kind is Kind.FILE]
    readable = [number for number in files if not extras.get(number, _NO_EXTRA)[2] & UNREADABLE]
    sizes = wire.as_ints(columns[0], "sizes", 0, SIZE_LIMIT)
    digests = split_digests(wire.as_bytes(columns[1], "digests", ENTRIES_LIMIT * DIGEST_SIZE))
    counts = wire.as_ints(columns[2], "chunk counts", 0, CHUNKS_LIMIT)
    _check_length(sizes, len(files))
    _check_length(digests, len(readable))
    _check_length(counts, len(readable))
    size_of = dict(zip(files, sizes, strict=True))
    contents = {
        number: _content(size_of[number], digest, count, parts.get(number, ()))
        for number, digest, count in zip(readable, digests, counts, strict=True)
    }
    _check_claims(contents, extras, parts)
    return ((size, contents.get(number)) for number, size in size_of.items())


def _content(size: int, digest: Digest, count: int, parts: tuple[Digest, ...]) -> Content:
    if parts:
        if not size or count > len(parts) * RECIPE_CHUNKS:
            raise FormatError("a content does not fit its recipes")
    elif count != (1 if size else 0) or size > LENGTH_LIMIT:
        raise FormatError("a content without recipes must be one chunk, or empty")
    elif not size and digest != EMPTY_DIGEST:
        raise FormatError("an empty content has the digest of another")
    return Content(size, digest, count, parts)


def _check_claims(contents: dict[int, Content], extras: dict[int, Extra], parts: Parts) -> None:
    """Raise if parts or flags are given for what has no content to go with them."""
    if not contents.keys() >= parts.keys():
        raise FormatError("parts of an entry without content")
    for number, (_, _, flags) in extras.items():
        if flags & INCONSISTENT and number not in contents:
            raise FormatError("an entry without content is marked inconsistent")
        if flags & HOLE_DIGEST and number not in parts:
            raise FormatError("an entry without recipes has the digest of one")


def _check_implied(extras: dict[int, Extra], kinds: list[Kind], times: list[int]) -> None:
    for number, (_, _, flags) in extras.items():
        if flags & IMPLIED and (kinds[number] is not Kind.DIRECTORY or times[number]):
            raise FormatError("only a directory without a time may be marked implied")


def _decode_targets(value: object, kinds: list[Kind]) -> Iterator[bytes]:
    targets = wire.as_blobs(value, "targets", TARGET_LIMIT)
    _check_length(targets, kinds.count(Kind.SYMLINK))
    if any(not target or b"\0" in target for target in targets):
        raise FormatError("a symlink's target is empty or has a zero byte")
    return iter(targets)


def _decode_devices(value: object, kinds: list[Kind]) -> Iterator[tuple[int, int]]:
    rows = wire.as_list(value, "devices", sum(map(kinds.count, DEVICES)))
    numbers = [wire.as_ints(wire.as_list(row, "device", 2), "device", 0, wire.U32) for row in rows]
    return ((major, minor) for major, minor in numbers)


def _check_length(column: Sized, count: int) -> None:
    if len(column) != count:
        raise FormatError(f"a page's column has {len(column)} rows instead of {count}")
