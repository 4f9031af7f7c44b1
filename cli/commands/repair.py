"""`cas repair`: what can be made anew is made anew."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from cas.errors import EXIT_DAMAGE, EXIT_DONE, UsageError
from cli import options, output

if TYPE_CHECKING:
    from cli.reindex import Remade


@click.command("repair", short_help="Make a lost or damaged index anew.")
@options.plan_option
@options.store_option
@click.option(
    "--rebuild-index",
    is_flag=True,
    help="Make the index anew from packs and snapshots; the old one is kept beside it.",
)
@options.json_option
def command(
    plan_path: str | None, store_path: Path | None, rebuild_index: bool, as_json: bool
) -> int:
    """Make the store's index anew from its packs and snapshots, which say it all.

    Nothing else is changed, and the old index stays as index.old-<time> until you remove it. What
    is damaged is listed, the rest is in the new index, and the exit code is 12 then.

    \b
    Example:
      cas repair --rebuild-index
    """
    if not rebuild_index:
        raise UsageError("say what to repair", advice="`cas repair --rebuild-index`")
    from cas.store.layout import Layout, WriterLock
    from cli.reindex import remake_index
    from cli.wiring import store_root

    layout = Layout(store_root(store_path, plan_path))
    layout.check()
    lock = WriterLock(layout)
    try:
        remade = remake_index(layout)
    finally:
        lock.release()
    _show(remade, as_json=as_json)
    return EXIT_DAMAGE if remade.problems else EXIT_DONE


def _show(remade: Remade, *, as_json: bool) -> None:
    if as_json:
        problems = [{"where": where, "why": why} for where, why in remade.problems]
        output.json_line({**_counts(remade), "problems": problems})
        return
    said = [
        output.plural(remade.packs, "pack"),
        output.plural(remade.chunks, "chunk"),
        output.plural(remade.snapshots, "snapshot"),
        f"{output.number(remade.complete)} complete",
    ]
    output.result(", ".join(said))
    for where, why in remade.problems:
        output.say_error(f"{where}: {why}")


def _counts(remade: Remade) -> dict[str, int]:
    return {
        "packs": remade.packs,
        "chunks": remade.chunks,
        "snapshots": remade.snapshots,
        "complete": remade.complete,
    }
