"""What the commands' arguments mean: text from the command line becomes values here.

Options that several commands have are defined once. `--plan` and `--store` can also come from the
environment (CAS_PLAN, CAS_STORE); a store that is named neither way is that of the plan, and a plan
that is not named is plan.toml here or above.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

import click

from cas.errors import UsageError

_TIMED = re.compile(r"([^:]*@\d+-\d+-\d+[T ]\d+:\d+(?::\d+)?)(?::(.*))?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Target:
    """A tier (perhaps as `TIER@WHICH`, see `cli/selection.py`), or what is at and below a path of
    it. `path` is an entry's path: without the leading slash, and empty for all of the tier."""

    tier: str
    path: bytes = b""


def parse_target(text: str) -> Target:
    """`TIER` or `TIER:PATH`, the path as the source knows it, with or without its leading slash.

    Raises UsageError for an empty tier, and for a path that goes up.
    """
    timed = _TIMED.fullmatch(text)
    tier, _, path = text.partition(":")
    if timed:
        tier, path = timed[1], timed[2] or ""
    if not tier:
        raise UsageError("the tier's name is missing", where=text, advice="write TIER:PATH")
    parts = [part for part in os.fsencode(path).split(b"/") if part not in (b"", b".")]
    if b".." in parts:
        raise UsageError("a path cannot go up with `..`", where=text)
    return Target(tier, b"/".join(parts))


DIRECTORY = click.Path(path_type=Path, file_okay=False)
FILE = click.Path(path_type=Path, dir_okay=False)


targets_argument = click.argument(
    "targets", metavar="TIER[:PATH]...", type=parse_target, nargs=-1, required=True
)
plan_option = click.option(
    "--plan",
    "plan_path",
    metavar="FILE",
    envvar="CAS_PLAN",
    help="The plan.  [default: plan.toml here or above]",
)
store_option = click.option(
    "--store",
    "store_path",
    metavar="DIR",
    type=DIRECTORY,
    envvar="CAS_STORE",
    help="The store.  [default: the plan's]",
)
json_option = click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
bytes_option = click.option("--bytes", "exact", is_flag=True, help="Sizes in bytes, not rounded.")
ssh_config_option = click.option(
    "--ssh-config",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False),
    help="Read this instead of ~/.ssh/config, as `ssh -F` does.",
)
lanes_option = click.option(
    "--lanes",
    type=click.IntRange(1, 64),
    metavar="N",
    help="Use N connections to each host.  [default: the plan's, or as many as pay]",
)
give_up_option = click.option(
    "--give-up",
    type=click.FloatRange(min=0),
    metavar="SECONDS",
    default=600,
    show_default=True,
    help="Give a host up when it could not be reached for so long.",
)
bootstrap_option = click.option(
    "--bootstrap",
    "bootstraps",
    is_flag=True,
    help="Put an agent on a host that has none, as `cas bootstrap`.  [default: ask, on a terminal]",
)
bwlimit_option = click.option(
    "--bwlimit",
    metavar="RATE|TIMETABLE",
    default="off",
    help='Fetch at most so many bytes a second: 500k, 2M, "08:00,512k 19:00,off".  [default: off]',
)
network_option = click.option(
    "--allow-network-fs",
    is_flag=True,
    help="Write to a store on a network file system all the same.",
)
