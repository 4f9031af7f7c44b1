"""`cas serve`: the agent, on standard input and output."""

from __future__ import annotations

import os
import re
import signal
import sys

import click

from cas.errors import EXIT_DONE, UsageError


@click.command("serve", short_help="Be the agent at the source (started by sync).")
@click.option(
    "--root",
    "roots",
    metavar="DIR",
    multiple=True,
    help="Read only at and below DIR; may be given several times.  [default: everything]",
)
@click.option("--attach", metavar="NAME", help="Be one more connection to a running agent.")
def command(roots: tuple[str, ...], attach: str | None) -> int:
    """Be the agent: read what is asked for, and write nothing but the cache of scans.

    `cas sync` starts it at the source by itself, through ssh; by hand it is of no use. The cache
    is $XDG_CACHE_HOME/cas, or ~/.cache/cas.

    \b
    Example, in ~/.ssh/authorized_keys there, for a key that may only read /srv:
      restrict,command="cas serve --root /srv" ssh-ed25519 AAAA... somebody
    """
    if sys.stdin.isatty() or sys.stdout.isatty():
        raise UsageError(
            "the agent speaks to a program, not to a terminal",
            advice="`cas sync` starts it over there by itself",
        )
    attach = attach or _asked_for()
    if attach is not None:
        return _attach(attach)
    import asyncio

    from cas.agent.serve import serve
    from cas.transport.pipes import standard_streams
    from cas.unpack.footprint import share_arenas
    from cli.wiring import scan_cache

    allowed = [os.fsencode(os.path.abspath(os.path.expanduser(root))) for root in roots]

    async def run() -> None:
        serving = asyncio.current_task()
        if serving is not None:  # told to end, we take the socket for lanes with us
            asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, serving.cancel)
        client = standard_streams()
        cache = scan_cache()
        try:
            await serve(client, cache, allowed or None)
        finally:
            cache.close()

    share_arenas()
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # a lost connection is not the end
    try:
        asyncio.run(run())
    except asyncio.CancelledError:
        os.kill(os.getpid(), signal.SIGTERM)  # whoever waits for us sees what ended us
    return EXIT_DONE


def _asked_for() -> str | None:
    """The agent that a client asks for whose key may run no other command than this one."""
    asked = re.search(r"--attach[ '\"]+([0-9a-f-]+)", os.environ.get("SSH_ORIGINAL_COMMAND", ""))
    return asked[1] if asked else None


def _attach(name: str) -> int:
    """Hand our streams to the agent of this name; little is imported for that."""
    from cas.agent.attach import attach, is_name

    if not is_name(name):
        raise UsageError("no agent has such a name", where=name)
    attach(name)
    return EXIT_DONE
