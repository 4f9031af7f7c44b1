"""Table `files`: source and path -> the newest entry there (docs/index.md).

A path that is too long for a key is cut (`indexes/keys.py`), and what the key has lost of it is in
the value.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from itertools import groupby

from cas.ids import Digest
from cas.interfaces import FileRow
from indexes.env import Environment
from indexes.keys import KEY_LIMIT, OWNER_SIZE, fitted, kept, owner_key
from indexes.view import Row, Update, View

TABLE = b"files"
VALUE = struct.Struct("<32sIH")  # page, number, size of the tier's name; that and the path's rest
PATH_LIMIT = KEY_LIMIT - OWNER_SIZE  # a shorter path is whole in its key
PATH_KEPT = kept(PATH_LIMIT)


def find(view: View, source: str, path: bytes) -> FileRow | None:
    """The newest entry at `path`, or None."""
    key = _key(source, path)
    value = view.get(TABLE, key)
    return None if value is None else _decode(source, (key, value))


def below(env: Environment, source: str, prefix: bytes) -> Iterator[FileRow]:
    """The newest entries at and below the directory `prefix`, in byte order of their paths."""
    owner = owner_key(source.encode())

    def decode(row: Row) -> FileRow:
        return _decode(source, row)

    if not prefix:
        yield from _in_order(env.rows(TABLE, decode, owner))
        return
    with env.read() as view:
        itself = find(view, source, prefix)
    if itself is not None:
        yield itself
    inside = prefix + b"/"
    for row in _in_order(env.rows(TABLE, decode, owner + inside[:PATH_KEPT])):
        if row.path.startswith(inside):
            yield row


def _in_order(rows: Iterator[FileRow]) -> Iterator[FileRow]:
    """`rows`, those that cut keys may have put in disorder set right."""
    for _, alike in groupby(rows, key=lambda row: row.path[:PATH_KEPT]):
        yield from sorted(alike, key=lambda row: row.path)


def put(update: Update, rows: Iterable[FileRow]) -> None:
    """Write `rows`, in place of older ones at the same paths."""
    update.put(TABLE, map(_row, rows))


def _row(row: FileRow) -> Row:
    tier = row.tier.encode()
    rest = row.path[PATH_KEPT:] if len(row.path) >= PATH_LIMIT else b""
    return _key(row.source, row.path), VALUE.pack(row.page, row.number, len(tier)) + tier + rest


def _key(source: str, path: bytes) -> bytes:
    return owner_key(source.encode()) + fitted(path, PATH_LIMIT)


def _decode(source: str, row: Row) -> FileRow:
    key, value = row
    page, number, tier_size = VALUE.unpack_from(value)
    tier = value[VALUE.size : VALUE.size + tier_size].decode()
    path = key[OWNER_SIZE:]
    if len(key) == KEY_LIMIT:
        path = path[:PATH_KEPT] + value[VALUE.size + tier_size :]
    return FileRow(source, path, tier, Digest(page), number)
