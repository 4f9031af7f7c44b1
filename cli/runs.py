"""The records that runs left in the store, `runs/<run id>.json` (`cli/run.py` writes them).

They are for people and reports; what is in them is shown, and nothing is done because of it. A run
that was killed has left no record, but perhaps a snapshot, and segments that name it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cas.errors import CasError
from cas.pack import ID_SIZE
from cas.store.layout import Layout
from cas.store.store import Store

RECORD_LIMIT = 16 * 2**20  # bytes
SUFFIX = ".json"

Record = Mapping[str, Any]


def recorded(store: Store) -> dict[bytes, Path]:
    """The runs that have a record, and where that is."""
    return recorded_in(store.layout)


def recorded_in(layout: Layout) -> dict[bytes, Path]:
    """The same of a store that is not open, or is none."""
    found = {}
    try:
        names = sorted(os.listdir(layout.runs))
    except FileNotFoundError:
        return {}
    for name in names:
        run = _run_id(name.removesuffix(SUFFIX))
        if run is not None and name.endswith(SUFFIX):
            found[run] = layout.runs / name
    return found


def running(store: Store) -> dict[bytes, Record]:
    """The run that goes on now, if there is one, and what it says of itself."""
    from cas.pull.record import running as find_running

    found = find_running(store.layout)
    run = None if found is None else _run_id(found.run)
    return {} if found is None or run is None else {run: found.fields}


def snapshots_of_runs(store: Store) -> dict[bytes, list[tuple[str, int]]]:
    """The snapshots that each run made: tier, and when it was finished. One that cannot be read is
    left out."""
    found: dict[bytes, list[tuple[str, int]]] = {}
    for row in store.snapshots():
        try:
            run = store.snapshot(row.id).run
        except CasError:
            continue
        found.setdefault(run, []).append((row.tier, row.finished_ms))
    return found


def known(store: Store, digits: str = "") -> list[bytes]:
    """The ids of runs that begin with these hex digits, by their records and snapshots."""
    runs = {*recorded(store), *running(store), *snapshots_of_runs(store)}
    return sorted(run for run in runs if run.hex().startswith(digits))


def read(path: Path) -> Record:
    """What a record says; nothing if it cannot be read as one."""
    try:
        with path.open("rb") as file:
            fields = json.loads(file.read(RECORD_LIMIT))
    except (OSError, ValueError, RecursionError):
        return {}
    return fields if isinstance(fields, dict) else {}


def _run_id(text: str) -> bytes | None:
    try:
        run = bytes.fromhex(text)
    except ValueError:
        return None
    return run if len(run) == ID_SIZE and run.hex() == text else None
