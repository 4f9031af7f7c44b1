"""`cas ls`: what is in a tier."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from cas.errors import EXIT_DONE, NotHeldError
from cli import options, output
from cli.options import Target
from cli.table import Column

if TYPE_CHECKING:
    from cas.entry import Entry
    from cas.store.store import Store

COLUMNS = (
    Column("tier", right=False),
    Column("scanned", right=False, expendable=2),
    Column("names", expendable=3),
    Column("logical"),
    Column("source", right=False, expendable=1),
)


@click.command("ls", short_help="List the tiers, or what is in one.")
@click.argument(
    "target", metavar="[TIER[:PATH]]", type=options.parse_target, default=None, required=False
)
@options.plan_option
@options.store_option
@click.option("-l", "--long", is_flag=True, help="Mode, owner, size, time, digest, link target.")
@options.bytes_option
@options.json_option
def command(
    target: Target | None,
    plan_path: str | None,
    store_path: Path | None,
    long: bool,
    exact: bool,
    as_json: bool,
) -> int:
    """List what is at and below PATH in the newest snapshot of a tier; without TIER, the tiers.

    Names are listed as the source has them, whether their content has come already or not (that
    is for `cas status`). What drives terminals or is no UTF-8 is spelt out; --json has it all.
    ARCHIVE!/PATH is what lies in an archive, or in an archive in it.

    \b
    Examples:
      cas ls
      cas ls --long 00-critical-context:/opt/calrt/include
      cas ls --json 02-user-workspace | jq -r 'select(.size > 1e6).path'
      cas ls source:/srv/llama.cpp.tar.gz!/
    """
    from cli import wiring

    with wiring.reading(wiring.store_root(store_path, plan_path)) as store:
        if target is None:
            _list_tiers(store, output.sizes(exact), as_json=as_json)
        else:
            _list_entries(store, target, long=long, as_json=as_json)
    return EXIT_DONE


def _list_tiers(store: Store, size: output.Sizes, *, as_json: bool) -> None:
    from cli.summary import print_table

    snapshots = [store.latest(tier)[1] for tier in store.tiers()]
    if as_json:
        for snapshot in snapshots:
            output.json_line(
                {
                    "tier": snapshot.tier,
                    "source": snapshot.source,
                    "host": snapshot.host,
                    "finished_ms": snapshot.finished_ms,
                    "entries": snapshot.entries,
                    "logical": snapshot.logical,
                    "roots": [output.name_fields("path", root) for root in snapshot.roots],
                }
            )
        return
    rows = [
        [s.tier, output.moment(s.finished_ms), output.number(s.entries), size(s.logical),
         s.source]
        for s in snapshots
    ]  # fmt: skip
    print_table(COLUMNS, rows)


def _list_entries(store: Store, target: Target, *, long: bool, as_json: bool) -> None:
    from cli.inside import find_inside
    from cli.listing import entry_fields, long_line
    from cli.selection import no_such_name, snapshot_of

    snapshot = snapshot_of(store, target.tier)
    inside = find_inside(store, snapshot, target)
    entries = store.below(snapshot, target.path) if inside is None else inside.entries(store)
    found = False
    for entry in entries:
        found = True
        if as_json and inside is not None:
            output.json_line(inside.fields(entry))
        elif as_json:
            output.json_line(entry_fields(entry, _packed(store, entry)))
        elif long:
            output.result(long_line(entry, _packed(store, entry)))
        else:
            output.result(output.show_path(entry.path))
    if not found and target.path:
        raise no_such_name(target)


def _packed(store: Store, entry: Entry) -> list[str]:
    """What of an archive was left as it is; nothing if its recipe has not come yet."""
    try:
        return store.packed(entry)
    except NotHeldError:
        return []
