"""`cas log`: what was done when, and which snapshots came of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from cas.errors import EXIT_DONE, NotHeldError, UsageError
from cli import options, output
from cli.table import Column

if TYPE_CHECKING:
    from cas.store.store import Store

SNAPSHOTS = (
    Column("snapshot", right=False),
    Column("finished", right=False),
    Column("names", expendable=3),
    Column("logical", expendable=2),
    Column("", right=False, expendable=4),
    Column("run", right=False, expendable=1),
    Column("source", right=False, expendable=5),
)


@click.command("log", short_help="List runs, or the snapshots of tiers.")
@click.argument("name", metavar="[RUN|TIER]", required=False)
@click.option("--snapshots", is_flag=True, help="The snapshots that are held, of TIER or of all.")
@options.plan_option
@options.store_option
@options.bytes_option
@options.json_option
def command(
    name: str | None,
    snapshots: bool,
    plan_path: str | None,
    store_path: Path | None,
    exact: bool,
    as_json: bool,
) -> int:
    """List the runs that brought something here, the oldest first; or say all of one, named by the
    first digits of its id: command, tiers, what crossed the wire, what went wrong, with whom.

    A run that was killed has left no record. It is listed if it has finished a tier's scan.

    \b
    Examples:
      cas log
      cas log 48a76438
      cas log --snapshots 02-user-workspace
    """
    from cli import wiring

    size = output.sizes(exact)
    with wiring.reading(wiring.store_root(store_path, plan_path)) as store:
        if snapshots:
            _list_snapshots(store, name, size, as_json=as_json)
        else:
            _list_runs(store, name, size, as_json=as_json)
    return EXIT_DONE


def _list_runs(store: Store, digits: str | None, size: output.Sizes, *, as_json: bool) -> None:
    from cli.runlog import logged, print_run, print_runs

    found = logged(store, digits or "")
    if digits is not None and not found:
        raise NotHeldError("no run begins so", where=digits, advice="`cas log` lists them")
    if digits is not None and len(found) > 1:
        names = ", ".join(one.run.hex() for one in found[:3])
        raise UsageError(f"may be {names}", where=digits, advice="write more of it")
    if as_json:
        for one in found:
            output.json_line(one.fields())
    elif digits is not None:
        print_run(found[0], size)
    else:
        print_runs(found, size)


def _list_snapshots(store: Store, tier: str | None, size: output.Sizes, *, as_json: bool) -> None:
    from cas.plan import did_you_mean
    from cli.summary import print_table

    known = store.tiers()
    if tier is not None and tier not in known:
        raise NotHeldError(
            "no snapshot of this tier is held", where=tier, advice=did_you_mean(tier, known)
        )
    rows = []
    for name in known if tier is None else [tier]:
        for number, row in enumerate(store.snapshots(name), 1):
            snapshot = store.snapshot(row.id)
            fields = {
                "tier": name, "number": number, "id": row.id.hex(),
                "finished_ms": row.finished_ms, "started_ms": snapshot.started_ms,
                "entries": snapshot.entries, "logical": snapshot.logical,
                "complete": row.complete, "run": snapshot.run.hex(), "source": snapshot.source,
                "host": snapshot.host, "cas": snapshot.version,
            }  # fmt: skip
            if as_json:
                output.json_line(fields)
            rows.append([
                f"{output.printable(name)}@{number}", output.moment(row.finished_ms),
                output.number(snapshot.entries), size(snapshot.logical),
                "complete" if row.complete else "", snapshot.run.hex()[:8],
                output.printable(snapshot.source),
            ])  # fmt: skip
    if not as_json:
        print_table(SNAPSHOTS, rows)
