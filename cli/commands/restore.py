"""`cas restore`: write what was fetched."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cas.errors import EXIT_DAMAGE, EXIT_DONE, EXIT_LEFT_OUT
from cli import options, output
from cli.options import Target

if TYPE_CHECKING:
    from cas.entry import Entry
    from cas.restore.report import RestoreReport

SET_ID = 0o6000


@click.command("restore", short_help="Write what was fetched below a directory.")
@options.targets_argument
@click.option("--to", "directory", type=options.DIRECTORY, required=True, help="Write below DIR.",
              metavar="DIR")  # fmt: skip
@click.option("--overwrite", is_flag=True, help="Replace files that are there and differ.")
@click.option(
    "--owner",
    type=click.Choice(["names", "numbers", "none"]),
    default="names",
    show_default=True,
    help="Whose the files become: by user and group name (by number where a name is not known "
    "here), by number, or yours. Only root can give files away.",
)
@click.option(
    "--sync/--no-sync",
    default=False,
    help="End only when all of it is on the disk. Otherwise, as with tar, rsync, borg and restic, "
    "that is left to the system, which takes some seconds more.",
)
@options.plan_option
@options.store_option
@options.json_option
def command(
    targets: tuple[Target, ...],
    directory: Path,
    overwrite: bool,
    owner: str,
    sync: bool,
    plan_path: str | None,
    store_path: Path | None,
    as_json: bool,
) -> int:
    """Write what was fetched of tiers below a directory, checked, with all metadata.

    All of a tier is written under its full paths, TIER:/home/u/llm as DIR/llm. A file appears
    under its name when all of it is there and right. Files that are there already stay; those that
    differ are listed, unless --overwrite replaces them. So an interrupted restore goes on when it
    is run again. What could not be restored is listed, with exit code 3, or 12 for damage.

    \b
    Examples:
      cas restore 00-critical-context --to ./out
      cas restore 02-user-workspace:/home/u/llm source --to /srv --owner none
    """
    from cas.restore.report import Existing, RestoreOptions
    from cas.restore.tree import restore_entries
    from cli import wiring
    from cli.counter import counting
    from cli.selection import select

    existing = Existing.OVERWRITE if overwrite else Existing.KEEP_IDENTICAL
    with wiring.reading(wiring.store_root(store_path, plan_path)) as store:
        selected = select(store, targets)
        entries = (entry for part in selected for entry in part.shortened())
        with counting("restored", sum(part.size() for part in selected)) as count:
            settings = RestoreOptions(existing, owner == "names", sync=sync, progress=count)
            wanted = _as_mine(entries) if owner == "none" else entries
            report = restore_entries(wanted, store.reader, directory, settings)
    _print(report, as_json)
    if report.damaged:
        return EXIT_DAMAGE
    return EXIT_LEFT_OUT if any(p.left_out for p in report.problems) else EXIT_DONE


def _as_mine(entries: Iterator[Entry]) -> Iterator[Entry]:
    """The entries as ours. A program that ran as its owner must not run as us instead."""
    from dataclasses import replace

    from cas.entry import Kind, Owner

    for entry in entries:
        mode = entry.owner.mode
        if entry.kind is not Kind.DIRECTORY:
            mode &= ~SET_ID
        yield replace(entry, owner=Owner(mode, os.geteuid(), os.getegid()))


def _print(report: RestoreReport, as_json: bool) -> None:
    from cli.events import problem_fields
    from cli.summary import print_problems

    counts = {
        "files": report.files,
        "bytes": report.bytes,
        "directories": report.directories,
        "symlinks": report.symlinks,
        "specials": report.specials,
        "links": report.links,
        "kept": report.kept,
    }
    if as_json:
        for problem in report.problems:
            output.json_event("problem", problem_fields(problem))
        output.json_event("summary", counts)
        return
    kept = f", {output.number(report.kept)} were there already" if report.kept else ""
    output.say(
        f"{output.plural(report.files, 'file')} ({output.size(report.bytes)}) and "
        f"{output.plural(report.directories, 'directory', 'directories')} restored{kept}"
    )
    print_problems([("", problem) for problem in report.problems], None)
