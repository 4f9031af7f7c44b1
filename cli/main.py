"""`cas`: finds the command, runs it, and turns whatever ended it into an exit code.

Commands lie in `cli/commands/`, one file each, and are imported when they are asked for; they
import their work when they run. So `cas --help` is quick.

Exit codes are decided here and nowhere else: an error of ours has its own (`cas/errors.py`); a
command returns EXIT_DONE, or EXIT_LEFT_OUT when it listed something that it had to leave out.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import sys
from collections.abc import Callable, MutableMapping, Sequence
from typing import Any, NoReturn

import click

from cas import __version__
from cas.errors import EXIT_DONE, EXIT_FAILED, EXIT_INTERRUPTED, EXIT_USAGE, CasError, UsageError
from cli import output

# In the order of a user's first day; `cas --help` shows them so.
COMMANDS = (
    "init",
    "doctor",
    "bootstrap",
    "scan",
    "plan",
    "sync",
    "limit",
    "adopt",
    "status",
    "ls",
    "find",
    "cat",
    "restore",
    "bundle",
    "redundancy",
    "verify",
    "release",
    "audit",
    "diff",
    "log",
    "report",
    "repair",
    "serve",
    "completion",
    "man",
)

# What cas makes by the hundred thousand (entries, digests, statuses) has no cycles. To look for
# some as often as Python does by itself takes a twentieth of a scan, and of the start.
OBJECTS_BETWEEN_COLLECTIONS = 50_000


class _Interrupted(CasError):
    """A signal ended the command."""

    exit_code = EXIT_INTERRUPTED


class _Commands(click.Group):
    """The commands, imported one by one, and the end of all of them."""

    def list_commands(self, _ctx: click.Context) -> list[str]:
        """See click."""
        return list(COMMANDS)

    def get_command(self, _ctx: click.Context, cmd_name: str) -> click.Command | None:
        """See click."""
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(f"cli.commands.{cmd_name}").command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does it, with a guess at what a wrong name should have been."""
        from cas.plan import did_you_mean

        name = args[0]
        if name in COMMANDS or name.startswith("-"):
            return super().resolve_command(ctx, args)
        raise UsageError(f"there is no command {name!r}", advice=did_you_mean(name, COMMANDS))

    def invoke(self, ctx: click.Context) -> Any:
        """As click does it, but that it would begin a line and forget what an interrupt says."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as error:
            raise _Interrupted("; ".join(["interrupted", *map(str, error.args)])) from None

    def main(  # type: ignore[override]  # click's has two forms, this one never returns
        self, args: Sequence[str] | None = None, prog_name: str | None = None, **extra: Any
    ) -> NoReturn:
        """Run a command line and exit."""
        del prog_name
        extra.pop("standalone_mode", None)
        gc.set_threshold(OBJECTS_BETWEEN_COLLECTIONS)
        output.survive_any_locale()
        code = _exit_code(lambda: self.run_command(args, extra))
        gc.freeze()  # or Python would look through everything once more before it ends
        sys.exit(_flushed(code))

    def run_command(self, args: Sequence[str] | None, extra: MutableMapping[str, Any]) -> int:
        """Run a command line; its exit code, or whatever it raises."""
        if "_CAS_COMPLETE" in os.environ:  # a shell asks: see cli/completing.py
            from cli.completing import register

            register()
        return super().main(args, prog_name="cas", standalone_mode=False, **extra) or EXIT_DONE


@click.command(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, "-V", "--version", message="cas %(version)s")
def main() -> None:
    """Bring what is worth having off a host over a bad link, each byte once.

    \b
    cas init                     write a plan, then edit it
    cas scan                     what would each tier cost?
    cas sync                     fetch, the most valuable tier first
    cas restore TIER --to DIR    write what was fetched
    """


def _exit_code(run: Callable[[], int]) -> int:
    try:
        return run()
    except CasError as error:
        output.say_error(error)
        return error.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return EXIT_USAGE
    except click.ClickException as error:
        output.say_error(_usage(error))
        return EXIT_USAGE
    except (click.Abort, KeyboardInterrupt):  # before a command began
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        return _reader_gone()
    except OSError as error:
        # One that no edge has mapped: rare, and still not worth a traceback.
        where = f"{output.printable(str(error.filename))}: " if error.filename else ""
        output.say_error(f"{where}{error.strerror or error}")
        return EXIT_FAILED


def _usage(error: click.ClickException) -> str:
    what = error.format_message().rstrip(".")
    context = error.ctx if isinstance(error, click.UsageError) else None
    path = context.command_path if context is not None else "cas"
    return f"{what[:1].lower()}{what[1:]} (see {path} --help)"


def _flushed(code: int) -> int:
    """`code`, once standard output is written; a full disk or a closed pipe shows only here."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        return _reader_gone()
    except OSError as error:
        output.say_error(f"standard output cannot be written: {error.strerror}")
        _forget_output()
        return EXIT_FAILED
    return code


def _reader_gone() -> int:
    """Whoever read our output has had enough (`cas ls | head`): nothing to say about it."""
    _forget_output()
    return EXIT_FAILED


def _forget_output() -> None:
    # Python flushes again on its way out, and would complain there.
    with contextlib.suppress(OSError, ValueError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)
