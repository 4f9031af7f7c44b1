"""`cas bundle`: tiers as one compressed tar archive."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cas.errors import EXIT_DONE, EXIT_LEFT_OUT
from cli import options, output
from cli.options import Target

if TYPE_CHECKING:
    from cas.bundle import BundleReport
    from cas.bundlefile import Part

SHARD_MIB = 64
MIB = 2**20


@click.command("bundle", short_help="Write tiers as one .tar.zst.")
@options.targets_argument
@click.option(
    "-o",
    "--output",
    "path",
    metavar="NAME",
    type=click.Path(path_type=Path, dir_okay=False),
    required=True,
    help="Write NAME, by custom NAME.tar.zst, and NAME.sha256 beside it.",
)
@click.option(
    "--shards",
    metavar="MIB",
    type=click.IntRange(1, 2**20),
    is_flag=False,
    flag_value=SHARD_MIB,
    help=f"Write NAME.000, NAME.001 ... of this many MiB each, {SHARD_MIB} if none are given.",
)
@click.option(
    "--level",
    metavar="N",
    type=click.IntRange(1, 22),
    default=9,
    show_default=True,
    help="zstd level.",
)
@click.option("--overwrite", is_flag=True, help="Replace a bundle of this name.")
@options.plan_option
@options.store_option
@options.json_option
def command(
    targets: tuple[Target, ...],
    path: Path,
    shards: int | None,
    level: int,
    overwrite: bool,
    plan_path: str | None,
    store_path: Path | None,
    as_json: bool,
) -> int:
    """Write tiers, or parts of them, as one compressed tar archive with its SHA-256.

    Paths are as for `cas restore`. All content is hashed on its way; the archive gets its name when
    all of it is there and right, and not at all if damage is met. What it cannot hold (sockets,
    content that has not come yet) is listed, with exit code 3.

    \b
    Examples:
      cas bundle 00-critical-context -o critical.tar.zst
      cas bundle 02-user-workspace:/home/u/llm -o llm.tar.zst --shards
      tar --zstd --xattrs --xattrs-include='*' -xpf critical.tar.zst
    """
    from cas.bundle import write_bundle
    from cas.bundlefile import BundleFiles
    from cas.restore.select import merged
    from cli import wiring
    from cli.counter import counting
    from cli.selection import select

    size = (shards or 0) * MIB
    with wiring.reading(wiring.store_root(store_path, plan_path)) as store:
        selected = select(store, targets)
        entries = merged(part.shortened() for part in selected)
        with BundleFiles(os.fsencode(path), shard_size=size, overwrite=overwrite) as files:
            with counting("bundled", sum(part.size() for part in selected)) as count:
                report = write_bundle(entries, store.reader, files, level=level, progress=count)
            whole = files.commit()
    _print(report, whole, files.parts, as_json)
    return EXIT_LEFT_OUT if any(p.left_out for p in report.problems) else EXIT_DONE


def _print(report: BundleReport, whole: Part, parts: int, as_json: bool) -> None:
    from cli.events import problem_fields
    from cli.summary import print_problems

    if as_json:
        for problem in report.problems:
            output.json_event("problem", problem_fields(problem))
        fields = {
            "names": report.names,
            "files": report.files,
            "bytes": report.bytes,
            "size": whole.size,
            "sha256": whole.digest.hex(),
            "parts": parts,
        }
        output.json_event("summary", fields)
        return
    shards = f" in {output.plural(parts, 'shard')}" if parts > 1 else ""
    output.say(
        f"{output.plural(report.files, 'file')} ({output.size(report.bytes)}) bundled: "
        f"{output.show(whole.name)}, {output.size(whole.size)}{shards}"
    )
    print_problems([("", problem) for problem in report.problems], None)
