"""What the tiers of a dry run would cost on the wire, by what it has just scanned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cas.errors import CasError
from cas.plan import Plan
from cas.redundancy.cost import Cost, estimate, together
from cas.redundancy.priors import level_at
from cas.store.store import Store
from cli import output
from cli.rate import Rate
from cli.wiring import SSH_LEVEL, level_for


@dataclass(frozen=True, slots=True)
class Forecast:
    """The cost of each tier by name, after those before it; `rate` is the link's, if known."""

    costs: Mapping[str, Cost]
    rate: Rate | None

    @property
    def total(self) -> Cost:
        """Of all of them."""
        return together(list(self.costs.values()))

    def seconds(self, cost: Cost) -> float | None:
        """How long it takes to come."""
        return None if self.rate is None else cost.wire / self.rate.value

    def fields(self, cost: Cost) -> dict[str, object]:
        """A cost for JSON, as that of `cas plan`."""
        seconds = self.seconds(cost)
        return {
            "wire": cost.wire,
            "wire_low": cost.low,
            "wire_high": cost.high,
            "seconds": None if seconds is None else round(seconds, 1),
        }


def foretell(
    store: Store, names: Sequence[str], plan: Plan, rate: Rate | None, level: int
) -> Forecast | None:
    """The forecast for these tiers, whose newest snapshots are counted; None, and a line that says
    why, where they cannot be. `level` is zstd's, or 0 for that of the plan or the link."""
    try:
        snapshots = [store.latest(name)[1] for name in names]
        sources = [snapshot.source for snapshot in snapshots]
        found = estimate(store, snapshots, level or level_of(plan, sources, rate))
    except CasError as error:
        output.say(f"no estimate: {output.printable(str(error))}")
        return None
    return Forecast(dict(zip(names, found.of(range(len(names))), strict=True)), rate)


def level_of(plan: Plan | None, sources: Sequence[str], rate: Rate | None) -> int:
    """The zstd level to count with: that of the first of these sources that the plan knows, or what
    the link will choose at this rate."""
    known = plan.sources if plan is not None else {}
    level = next((level_for(known[name]) for name in sources if name in known), 0)
    return level or (SSH_LEVEL if rate is None else level_at(rate.value))
