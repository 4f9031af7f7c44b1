"""Entries of the tiers and paths that a command line names.

A tier is its newest snapshot, unless an older one is named: `TIER@1` is the first that is held,
`TIER@-2` the one before the newest, `TIER@2026-11-30` what was newest at the end of that day.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from cas.entry import Entry
from cas.errors import NotHeldError, UsageError
from cas.interfaces import SnapshotRow
from cas.plan import did_you_mean
from cas.restore.select import without_prefix
from cas.snapshot import Snapshot
from cas.store.store import Store
from cli import output
from cli.options import Target

MOMENTS = (
    ("%Y-%m-%d", timedelta(days=1)),
    ("%Y-%m-%d %H:%M", timedelta(minutes=1)),
    ("%Y-%m-%d %H:%M:%S", timedelta(seconds=1)),
)
LIST_THEM = "`cas log --snapshots` lists them"


@dataclass(frozen=True, slots=True)
class Selected:
    """What one target means: entries at and below a path of a snapshot."""

    store: Store
    snapshot: Snapshot
    path: bytes

    def entries(self) -> Iterator[Entry]:
        """The entries under their full paths."""
        return self.store.below(self.snapshot, self.path)

    def shortened(self) -> Iterator[Entry]:
        """The entries as a user wants them written: all of a tier under full paths, a part of it
        under its own last name (`/home/u/llm` as `llm`)."""
        return without_prefix(self.entries(), self.path.rpartition(b"/")[0])

    def size(self) -> int:
        """Bytes of content, duplicates included."""
        if not self.path:
            return self.snapshot.logical
        return sum(entry.size for entry in self.entries() if entry.content is not None)


def select(store: Store, targets: Sequence[Target]) -> list[Selected]:
    """What each target means. Raises NotHeldError if one names nothing."""
    return [_select(store, target) for target in targets]


def _select(store: Store, target: Target) -> Selected:
    selected = Selected(store, snapshot_of(store, target.tier), target.path)
    if target.path and next(selected.entries(), None) is None:
        raise no_such_name(target)
    return selected


def snapshot_of(store: Store, text: str) -> Snapshot:
    """The snapshot that `TIER` or `TIER@WHICH` names. Raises NotHeldError, with a guess at what was
    meant; UsageError for a WHICH that says nothing."""
    known = store.tiers()
    tier, at, which = text.rpartition("@")
    if text not in known and at and tier in known:
        rows = store.snapshots(tier)
        return store.snapshot(rows[pick(rows, which, tier)].id)
    if text not in known:
        raise NotHeldError(
            "no snapshot of this tier is held", where=text, advice=did_you_mean(text, known)
        )
    return store.latest(text)[1]


def pick(rows: Sequence[SnapshotRow], which: str, tier: str) -> int:
    """The place among a tier's snapshots, oldest first, of the one that `which` names: a number
    from 1, from the end where it is negative, or the newest at a date and time, in the user's time
    zone. Raises NotHeldError, UsageError."""
    where = f"{tier}@{which}"
    if re.fullmatch("-?[1-9][0-9]{0,8}", which):
        number = int(which)
        place = number - 1 if number > 0 else len(rows) + number
        if not 0 <= place < len(rows):
            held = output.plural(len(rows), "snapshot")
            raise NotHeldError(f"{held} of this tier are held", where=where, advice=LIST_THEM)
        return place
    before_ms = _end_ms(which, where)
    place = sum(row.finished_ms < before_ms for row in rows) - 1
    if place < 0:
        raise NotHeldError("no snapshot is as old as that", where=where, advice=LIST_THEM)
    return place


def _end_ms(which: str, where: str) -> float:
    """The end of the day, minute or second that `which` names, in ms since 1970."""
    for form, unit in MOMENTS:
        try:
            named = datetime.strptime(which.replace("T", " "), form)  # noqa: DTZ007  # local time
        except ValueError:
            continue
        return (named + unit).astimezone().timestamp() * 1000
    raise UsageError(
        "no snapshot is named so",
        where=where,
        advice="write TIER@1, TIER@-2, TIER@2026-11-30 or TIER@2026-11-30T15:04",
    )


def place(target: Target) -> str:
    """A target for people."""
    return f"{target.tier}:{output.show_path(target.path)}"


def no_such_name(target: Target) -> NotHeldError:
    """The error to raise where the tier has nothing at the target's path."""
    return NotHeldError("no such name in the tier", where=place(target))
