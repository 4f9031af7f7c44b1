"""A new index for a store, from its packs and snapshots, put in the place of the old one.

The new one is made beside the old and takes its place only when it is whole; the old is kept as
`index.old-<time>`, since whoever needs this wants nothing else to be lost.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from cas.errors import CasError, DamageError
from cas.ids import Digest, parse_digest
from cas.interfaces import Changes, PackRow
from cas.pack import HEADER_SIZE, Record, decode_header, read_records
from cas.snapshot import Snapshot
from cas.store.durable import sync_directory
from cas.store.layout import OPEN_PREFIX, Layout
from cas.store.store import Store
from cas.store.writer import now_ms
from indexes.index import LmdbIndex
from indexes.rebuild import PackRecords, rebuild


@dataclass(slots=True)
class Remade:
    """What a new index has: chunks are counted with pages and recipes. `problems` are (where,
    why) of what could not be used."""

    packs: int = 0
    chunks: int = 0
    snapshots: int = 0
    complete: int = 0
    problems: list[tuple[str, str]] = field(default_factory=list)


def remake_index(layout: Layout) -> Remade:
    """Make the index of the store at `layout` anew; the caller holds the writer's lock.

    Durable on return. What is damaged is reported, and the rest is in. Raises StoreError.
    """
    fresh = layout.index.with_name("index.new")
    _discard(fresh)
    remade = Remade()
    index = LmdbIndex(fresh, create=True)
    store = Store(layout.root, index)
    try:

        def report(where: str, error: CasError) -> None:
            remade.problems.append((where, str(error)))

        snapshots = list(_snapshots(store, remade))
        for changes in rebuild(_packs(layout, remade), snapshots, store.reader.object, report):
            index.commit(changes)
        _find_complete(store, remade)
        remade.chunks = sum(1 for _ in index.chunks())
    finally:
        store.close()
    if layout.index.exists():
        os.rename(layout.index, layout.index.with_name(f"index.old-{now_ms()}"))
    os.rename(fresh, layout.index)
    sync_directory(layout.root)
    return remade


def _packs(layout: Layout, remade: Remade) -> Iterator[PackRecords]:
    for number, path in enumerate(sorted(layout.packs.iterdir()), start=1):
        try:
            with path.open("rb") as file:
                pack_id = decode_header(file.read(HEADER_SIZE))
        except (CasError, OSError) as error:
            remade.problems.append((str(path), str(error)))
            continue
        remade.packs += 1
        sealed = not path.name.startswith(OPEN_PREFIX)
        row = PackRow(pack_id, path.name, path.stat().st_size, sealed)
        yield number, row, _records(path)


def _records(path: Path) -> Iterator[Record]:
    with path.open("rb") as file:
        fd = file.fileno()

        def read(size: int, offset: int) -> bytes:
            return os.pread(fd, size, offset)

        records = read_records(read, os.fstat(fd).st_size)
        if not path.name.startswith(OPEN_PREFIX):
            yield from records
            return
        # Its writer may have been killed: what is torn at its end was never acknowledged, and the
        # next writer cuts it off.
        with contextlib.suppress(DamageError):
            yield from records


def _snapshots(store: Store, remade: Remade) -> Iterator[tuple[Digest, Snapshot]]:
    for path in sorted(store.layout.snapshots.iterdir()):
        snapshot = _snapshot(store, path, remade)
        if snapshot is not None:
            yield snapshot


def _snapshot(store: Store, path: Path, remade: Remade) -> tuple[Digest, Snapshot] | None:
    try:
        id_ = parse_digest(path.name)
        return id_, store.snapshot(id_)
    except CasError as error:
        remade.problems.append((str(path), str(error)))
        return None


def _find_complete(store: Store, remade: Remade) -> None:
    for row in store.snapshots():
        remade.snapshots += 1
        try:
            missing = store.held(store.snapshot(row.id)).missing_chunks
        except CasError as error:
            remade.problems.append((row.tier, str(error)))
            continue
        if not missing:
            remade.complete += 1
            store.index.commit(Changes(snapshots=[replace(row, complete=True)]))


def _discard(index: Path) -> None:
    """Remove what an interrupted attempt left."""
    if index.exists():
        for path in index.iterdir():
            path.unlink()
        index.rmdir()
