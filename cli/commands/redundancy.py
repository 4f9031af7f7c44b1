"""`cas redundancy`: what tiers have in common."""

from __future__ import annotations

from pathlib import Path

import click

from cas.errors import EXIT_DONE, EXIT_LEFT_OUT
from cli import options, output

PLACES = 10


@click.command("redundancy", short_help="Say what tiers have in common, and where.")
@click.argument("names", metavar="[TIER|SET]...", nargs=-1)
@options.plan_option
@options.store_option
@click.option(
    "--top",
    "most",
    metavar="N",
    type=click.IntRange(0),
    default=PLACES,
    show_default=True,
    help="How many places to list of each sort.",
)
@click.option("--inside", "look_inside", is_flag=True, help="List what lies in archives as well.")
@options.bytes_option
@options.json_option
def command(
    names: tuple[str, ...],
    plan_path: str | None,
    store_path: Path | None,
    most: int,
    look_inside: bool,
    exact: bool,
    as_json: bool,
) -> int:
    """Say what tiers have in common, what each adds to those before it, and where that lies.

    Counted are the chunks that the newest snapshots name, fetched or not; archives are those of
    what is in them. Only the tiers named are compared, all by default.

    \b
    Examples:
      cas redundancy
      cas redundancy 05-oci-image 06-home --bytes
      cas redundancy --inside --top 20
      cas redundancy --json | jq -c 'select(.event == "pair")'
    """
    from cas.redundancy.count import count
    from cas.redundancy.inside import Inside
    from cas.redundancy.overlap import Overlap
    from cas.redundancy.places import find_places
    from cli import wiring
    from cli.redundancy import Findings, json_events, print_findings
    from cli.tiers import choose

    plan = wiring.maybe_plan(plan_path) if store_path is not None else wiring.plan_of(plan_path)
    with wiring.reading(wiring.store_root(store_path, plan_path)) as store:
        chosen = choose(store, plan, names)
        snapshots = [tier.snapshot for tier in chosen.scanned]
        inside = Inside(store) if look_inside else None
        counted = count(store, snapshots, inside=inside)
    overlap = Overlap(len(snapshots), {k: v.bytes for k, v in counted.by_set().items()})
    places = find_places(counted, most=most)
    found = Findings(chosen.scanned, counted, overlap, overlap.matrix(), places)
    if as_json:
        for event, fields in json_events(found):
            output.json_event(event, fields)
    elif chosen.scanned:
        print_findings(found, most=most, size=output.sizes(exact))
        if places.archives and not look_inside:
            output.say("`--inside` lists what lies in archives")
    if inside is not None and inside.closed:
        output.say(f"{output.plural(inside.closed, 'archive')} not looked into: headers not here")
    for name in chosen.never:
        output.say(f"{output.printable(name)}: never scanned to its end, and left out")
    return EXIT_LEFT_OUT if chosen.never else EXIT_DONE
