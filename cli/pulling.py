"""What `cas scan` and `cas sync` have in common: the plan, and calling the first source.

That source is called before anything else is done: while its agent starts, the engine is imported
here (`cli/run.py`) and the store opened.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from cas.pull.timetable import NO_LIMIT, Timetable
from cas.transport.early import EarlyDialer
from cli import interrupt, wiring

if TYPE_CHECKING:
    from cas.plan import Plan

KEPT = "everything received so far is kept, and the same command goes on from there"


@dataclass(frozen=True, slots=True)
class Order:
    """What the command line asks for."""

    names: tuple[str, ...]
    plan_path: str | None
    store_path: Path | None
    dry_run: bool
    as_json: bool
    keep_scan: bool = False  # of a dry run
    level: int | None = None
    wishes: wiring.Wishes = field(default_factory=wiring.Wishes)
    allow_network_fs: bool = False
    limit: Timetable = NO_LIMIT
    exact: bool = False  # sizes not rounded


def pull(order: Order) -> int:
    """Do it; the exit code. Raises CasError, KeyboardInterrupt."""
    return pull_from(wiring.plan_of(order.plan_path), order)


def pull_from(plan: Plan, order: Order) -> int:
    """Do it by this plan; the exit code. Raises CasError, KeyboardInterrupt."""
    return interrupt.run(_pull(plan, order), "" if order.dry_run else KEPT)


async def _pull(plan: Plan, order: Order) -> int:
    tiers = plan.select(order.names)
    dialers = wiring.dialers_for(plan, tiers, order.wishes)
    first = next(iter(dialers))
    async with EarlyDialer(dialers[first]) as early:
        await asyncio.sleep(0)  # what follows leaves the loop no time to begin
        from cli.run import carry_out

        return await carry_out(plan, tiers, {**dialers, first: early}, order)
