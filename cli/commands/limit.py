"""`cas limit`: how much a running sync may fetch a second."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from cas.errors import EXIT_DONE, StoreError
from cli import options, output

if TYPE_CHECKING:
    from cas.pull.record import Running
    from cas.store.layout import Layout


@click.command("limit", short_help="Say how fast a running sync may be.")
@click.argument("words", metavar="[RATE|TIMETABLE|off]...", nargs=-1)
@options.plan_option
@options.store_option
@options.json_option
def command(
    words: tuple[str, ...], plan_path: str | None, store_path: Path | None, as_json: bool
) -> int:
    """Say how much the sync that runs now may fetch a second, until it ends.

    A rate is in bytes: k, M, G are decimal, Ki, Mi, Gi binary. In a timetable each rate holds from
    its time, local here, until the next; without a weekday it is of every day. Without any, the
    limit that holds is shown. To limit a sync from its start, use `cas sync --bwlimit`.

    \b
    Examples:
      cas limit 500k
      cas limit 08:00,512k 19:00,off Sat-08:00,off
      cas limit off
    """
    from cas.pull.record import ask_limit, running
    from cas.pull.timetable import parse_timetable
    from cas.store.layout import Layout
    from cli import wiring

    asked = parse_timetable(" ".join(words), where="limit") if words else None
    layout = Layout(wiring.store_root(store_path, plan_path))
    layout.check()
    found = running(layout)
    if found is None:
        raise StoreError(
            "no sync is running on this store",
            where=str(layout.root),
            advice="`cas sync --bwlimit` limits one from its start",
        )
    if asked is not None:
        try:
            ask_limit(layout, found, asked)
        except OSError as error:
            raise StoreError(
                f"cannot be written: {error.strerror}", where=str(layout.limit)
            ) from error
    _show(layout, found, asked.text if asked is not None else None, as_json=as_json)
    return EXIT_DONE


def _show(layout: Layout, found: Running, asked: str | None, *, as_json: bool) -> None:
    """What holds now, or from the next second on."""
    limit = asked if asked is not None else str(found.fields.get("limit", "off"))
    if as_json:
        output.json_line({"limit": limit, "run": found.run, "pid": found.pid})
    elif limit == "off":
        output.result(f"{layout.root}: pid {found.pid} fetches without a limit")
    else:
        output.result(f"{layout.root}: pid {found.pid} is limited to {output.printable(limit)}")
