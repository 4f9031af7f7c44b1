"""`cas init`: write a plan to start from."""

from __future__ import annotations

import click

from cas.errors import EXIT_DONE, UsageError
from cli import output


@click.command("init", short_help="Write a plan to start from.")
@click.argument("path", metavar="[FILE]", default="plan.toml", type=click.Path(dir_okay=False))
def command(path: str) -> int:
    """Write a plan with an example of everything, to be edited; `plan.toml` without a name.

    A file that is there is never replaced.

    \b
    Example:
      cas init && $EDITOR plan.toml && cas scan
    """
    from cas.plan_load import example_plan

    try:
        with open(path, "x", encoding="utf-8") as file:
            file.write(example_plan())
    except FileExistsError:
        raise UsageError(
            "there is a file already", where=path, advice="edit it, or name another"
        ) from None
    except OSError as error:
        raise UsageError(f"cannot be written: {error.strerror}", where=path) from error
    output.say(f"{path} is written; edit it, then run `cas scan`")
    return EXIT_DONE
