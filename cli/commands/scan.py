"""`cas scan`: say what tiers would cost."""

from __future__ import annotations

from pathlib import Path

import click

from cli import options


@click.command("scan", short_help="Say what fetching tiers would cost; fetch nothing.")
@click.argument("names", metavar="[TIER|SET]...", nargs=-1)
@options.plan_option
@options.store_option
@options.lanes_option
@options.give_up_option
@options.ssh_config_option
@options.bootstrap_option
@options.bytes_option
@options.json_option
def command(
    names: tuple[str, ...],
    plan_path: str | None,
    store_path: Path | None,
    lanes: int | None,
    give_up: float,
    ssh_config: str | None,
    bootstraps: bool,
    exact: bool,
    as_json: bool,
) -> int:
    """Say what fetching tiers would cost, in bytes that must really come; fetch nothing.

    The scan is kept, so that `cas plan`, `cas redundancy` and others know the tier before any of it
    is fetched. The source remembers what it read, so a sync that follows does not read it again to
    know what there is.

    \b
    Examples:
      cas scan                       every tier of the plan
      cas scan minimal 05-oci-image  a set and a tier
    """
    from cli.pulling import Order, pull
    from cli.wiring import Wishes

    wishes = Wishes(ssh_config=ssh_config, lanes=lanes, give_up=give_up)
    return pull(
        Order(
            names, plan_path, store_path, True, as_json, True, wishes=wishes, exact=exact,
            bootstraps=bootstraps,
        )
    )  # fmt: skip
