"""`cas man`: manual pages."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cas.errors import EXIT_DONE, CasError, UsageError
from cli import options, output

if TYPE_CHECKING:
    from collections.abc import Iterable


@click.command("man", short_help="Show or write manual pages.")
@click.argument("name", metavar="[COMMAND]", required=False)
@click.option(
    "--to", "directory", metavar="DIR", type=options.DIRECTORY, help="Write all pages into DIR."
)
def command(name: str | None, directory: Path | None) -> int:
    """Show the manual page of cas or of a command: by `man` on a terminal, elsewhere as roff.

    The pages say what --help says. With --to all of them are written, for a package or for a
    MANPATH: cas.1, cas-sync.1 and so on.

    \b
    Examples:
      cas man sync
      cas man --to ~/.local/share/man/man1 && man cas-sync
    """
    if directory is None:
        _show(_page(name or ""))
        return EXIT_DONE
    if name is not None:
        raise UsageError("--to writes all pages", advice="leave the command out")
    return _write(directory)


def _page(name: str) -> str:
    from cas import __version__
    from cas.plan import did_you_mean
    from cli import manual
    from cli.main import COMMANDS, main

    if not name:
        return manual.main_page(main, list(_commands()), __version__)
    if name not in COMMANDS:
        raise UsageError(f"there is no command {name!r}", advice=did_you_mean(name, COMMANDS))
    return manual.command_page(main, _command(name), __version__)


def _commands() -> Iterable[click.Command]:
    from cli.main import COMMANDS

    return map(_command, COMMANDS)


def _command(name: str) -> click.Command:
    from cli.main import main

    found = main.get_command(click.Context(main), name)
    assert found is not None
    return found


def _show(page: str) -> None:
    if not sys.stdout.isatty():
        sys.stdout.write(page)
    elif shutil.which("man") is None:
        raise CasError("man is not installed here", advice="`cas COMMAND --help` says the same")
    else:
        subprocess.run(["man", "-l", "-"], input=page.encode(), check=False)


def _write(directory: Path) -> int:
    from cli.main import COMMANDS
    from cli.manual import SECTION, page_name

    try:
        directory.mkdir(parents=True, exist_ok=True)
        for name in ("", *COMMANDS):
            (directory / f"{page_name(name)}.{SECTION}").write_text(_page(name))
    except OSError as error:
        where = str(error.filename or directory)
        raise CasError(f"cannot be written: {error.strerror}", where=where) from error
    output.say(f"{output.plural(1 + len(COMMANDS), 'page')} written to {directory}")
    return EXIT_DONE
