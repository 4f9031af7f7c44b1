"""What a tier has in the index: its newest snapshot, and the rows of one page."""

from __future__ import annotations

from cas.interfaces import Changes, FileRow, SnapshotRow
from cas.plan import Tier
from cas.pull.planner import PlannedPage
from cas.snapshot import Snapshot
from cas.store.store import Store


def newest(store: Store, tier: str) -> tuple[SnapshotRow | None, Snapshot | None]:
    """The newest snapshot of a tier, and its row; None if there is none."""
    rows = store.snapshots(tier)
    return (rows[-1], store.snapshot(rows[-1].id)) if rows else (None, None)


def page_rows(tier: Tier, page: PlannedPage, *, with_files: bool) -> Changes:
    """What the index is to know of a page."""
    changes = Changes(pending_pages=[(tier.name, page.id)])
    for row, entry in enumerate(page.entries):
        if with_files:
            changes.files.append(FileRow(tier.source, entry.path, tier.name, page.id, row))
        if entry.content is not None and entry.content.parts:
            changes.recipes.append((entry.content.digest, entry.content.parts))
    return changes
