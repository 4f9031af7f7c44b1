"""`cas verify`: is what is held right, and is what was restored the same?"""

from __future__ import annotations

from pathlib import Path

import click

from cas.errors import UsageError
from cli import options
from cli.options import Target


@click.command("verify", short_help="Check the store, or a restored tree.")
@click.argument("targets", metavar="[TIER[:PATH]]...", type=options.parse_target, nargs=-1)
@click.option(
    "--repair",
    is_flag=True,
    help="Let what is damaged be fetched again: the next `cas sync` does it.",
)
@click.option(
    "--tree",
    metavar="DIR",
    type=options.DIRECTORY,
    help="Compare what is below DIR, as `cas restore --to DIR` makes it, with the tiers named.",
)
@click.option("--owners", is_flag=True, help="With --tree: compare owners too, by number.")
@click.option("--manifest", is_flag=True, help="Write the digests of files, for `sha256sum -c`.")
@options.plan_option
@options.store_option
@options.json_option
def command(
    targets: tuple[Target, ...],
    repair: bool,
    tree: Path | None,
    owners: bool,
    manifest: bool,
    plan_path: str | None,
    store_path: Path | None,
    as_json: bool,
) -> int:
    """Read all that the store holds, hash it, and say what is damaged and which files that is.

    With --tree, compare a restored tree with tiers instead: content, kind, mode, time, attributes.
    With --manifest, write what `sha256sum -c` needs to do so elsewhere. The exit code is 12
    where anything is damaged or differs, 3 where content has not all come.

    \b
    Examples:
      cas verify
      cas verify --repair && cas sync
      cas verify --tree ./out 00-critical-context
      cas verify --manifest source > source.sha256
    """
    from cli import checking, wiring

    _check_usage(targets, repair=repair, tree=tree, owners=owners, manifest=manifest)
    root = wiring.store_root(store_path, plan_path)
    if not targets:
        return checking.check_store(root, repair=repair, as_json=as_json)
    if tree is not None:
        return checking.check_tree(root, targets, tree, owners=owners, as_json=as_json)
    return checking.write_manifest(root, targets)


def _check_usage(
    targets: tuple[Target, ...], *, repair: bool, tree: Path | None, owners: bool, manifest: bool
) -> None:
    if manifest and tree is not None:
        raise UsageError("--tree and --manifest are two different things")
    if (manifest or tree is not None) and not targets:
        raise UsageError("the tier's name is missing", advice="write TIER or TIER:PATH")
    if targets and not manifest and tree is None:
        raise UsageError(
            "a store is verified as a whole",
            advice="leave the tier out, or compare it with --tree DIR",
        )
    if repair and targets:
        raise UsageError("--repair is for the store", advice="leave the tier out")
    if owners and tree is None:
        raise UsageError("--owners goes with --tree")
