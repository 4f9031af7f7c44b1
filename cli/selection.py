"""Entries of the tiers and paths that a command line names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cas.entry import Entry
from cas.errors import NotHeldError
from cas.plan import did_you_mean
from cas.restore.select import without_prefix
from cas.snapshot import Snapshot
from cas.store.store import Store
from cli import output
from cli.options import Target


@dataclass(frozen=True, slots=True)
class Selected:
    """What one target means: entries at and below a path of the tier's newest snapshot."""

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
    selected = Selected(store, latest(store, target.tier), target.path)
    if target.path and next(selected.entries(), None) is None:
        raise no_such_name(target)
    return selected


def latest(store: Store, tier: str) -> Snapshot:
    """The newest snapshot of `tier`. Raises NotHeldError, with a guess at what was meant."""
    known = store.tiers()
    if tier not in known:
        raise NotHeldError(
            "no snapshot of this tier is held", where=tier, advice=did_you_mean(tier, known)
        )
    return store.latest(tier)[1]


def place(target: Target) -> str:
    """A target for people."""
    return f"{target.tier}:{output.show_path(target.path)}"


def no_such_name(target: Target) -> NotHeldError:
    """The error to raise where the tier has nothing at the target's path."""
    return NotHeldError("no such name in the tier", where=place(target))
