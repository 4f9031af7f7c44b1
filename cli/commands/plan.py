"""`cas plan`: what tiers would cost on the wire, and how long that takes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cas.errors import EXIT_DONE, EXIT_LEFT_OUT, UsageError
from cli import options, output

if TYPE_CHECKING:
    from cas.plan import Plan
    from cli.tiers import Chosen


@click.command("plan", short_help="Estimate what tiers cost on the wire, and how long it takes.")
@click.argument("names", metavar="[TIER|SET]...", nargs=-1)
@options.plan_option
@options.store_option
@click.option(
    "--rate", metavar="RATE", help="Bytes a second: 80k, 1.5M.  [default: the last sync's]"
)
@click.option("--without", "left_out", metavar="TIER|SET", multiple=True, help="Leave it out.")
@click.option("--order", metavar="TIER,TIER...", help="These first; the others follow as planned.")
@options.bytes_option
@options.json_option
def command(
    names: tuple[str, ...],
    plan_path: str | None,
    store_path: Path | None,
    rate: str | None,
    left_out: tuple[str, ...],
    order: str | None,
    exact: bool,
    as_json: bool,
) -> int:
    """Estimate what the tiers that were scanned still cost on the wire, and how long that takes.

    Which bytes are missing is counted. What they compress to is estimated, from what is held
    already and from how well archives were compressed at the source. Nothing is asked of any
    source. Leaving tiers out and other orders can be tried.

    \b
    Examples:
      cas plan
      cas plan --rate 80k minimal
      cas plan --without 05-oci-image --order 08-weights,02-user-workspace
    """
    from cas.redundancy.cost import estimate
    from cli import wiring
    from cli.costs import Outlook, json_events, print_outlook
    from cli.forecast import level_of
    from cli.rate import measured_rate, parse_rate
    from cli.tiers import choose

    given = None if rate is None else parse_rate(rate)
    plan = wiring.maybe_plan(plan_path) if store_path is not None else wiring.plan_of(plan_path)
    with wiring.reading(wiring.store_root(store_path, plan_path)) as store:
        chosen = choose(store, plan, names)
        numbers = _order(chosen, plan, left_out, order)
        speed = given or measured_rate(store.layout)
        level = level_of(plan, [tier.snapshot.source for tier in chosen.scanned], speed)
        costs = estimate(store, [tier.snapshot for tier in chosen.scanned], level)
    found = Outlook(chosen.scanned, costs, numbers, speed)
    if as_json:
        for event, fields in json_events(found):
            output.json_event(event, fields)
    elif numbers:
        print_outlook(found, output.sizes(exact))
    for name in chosen.never:
        output.say(f"{output.printable(name)}: never scanned to its end, and left out")
    return EXIT_LEFT_OUT if chosen.never else EXIT_DONE


def _order(
    chosen: Chosen, plan: Plan | None, left_out: Sequence[str], order: str | None
) -> list[int]:
    """The numbers of the tiers that are to come, as they are to come."""
    names = [tier.name for tier in chosen.scanned]
    first = _named(chosen, plan, order.split(",") if order else [])
    gone = _named(chosen, plan, left_out)
    return [names.index(name) for name in dict.fromkeys([*first, *names]) if name not in gone]


def _named(chosen: Chosen, plan: Plan | None, names: Sequence[str]) -> list[str]:
    """The scanned tiers that names of tiers and sets mean. Raises UsageError for a name that is
    not among those that are looked at."""
    from cas.plan import did_you_mean

    sets = plan.sets if plan is not None else {}
    wanted = [tier for name in names for tier in sets.get(name.strip(), (name.strip(),))]
    scanned = [tier.name for tier in chosen.scanned]
    for name in wanted:
        if name not in scanned and name not in chosen.never:
            advice = did_you_mean(name, scanned)
            raise UsageError("is not among the tiers looked at", where=name, advice=advice)
    return [name for name in wanted if name in scanned]
