"""`cas report`: what the tiers have and what they cost, as one page."""

from __future__ import annotations

from pathlib import Path

import click

from cas.errors import EXIT_DAMAGE, EXIT_DONE, EXIT_LEFT_OUT, UsageError
from cli import options, output

FILES = 25


@click.command("report", short_help="Write a page of figures on what is held and what it cost.")
@click.argument("names", metavar="[TIER|SET]...", nargs=-1)
@click.option("-o", "--output", "page_path", metavar="FILE", type=options.FILE,
              help="Write the page there; a page that is there already is replaced.")  # fmt: skip
@click.option("--png", "png_path", metavar="DIR", type=options.DIRECTORY,
              help="Write waterfall.png and matrix.png there.")  # fmt: skip
@click.option("--top", "most", metavar="N", type=click.IntRange(0, 10_000), default=FILES,
              show_default=True, help="How many files and archives to list.")  # fmt: skip
@options.plan_option
@options.store_option
@options.json_option
def command(
    names: tuple[str, ...],
    page_path: Path | None,
    png_path: Path | None,
    most: int,
    plan_path: str | None,
    store_path: Path | None,
    as_json: bool,
) -> int:
    """Write one self-contained page, to be read offline: tiers from their logical bytes down to
    those that crossed the wire, what they have in common, which was first had from where, how the
    runs went, the largest files, and what in archives was left packed, and why.

    \b
    Examples:
      cas report -o report.html
      cas report -o minimal.html minimal
      cas report --json | jq -c 'select(.event == "flow")'
      cas report --png figures
    """
    from cas.report.gather import gather
    from cli import wiring
    from cli.reporting import json_events, runs_of, write_page, write_pictures
    from cli.tiers import choose

    if page_path is None and png_path is None and not as_json:
        raise UsageError("no file is named", advice="add -o report.html")
    plan = wiring.maybe_plan(plan_path) if store_path is not None else wiring.plan_of(plan_path)
    root = wiring.store_root(store_path, plan_path)
    with wiring.reading(root) as store:
        chosen = choose(store, plan, names)
        facts = gather(store, [(tier.row, tier.snapshot) for tier in chosen.scanned], most=most)
        runs = runs_of(store)
    if as_json:
        for event, fields in json_events(facts, runs):
            output.json_event(event, fields)
    if page_path is not None:
        write_page(page_path, facts, runs, where=str(root))
    if png_path is not None:
        write_pictures(png_path, facts)
    for name in chosen.never:
        output.say(f"{output.printable(name)}: never scanned to its end, and left out")
    for line in facts.damaged:
        output.say(output.printable(line))
    if facts.damaged:
        return EXIT_DAMAGE
    return EXIT_LEFT_OUT if chosen.never else EXIT_DONE
