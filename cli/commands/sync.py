"""`cas sync`: fetch tiers."""

from __future__ import annotations

from pathlib import Path

import click

from cli import options


@click.command("sync", short_help="Fetch what is missing of tiers.")
@click.argument("names", metavar="[TIER|SET]...", nargs=-1)
@options.plan_option
@options.store_option
@click.option("-n", "--dry-run", is_flag=True, help="Only say what it would cost.")
@click.option(
    "--level",
    type=click.IntRange(0, 22),
    metavar="N",
    help="Compress at zstd level N, 0: as the link leaves time for.  [default: the plan's]",
)
@options.lanes_option
@options.give_up_option
@options.bwlimit_option
@options.ssh_config_option
@options.bootstrap_option
@options.network_option
@options.bytes_option
@options.json_option
def command(
    names: tuple[str, ...],
    plan_path: str | None,
    store_path: Path | None,
    dry_run: bool,
    level: int | None,
    lanes: int | None,
    give_up: float,
    bwlimit: str,
    ssh_config: str | None,
    bootstraps: bool,
    allow_network_fs: bool,
    exact: bool,
    as_json: bool,
) -> int:
    """Fetch what is missing of tiers, in the plan's order; of all without a name.

    What is here already, from whichever tier, is not fetched again. It can be interrupted at any
    time: run it again, and it goes on where it was. What could not be had is listed, and the exit
    code is 3 then.

    \b
    Examples:
      cas sync                             everything in the plan
      cas sync minimal                     the tiers of the set `minimal`
      cas sync --json 05-oci-image | jq    for a program
    """
    from cas.pull.timetable import parse_timetable
    from cli.pulling import Order, pull
    from cli.wiring import Wishes

    return pull(
        Order(
            names,
            plan_path,
            store_path,
            dry_run=dry_run,
            as_json=as_json,
            level=level,
            wishes=Wishes(ssh_config=ssh_config, lanes=lanes, give_up=give_up),
            allow_network_fs=allow_network_fs,
            limit=parse_timetable(bwlimit),
            exact=exact,
            bootstraps=bootstraps,
        )
    )
