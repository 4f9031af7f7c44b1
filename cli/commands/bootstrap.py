"""`cas bootstrap`: put an agent on a host that has none."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cas.errors import EXIT_DONE, UsageError
from cli import options, output

if TYPE_CHECKING:
    from cas.plan import Source
    from cli.bootstrapping import Placed


@click.command("bootstrap", short_help="Put the agent on a host, without root.")
@click.argument("name", metavar="SOURCE|HOST")
@click.option(
    "--wheels",
    metavar="DIR",
    type=options.DIRECTORY,
    help="Take from these wheels what is not here for the host's Python.",
)
@click.option("--clean", is_flag=True, help="Remove agents of other versions that this put there.")
@options.plan_option
@options.ssh_config_option
@options.json_option
def command(
    name: str,
    wheels: Path | None,
    clean: bool,
    plan_path: str | None,
    ssh_config: str | None,
    as_json: bool,
) -> int:
    """Put the agent on a host that has sshd, a shell and a Python >= 3.10, and start it once.

    Neither root, nor pip, nor a way to the internet is needed there. Nothing else that cas does
    writes at the far end, and this writes below one directory only: ~/.cache/cas/agent, or where
    that cannot be, /var/tmp/cas-UID/agent and the like. `cas sync` then finds the agent by itself.
    Interrupted, it goes on from there the next time; what is there already is not sent again.

    \b
    Examples:
      cas bootstrap npu
      cas bootstrap --wheels ./wheels user@npu.example.org
    """
    from cli import interrupt, wiring
    from cli.bootstrapping import KEPT, bootstrap, job_for

    source = _source(name, plan_path)
    wishes = wiring.Wishes(ssh_config=ssh_config)
    if wheels is not None and not wheels.is_dir():
        raise UsageError("there is no such directory", where=str(wheels))
    job = replace(job_for(source, name, wishes, wheels), clean=clean)
    placed = interrupt.run(bootstrap(job), KEPT)
    if as_json:
        output.json_line(_fields(name, placed))
    else:
        _show(placed, source.agent)
    return EXIT_DONE


def _source(name: str, plan_path: str | None) -> Source:
    from cas.plan import Source
    from cli import wiring

    plan = wiring.maybe_plan(plan_path)
    known = None if plan is None else plan.sources.get(name)
    source = known or Source(name, host=name)
    if source.host is None:
        raise UsageError("this source is this machine, which has its agent", where=name)
    return source


def _fields(name: str, placed: Placed) -> dict[str, object]:
    hello = placed.hello
    return {
        "name": name,
        "agent": shlex.join(placed.agent),
        "kit": f"{placed.directory}/{placed.kit.name}",
        "python": placed.python.path,
        "python_version": placed.python.dotted,
        "machine": str(placed.python.machine),
        "libc": placed.python.libc,
        "size": placed.size,
        "sent": placed.sent,
        "kept": placed.kept,
        "removed": list(placed.removed),
        "in_path": placed.far.installed,
        "slow": [lack.name for lack in placed.kit.lacks],
        "cas": hello.version if hello is not None else "",
    }


def _show(placed: Placed, planned: str | None) -> None:
    from cas.bootstrap.lacking import commands, describe

    output.result(f"{describe(placed.python)} at {placed.python.path}")
    where = output.printable(f"{placed.directory}/{placed.kit.name}")
    if placed.sent:
        output.result(f"{output.size(placed.sent)} sent to {where}")
    else:
        output.result(f"{where} was there already, nothing was sent")
    for removed in placed.removed:
        output.result(f"removed {output.printable(removed)}")
    if placed.hello is not None:
        output.result(f"the agent answers: cas {output.printable(placed.hello.version)}")
    for lack in placed.kit.lacks:
        [fetch] = commands(placed.python, [lack])
        output.result(f"  ! {lack.name} is not compiled: {lack.why}; if there is a wheel of it, ")
        output.result(f"    `{fetch}` and --wheels wheels")
    agent = shlex.join(placed.agent)
    if planned not in (None, agent):
        output.result("  ! the plan says how to start another agent; for this one, that would be")
    elif placed.far.installed:
        path = output.printable(placed.far.installed)
        output.result(f"  ! {path} is in the PATH there, and used first unless the plan says:")
    else:
        output.result("`cas sync` finds it by itself; in a plan, that would be")
    output.result(f"agent = {json.dumps(agent)}")
