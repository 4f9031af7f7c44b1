"""Which files of which snapshots are whole, given the chunks that are lost."""

from __future__ import annotations

from collections.abc import Container, Iterator

from cas.entry import Content, Entry
from cas.errors import CasError, DamageError, FormatError, NotHeldError
from cas.ids import Digest
from cas.interfaces import SnapshotRow
from cas.snapshot import PageRef
from cas.store.store import Store
from cas.verify.report import SnapshotCheck

ASKED_AT_ONCE = 4096  # chunks
DAMAGED = "its content is damaged"
MISSING = "its content has not all come"


def check_snapshots(store: Store, lost: Container[Digest]) -> Iterator[SnapshotCheck]:
    """Look every snapshot through, the oldest first. A page that was found whole is not looked at
    again."""
    rows = store.snapshots()
    newest = {row.tier: row.id for row in rows}
    whole: dict[Digest, int] = {}
    for row in rows:
        yield _check(store, row, newest[row.tier] == row.id, lost, whole)


def _check(
    store: Store, row: SnapshotRow, newest: bool, lost: Container[Digest], whole: dict[Digest, int]
) -> SnapshotCheck:
    check = SnapshotCheck(row, newest)
    try:
        snapshot = store.snapshot(row.id)
    except (NotHeldError, DamageError, FormatError):
        check.lost = True
        return check
    for ref in snapshot.pages:
        if ref.id in whole:
            check.files += whole[ref.id]
            continue
        before = (check.damaged, check.missing, check.pages_lost, check.files)
        _page(store, ref, check, lost)
        if (check.damaged, check.missing, check.pages_lost) == before[:3]:
            whole[ref.id] = check.files - before[3]
    return check


def _page(store: Store, ref: PageRef, check: SnapshotCheck, lost: Container[Digest]) -> None:
    try:
        entries = store.page(ref.id)
    except (NotHeldError, DamageError):
        check.pages_lost += 1
        check.note(ref.first, f"{ref.entries} names from here on cannot be read")
        return
    held = _held_singles(store, entries)
    for entry in entries:
        content = entry.content
        if content is None:
            continue
        check.files += 1
        reason = _trouble(store, content, held, lost)
        if reason:
            check.damaged += reason is DAMAGED
            check.missing += reason is MISSING
            check.note(entry.path, reason)


def _held_singles(store: Store, entries: list[Entry]) -> set[Digest]:
    """Of the contents of one chunk, those that are held."""
    contents = [entry.content for entry in entries if entry.content is not None]
    ids = [content.digest for content in contents if content.size and not content.parts]
    return {id_ for id_, here in zip(ids, store.index.held(ids), strict=True) if here}


def _trouble(store: Store, content: Content, held: set[Digest], lost: Container[Digest]) -> str:
    """What is wrong with a content; empty if nothing is."""
    if not content.parts:
        if content.digest in lost:
            return DAMAGED
        return "" if not content.size or content.digest in held else MISSING
    missing = False
    for part in content.parts:
        if part in lost:
            return DAMAGED
        try:
            ids = store.recipe(part).ids
        except NotHeldError:
            missing = True
            continue
        except CasError:
            return DAMAGED
        if any(id_ in lost for id_ in ids):
            return DAMAGED
        for at in range(0, len(ids), ASKED_AT_ONCE):
            missing = missing or not all(store.index.held(ids[at : at + ASKED_AT_ONCE]))
    return MISSING if missing else ""
