"""The tiers that a command is asked about: those of the plan in its order, then others that are
held, adopted files for example."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cas.errors import NotHeldError
from cas.interfaces import SnapshotRow
from cas.plan import Plan, did_you_mean
from cas.snapshot import Snapshot
from cas.store.store import Store


@dataclass(frozen=True, slots=True)
class Scanned:
    """A tier with its newest snapshot."""

    row: SnapshotRow
    snapshot: Snapshot

    @property
    def name(self) -> str:
        """The tier's."""
        return self.row.tier


@dataclass(frozen=True, slots=True)
class Chosen:
    """`scanned` tiers in order, and the names of those that were never scanned to their end."""

    scanned: list[Scanned]
    never: list[str]


def choose(store: Store, plan: Plan | None, names: Sequence[str]) -> Chosen:
    """The tiers that `names` of tiers and sets mean, all for none. Raises NotHeldError for a name
    that neither the plan nor the store knows."""
    planned = [tier.name for tier in plan.tiers] if plan is not None else []
    known = list(dict.fromkeys([*planned, *store.tiers()]))
    sets = plan.sets if plan is not None else {}
    asked = [tier for name in names for tier in sets.get(name, (name,))]
    for name in asked:
        if name not in known:
            raise NotHeldError(
                "no such tier here or in the plan", where=name, advice=did_you_mean(name, known)
            )
    wanted = [tier for tier in known if tier in asked or not names]
    held = set(store.tiers())
    scanned = [Scanned(*store.latest(tier)) for tier in wanted if tier in held]
    return Chosen(scanned, [tier for tier in wanted if tier not in held])
