"""`cas adopt`: take in what is here already, so that it need not be fetched."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cli import options

if TYPE_CHECKING:
    from cas.plan import Plan

SOURCE = "adopted"
NAME_SHOWN = 60  # characters of a file's name in that of its tier
DIGITS = 8  # of the digest of its path, which tell apart what has one name


@click.command("adopt", short_help="Take in old downloads, whole or cut off.")
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path(exists=True))
@options.plan_option
@options.store_option
@options.network_option
@options.bytes_option
@options.json_option
def command(
    files: tuple[str, ...],
    plan_path: str | None,
    store_path: Path | None,
    allow_network_fs: bool,
    exact: bool,
    as_json: bool,
) -> int:
    """Take files of this machine into the store, so that what they hold is never fetched.

    Any file will do: an earlier download, one that was cut off anywhere, an older version, or a
    directory of them. Archives are taken apart, as at a source. Each becomes a tier of its own,
    `adopted-NAME-...`; the file itself is only read, and may be deleted afterwards.

    \b
    Examples:
      cas adopt ~/Downloads/image.oci.tar.incoming
      cas adopt /mnt/usb/home-2023.tar.gz old-checkout/
    """
    from cli import wiring
    from cli.pulling import Order, pull_from

    root = wiring.store_root(store_path, plan_path)
    order = Order(
        (), plan_path, root, False, as_json, allow_network_fs=allow_network_fs, exact=exact
    )
    return pull_from(plan_of(files, root), order)


def plan_of(files: tuple[str, ...], store: Path) -> Plan:
    """A plan with a tier for each of `files`."""
    from cas.plan import Plan, Source, Tier

    paths = dict.fromkeys(bytes(Path(file).resolve()) for file in files)
    tiers = tuple(Tier(tier_name(path), SOURCE, (path,)) for path in paths)
    return Plan("", str(store), {SOURCE: Source(SOURCE)}, tiers, {})


def tier_name(path: bytes) -> str:
    """What the tier of an adopted file is called."""
    from cas.ids import digest_of

    name = path.rpartition(b"/")[2].decode("ascii", "replace")
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", name)[:NAME_SHOWN]
    return f"adopted-{name}-{digest_of(path).hex()[:DIGITS]}"
