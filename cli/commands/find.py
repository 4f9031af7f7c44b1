"""`cas find`: names in all that is held, archives included."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cas.errors import EXIT_DONE, EXIT_LEFT_OUT, UsageError
from cli import options, output

if TYPE_CHECKING:
    from cas.find import NameTest, Wanted
    from cas.store.store import Store
    from cli.finding import Hit, Search
    from cli.selection import Selected

KINDS = ("file", "directory", "symlink", "fifo", "socket", "device")
PROBLEMS_SHOWN = 20


@click.command("find", short_help="Find names in all that is held, archives included.")
@click.argument("words", metavar="[TIER[:PATH]...] [PATTERN]", nargs=-1)
@click.option("--regex", is_flag=True, help="PATTERN is a regular expression for the whole path.")
@click.option("-i", "--ignore-case", is_flag=True, help="Letters of ASCII match in either case.")
@click.option("--size", "sizes", metavar="[+|-]SIZE", multiple=True, help="More, less, or just.")
@click.option("--digest", metavar="HEX", default="", help="The SHA-256, or its beginning.")
@click.option("--kind", "kinds", type=click.Choice(KINDS), multiple=True, help="What it is.")
@click.option("--tier", "tiers", metavar="TIER", multiple=True, help="As TIER before PATTERN.")
@click.option("--origin", metavar="SOURCE|TIER", help="With chunks first had from there.")
@click.option("--no-archives", is_flag=True, help="Do not look into archives.")
@click.option("-l", "--long", is_flag=True, help="Mode, owner, size, time, digest, link target.")
@options.plan_option
@options.store_option
@options.json_option
def command(
    words: tuple[str, ...],
    regex: bool,
    ignore_case: bool,
    sizes: tuple[str, ...],
    digest: str,
    kinds: tuple[str, ...],
    tiers: tuple[str, ...],
    origin: str | None,
    no_archives: bool,
    long: bool,
    plan_path: str | None,
    store_path: Path | None,
    as_json: bool,
) -> int:
    """Find names in the newest snapshots of all tiers, or of those given, and in the archives in
    them, whether their content has come or not.

    PATTERN is as in .gitignore: without a slash it is for the last name; with one for the path,
    from the root if it begins with a slash. What lies in an archive is ARCHIVE!/PATH, and
    matches by either path. All that is asked for must be true of a name.

    \b
    Examples:
      cas find 'libprotobuf*.so*'
      cas find 05-oci-image --size +100M --kind file '*'
      cas find --digest 5f3a9c21d0ab
      cas find --origin 01-model-runtime '*.json'
    """
    from cli import wiring

    *places, pattern = words or ("",)
    wanted = _wanted(_name_test(pattern, regex, ignore_case), sizes, kinds)
    if digest and not re.fullmatch("[0-9a-f]{4,64}", digest):
        raise UsageError("a digest is 4 to 64 hex digits 0-9a-f", where=f"--digest {digest}")
    with wiring.reading(wiring.store_root(store_path, plan_path)) as store:
        from cas.audit.trace import Tracer
        from cli.finding import Search
        from cli.origins import origins_named

        origins = None if origin is None else origins_named(store, origin)[0]
        selected = _selected(store, [*places, *tiers])
        width = max((len(output.printable(one.snapshot.tier)) for one in selected), default=0)
        with closing(Tracer(store)) as tracer:
            search = Search(store, tracer, wanted, digest, origins, not no_archives)
            for one in selected:
                for hit in search.hits(one):
                    _show(hit, width if long else 0, as_json=as_json)
        return _say_problems(search)


def _name_test(pattern: str, regex: bool, ignore_case: bool) -> NameTest | None:
    from cas.find import by_glob, by_regex

    if not pattern:
        return None
    make = by_regex if regex else by_glob
    return make(os.fsencode(pattern), ignore_case=ignore_case)


def _wanted(name: NameTest | None, sizes: Sequence[str], kinds: Sequence[str]) -> Wanted:
    from cas.entry import DEVICES, Kind
    from cas.find import Wanted, parse_sizes

    known = {kind.name.lower(): {kind} for kind in Kind} | {"device": set(DEVICES)}
    chosen = frozenset(kind for text in kinds for kind in known[text])
    return Wanted(name, tuple(map(parse_sizes, sizes)), chosen)


def _selected(store: Store, names: Sequence[str]) -> list[Selected]:
    from cli.options import parse_target
    from cli.selection import select

    return select(store, [parse_target(name) for name in names or store.tiers()])


def _show(hit: Hit, width: int, *, as_json: bool) -> None:
    """One line; a long one with the tier's name in `width` cells, where that is not 0."""
    from cli.listing import long_line

    if as_json:
        output.json_line(hit.fields())
    elif width:
        output.result(f"{output.printable(hit.tier):<{width}}  {long_line(hit.entry)}")
    else:
        output.result(f"{output.printable(hit.tier)}:{output.show_path(hit.entry.path)}")


def _say_problems(search: Search) -> int:
    from cli.summary import problem_text

    for tier, problem in search.problems[:PROBLEMS_SHOWN]:
        output.say(f"{output.printable(tier)}: {problem_text(problem)}")
    if len(search.problems) > PROBLEMS_SHOWN:
        output.say(f"and {output.number(len(search.problems) - PROBLEMS_SHOWN)} more")
    return EXIT_LEFT_OUT if search.problems else EXIT_DONE
