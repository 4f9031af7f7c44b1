"""`cas serve`: the agent, on standard input and output."""

from __future__ import annotations

import os
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
def command(roots: tuple[str, ...]) -> int:
    """Be the agent: read what is asked for, and write nothing but the cache of scans.

    `cas sync` starts it at the source by itself, through ssh; by hand it is of no use. The cache
    is $XDG_CACHE_HOME/cas, or ~/.cache/cas.

    \b
    Example, in ~/.ssh/authorized_keys at the source, for a key that may only read /srv:
      restrict,command="cas serve --root /srv" ssh-ed25519 AAAA... somebody
    """
    if sys.stdin.isatty() or sys.stdout.isatty():
        raise UsageError(
            "the agent speaks to a program, not to a terminal",
            advice="`cas sync` starts it over there by itself",
        )
    import asyncio

    from cas.agent.serve import serve
    from cas.transport.pipes import PipeTransport
    from cli.wiring import scan_cache

    allowed = [os.fsencode(os.path.abspath(os.path.expanduser(root))) for root in roots]
    read_fd, write_fd = _take_standard_streams()

    async def run() -> None:
        cache = scan_cache()
        try:
            await serve(PipeTransport(read_fd, write_fd, "the client"), cache, allowed or None)
        finally:
            cache.close()

    asyncio.run(run())
    return EXIT_DONE


def _take_standard_streams() -> tuple[int, int]:
    """Descriptors of our own for them; what anything else prints goes to standard error, since
    one stray line would break the protocol."""
    sys.stdout.flush()
    read_fd, write_fd = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.dup2(2, 1)
    return read_fd, write_fd
