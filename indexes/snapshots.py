"""Tables `snapshots` and `pending`: the finished scans of each tier, and the pages of those that
have not finished (docs/index.md)."""

from __future__ import annotations

import struct
from collections.abc import Iterable

from cas.ids import DIGEST_SIZE, Digest
from cas.interfaces import SnapshotRow
from indexes.keys import tier_key
from indexes.view import Row, Update, View

SNAPSHOTS = b"snapshots"
KEY_END = struct.Struct(">Q32s")  # finished, id
PENDING = b"pending"
ARRIVAL = struct.Struct(">QI")  # transaction, place in it


def snapshots(view: View, tier: str | None) -> list[SnapshotRow]:
    """Snapshots of `tier`, or all, oldest first."""
    rows = view.scan(SNAPSHOTS, b"" if tier is None else tier_key(tier))
    return sorted((_decode(row) for row in rows), key=lambda row: (row.finished_ms, row.id))


def _decode(row: Row) -> SnapshotRow:
    key, value = row
    finished_ms, id_ = KEY_END.unpack(key[-KEY_END.size :])
    return SnapshotRow(Digest(id_), value[1:].decode(), finished_ms, value[0] > 0)


def put_snapshots(update: Update, rows: Iterable[SnapshotRow]) -> None:
    """Write `rows`, in place of older ones of the same snapshots."""
    update.put(SNAPSHOTS, map(_row, rows))


def _row(row: SnapshotRow) -> Row:
    key = tier_key(row.tier) + KEY_END.pack(row.finished_ms, row.id)
    return key, bytes([row.complete]) + row.tier.encode()


def forget(update: Update, rows: Iterable[SnapshotRow]) -> None:
    """Remove the rows of these snapshots."""
    for row in rows:
        update.delete(SNAPSHOTS, _row(row)[0])


def pending_pages(view: View, tier: str) -> list[Digest]:
    """The pages that wait for the end of a scan of `tier`, in order of arrival."""
    rows = sorted(view.scan(PENDING, tier_key(tier)), key=lambda row: row[1])
    return [Digest(key[-DIGEST_SIZE:]) for key, _ in rows]


def put_pending(update: Update, pages: Iterable[tuple[str, Digest]]) -> None:
    """Write `pages` (tier, page); one that waits already keeps its place."""
    arrived = enumerate(pages)
    rows = (
        (tier_key(tier) + page, ARRIVAL.pack(update.number, at)) for at, (tier, page) in arrived
    )
    update.put(PENDING, rows, replace=False)


def settle(update: Update, tiers: Iterable[str]) -> None:
    """Forget the pages that wait for `tiers`."""
    for tier in tiers:
        update.delete(PENDING, tier_key(tier))
