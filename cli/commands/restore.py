"""`cas restore`: write what was fetched."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cas.errors import EXIT_DAMAGE, EXIT_DONE, EXIT_LEFT_OUT
from cli import options, output
from cli.options import Target

if TYPE_CHECKING:
    from cas.entry import Entry, Problem
    from cas.inside.scratch import Scratch
    from cas.interfaces import ContentSource
    from cas.restore.report import RestoreReport
    from cas.store.store import Store

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
    ARCHIVE!/PATH is what lies in an archive: its members become files, archives in it are left so.

    \b
    Examples:
      cas restore 00-critical-context --to ./out
      cas restore 02-user-workspace:/home/u/llm source --to /srv --owner none
    """
    from cas.restore.report import Existing, RestoreOptions
    from cas.restore.tree import restore_entries
    from cli import wiring
    from cli.counter import counting

    existing = Existing.OVERWRITE if overwrite else Existing.KEEP_IDENTICAL
    with (
        wiring.reading(wiring.store_root(store_path, plan_path)) as store,
        closing(_Parts(store, targets, directory)) as parts,
    ):
        entries = chain.from_iterable(parts.entries)
        with counting("restored", parts.size) as count:
            settings = RestoreOptions(existing, owner == "names", sync=sync, progress=count)
            wanted = _as_mine(entries) if owner == "none" else entries
            report = restore_entries(wanted, parts.source, directory, settings)
        report.problems += parts.problems
    _print(report, as_json)
    if report.damaged:
        return EXIT_DAMAGE
    return EXIT_LEFT_OUT if any(p.left_out for p in report.problems) else EXIT_DONE


class _Parts:
    """What the targets mean, and where it is read from."""

    def __init__(self, store: Store, targets: Sequence[Target], directory: Path) -> None:
        from cli.inside import find_inside, open_scratch
        from cli.selection import select, snapshot_of

        self.source: ContentSource = store.reader
        self.entries: list[Iterable[Entry]] = []
        self.problems: list[Problem] = []
        self.size = 0
        self._scratch: Scratch | None = None
        for target in targets:
            inside = find_inside(store, snapshot_of(store, target.tier), target)
            if inside is None:
                (part,) = select(store, [target])
                self.entries.append(part.shortened())
                self.size += part.size()
                continue
            self.source = self._scratch = self._scratch or open_scratch(store, directory)
            entries, problems = inside.restored(self._scratch)
            self.entries.append(entries)
            self.problems += problems
            self.size += sum(entry.size for entry in entries)

    def close(self) -> None:
        """Give back what was taken for reading archives."""
        if self._scratch is not None:
            self._scratch.close()


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
