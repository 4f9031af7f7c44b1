"""What `cas plan` found out, as a table and as JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from cas.redundancy.cost import Cost, Costs, together
from cli import output
from cli.rate import Rate
from cli.summary import print_table
from cli.table import Column
from cli.tiers import Scanned

_COLUMNS = (
    Column("tier", right=False),
    Column("wire"),
    Column("give or take", expendable=3),
    Column("time", expendable=1),
    Column("all by then", expendable=2),
    Column("missing", expendable=4),
    Column("saves", expendable=5),
)
_WAS = Column("was", expendable=1)


@dataclass(frozen=True, slots=True)
class Outlook:
    """What tiers will cost: `tiers` are all that were looked at, `order` the numbers of those that
    are to come, as they are to come, `usual` the numbers of all in the plan's order."""

    tiers: Sequence[Scanned]
    costs: Costs
    order: Sequence[int]
    rate: Rate | None

    @property
    def usual(self) -> list[int]:
        """All of them, as the plan has them."""
        return list(range(len(self.tiers)))

    @property
    def is_changed(self) -> bool:
        """Whether another order or choice than the plan's is asked about."""
        return list(self.order) != self.usual

    def soonest(self) -> list[int]:
        """The order in which most is usable soonest, by what tiers cost on the wire."""
        return self.costs.wire.soonest(self._worth)

    def wait(self, order: Sequence[int]) -> float:
        """See `Overlap.mean_wait`: in wire bytes."""
        return self.costs.wire.mean_wait(order, self._worth)

    def seconds(self, wire: float) -> float | None:
        """How long so many bytes take."""
        return None if self.rate is None else wire / self.rate.value

    @property
    def _worth(self) -> list[int]:
        return [tier.logical for tier in self.costs.counted.tiers]


def json_events(found: Outlook) -> Iterator[tuple[str, Mapping[str, object]]]:
    """Events and their fields (docs/cli.md)."""
    before = dict(zip(found.usual, found.costs.of(found.usual), strict=True))
    for number, cost in zip(found.order, found.costs.of(found.order), strict=True):
        tier = found.tiers[number]
        yield (
            "tier",
            {
                "tier": tier.name,
                "snapshot": tier.row.id.hex(),
                "finished_ms": tier.row.finished_ms,
                "complete": tier.row.complete,
                **_cost_fields(found, cost),
                "saves": found.costs.saves(number, found.order),
                "before": before[number].wire,
            },
        )
    soonest = found.soonest()
    yield (
        "order",
        {
            "order": "soonest",
            "tiers": [found.tiers[number].name for number in soonest],
            "wire": [cost.wire for cost in found.costs.of(soonest)],
            "mean_wait": round(found.wait(soonest)),
        },
    )
    rate = found.rate
    yield (
        "summary",
        {
            "tiers": len(found.order),
            **_cost_fields(found, together(found.costs.of(found.order))),
            "before": together(list(before.values())).wire,
            "mean_wait": round(found.wait(found.order)),
            "rate": None if rate is None else round(rate.value),
            "run": None if rate is None else rate.run or None,
        },
    )


def _cost_fields(found: Outlook, cost: Cost) -> dict[str, object]:
    seconds = found.seconds(cost.wire)
    return {
        "missing": cost.missing,
        "wire": cost.wire,
        "wire_low": cost.low,
        "wire_high": cost.high,
        "seconds": None if seconds is None else round(seconds, 1),
    }


def print_outlook(found: Outlook, size: Callable[[int], str]) -> None:
    """A table of the tiers, and in a line each what follows from it."""
    columns = (*_COLUMNS[:2], _WAS, *_COLUMNS[2:]) if found.is_changed else _COLUMNS
    print_table(columns, [*_rows(found, size), *_total(found, size)])
    if found.is_changed:
        _print_change(found, size)
    soonest = found.soonest()
    if not found.is_changed and soonest != found.usual:
        waits = [size(round(found.wait(order))) for order in (soonest, found.usual)]
        names = ",".join(output.printable(found.tiers[number].name) for number in soonest)
        output.result(f"most can be used soonest with --order {names}")
        output.result(f"  (a byte when {waits[0]} have come, on average; as it stands {waits[1]})")
    if found.rate is None:
        output.say("no rate known: `--rate 80k` says how long it takes")
    elif found.rate.run:
        output.say(f"at {size(round(found.rate.value))}/s, as in run {found.rate.run[:12]}")


def _rows(found: Outlook, size: Callable[[int], str]) -> Iterator[list[str]]:
    before = dict(zip(found.usual, found.costs.of(found.usual), strict=True))
    come = 0
    for number, cost in zip(found.order, found.costs.of(found.order), strict=True):
        come += cost.wire
        name = output.printable(found.tiers[number].name)
        saves = size(found.costs.saves(number, found.order))
        was = [size(before[number].wire)] if found.is_changed else []
        yield [name, size(cost.wire), *was, *_numbers(found, cost, come, size), saves]


def _total(found: Outlook, size: Callable[[int], str]) -> Iterator[list[str]]:
    if len(found.order) < 2:
        return
    cost = together(found.costs.of(found.order))
    was = [size(together(found.costs.of(found.usual)).wire)] if found.is_changed else []
    yield ["together", size(cost.wire), *was, *_numbers(found, cost, cost.wire, size), ""]


def _numbers(
    found: Outlook, cost: Cost, come: int, size: Callable[[int], str]
) -> tuple[str, str, str, str]:
    seconds, by_then = found.seconds(cost.wire), found.seconds(come)
    times = ("", "") if seconds is None or by_then is None else (
        output.duration(seconds), output.duration(by_then)
    )  # fmt: skip
    return size(cost.spread), *times, size(cost.missing)


def _print_change(found: Outlook, size: Callable[[int], str]) -> None:
    now = together(found.costs.of(found.order)).wire
    before = together(found.costs.of(found.usual)).wire
    out = [output.printable(found.tiers[n].name) for n in found.usual if n not in found.order]
    if out:
        output.result(f"without {', '.join(out)}: {size(before - now)} less on the wire")
    else:
        waits = [size(round(found.wait(order))) for order in (found.order, found.usual)]
        output.result(
            f"in this order a byte can be used when {waits[0]} have come, on average; "
            f"in the plan's {waits[1]}"
        )
