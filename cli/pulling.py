"""What `cas scan` and `cas sync` have in common: the plan, and calling the first source.

That source is called before anything else is done: while its agent starts, the engine is imported
here (`cli/run.py`) and the store opened.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from cas.errors import TransportError
from cas.pull.timetable import NO_LIMIT, Timetable
from cas.transport.early import EarlyDialer
from cli import interrupt, output, wiring

if TYPE_CHECKING:
    from cas.plan import Plan, Source

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
    bootstraps: bool = False  # without asking, a host that has no agent
    placed: frozenset[str] = frozenset()  # sources that got one already


def pull(order: Order) -> int:
    """Do it, having put agents where there are none if that is wished; the exit code. Raises
    CasError, KeyboardInterrupt."""
    plan = wiring.plan_of(order.plan_path)
    while True:
        try:
            return pull_from(plan, order)
        except TransportError as error:
            source = may_get_agent(plan, order, error)
            if source is None or not _agreed(source, order):
                raise
        _place_agent(source, order)
        order = replace(order, placed=order.placed | {source.name})


def may_get_agent(plan: Plan, order: Order, error: BaseException | None) -> Source | None:
    """The source on whose host no agent was found, if that is what `error` says, and if one may be
    put there: by option, or because somebody can be asked."""
    from cas.bootstrap.launch import complaint

    may = order.bootstraps or (not order.as_json and output.can_ask())
    if not may or not isinstance(error, TransportError):
        return None
    sources = (one for name, one in plan.sources.items() if name not in order.placed)
    return next((one for one in sources if complaint(one.name) in error.what), None)


def _agreed(source: Source, order: Order) -> bool:
    return order.bootstraps or output.ask(f"there is no agent on {source.name}; put one there now?")


def _place_agent(source: Source, order: Order) -> None:
    """As `cas bootstrap` does. Raises CasError, KeyboardInterrupt."""
    from cli.bootstrapping import KEPT as KEPT_THERE
    from cli.bootstrapping import bootstrap, job_for

    placed = interrupt.run(bootstrap(job_for(source, source.name, order.wishes)), KEPT_THERE)
    where = f"{placed.directory}/{placed.kit.name}"
    output.say(f"the agent is in {output.printable(where)}, and used from now on")


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
