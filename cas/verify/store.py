"""Verifies a store, and lets what is damaged in it be fetched again.

Damage is repaired by forgetting: the index no longer says that a damaged chunk is held, so the next
sync wants it as it would any other; where a second copy was met, the index is told of that one
instead. Nothing that can still be read is removed. Packs whose bytes have changed get the name
that fits them, so that what is new damage can be told from what is known.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace

from cas.interfaces import Changes, SnapshotRow
from cas.store.durable import sync_directory
from cas.store.packfile import disk_error
from cas.store.store import Store
from cas.verify.packs import Progress, check_packs
from cas.verify.report import SnapshotCheck, StoreReport
from cas.verify.snapshots import check_snapshots

SET_ASIDE = "damaged"  # directory in the store, of snapshots that cannot be read


@dataclass(frozen=True, slots=True)
class Repair:
    """What a repair did: chunks that will be fetched again, and chunks found elsewhere; snapshots
    that are no longer called complete, and those that were set aside."""

    forgotten: int
    relocated: int
    incomplete: int
    set_aside: int


def verify_store(store: Store, progress: Progress) -> StoreReport:
    """Read, decode and hash all that the store holds. Readers and one writer may go on meanwhile.

    `progress` is told of bytes read and packs done. Raises StoreError, DamageError if the index
    cannot be read."""
    packs = check_packs(store, progress)
    snapshots = list(check_snapshots(store, packs.lost))
    known = {row.id.hex() for row in store.snapshots()}
    files = {path.name for path in store.layout.snapshots.iterdir()}
    return StoreReport(packs, snapshots, len(files - known))


def repair_store(store: Store, report: StoreReport) -> Repair:
    """Make the index say what `report` found; the caller is the one writer, and nobody wrote since.

    Durable on return. Raises StoreError."""
    lost = report.packs.lost
    elsewhere = [(id_, at) for id_, at in lost.items() if at is not None]
    broken = [check.row for check in report.snapshots if check.lost]
    promised = [_incomplete(check) for check in report.snapshots if _says_too_much(check)]
    changes = Changes(
        chunks=elsewhere,
        packs=[(number, row) for number, row, _ in report.packs.renamed],
        snapshots=promised,
        forgotten_chunks=list(lost),
        forgotten_snapshots=broken,
    )
    _rename_packs(store, report)
    if changes:
        store.index.commit(changes)
    for row in broken:
        _set_aside(store, row)
    store.reader.close()
    return Repair(len(lost) - len(elsewhere), len(elsewhere), len(promised), len(broken))


def _says_too_much(check: SnapshotCheck) -> bool:
    return check.row.complete and not check.whole and not check.lost


def _incomplete(check: SnapshotCheck) -> SnapshotRow:
    return replace(check.row, complete=False)


def _rename_packs(store: Store, report: StoreReport) -> None:
    """Name packs by what they are now. Killed in between, they are still found by their ids."""
    for _, row, old_name in report.packs.renamed:
        with contextlib.suppress(FileNotFoundError), _disk(store):
            os.rename(store.layout.packs / old_name, store.layout.packs / row.name)
    if report.packs.renamed:
        with _disk(store):
            sync_directory(store.layout.packs)


def _set_aside(store: Store, row: SnapshotRow) -> None:
    """Keep what is left of a snapshot's file out of the way of those that can be read."""
    path = store.layout.snapshots / row.id.hex()
    if path.exists():
        with _disk(store):
            aside = store.layout.root / SET_ASIDE
            aside.mkdir(exist_ok=True)
            os.rename(path, aside / path.name)
            sync_directory(aside)
            sync_directory(store.layout.snapshots)


@contextlib.contextmanager
def _disk(store: Store) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError:
        raise
    except OSError as error:
        raise disk_error(error, store.layout.root) from error
