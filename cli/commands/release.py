"""`cas release`: say whether the far end may go."""

from __future__ import annotations

from pathlib import Path

import click

from cas.errors import UsageError
from cli import options, output


@click.command("release", short_help="Say what may be let go at the source, and what not.")
@click.argument("names", metavar="TIER|SET|SOURCE...", nargs=-1)
@options.plan_option
@options.store_option
@click.option("-o", "--output", "statement", metavar="FILE", type=options.FILE,
              help="Write the statement there, as JSON.")  # fmt: skip
@click.option("--sums", metavar="FILE", type=options.FILE,
              help="Write the digests of the files, for `sha256sum -c` at either end.")  # fmt: skip
@click.option("--check", metavar="FILE", type=options.FILE,
              help="Only say whether a statement is as it was made.")  # fmt: skip
@click.option("--no-ask", is_flag=True, help="Do not ask the source what it has now.")
@options.give_up_option
@options.ssh_config_option
@options.bytes_option
@options.json_option
def command(
    names: tuple[str, ...],
    plan_path: str | None,
    store_path: Path | None,
    statement: Path | None,
    sums: Path | None,
    check: Path | None,
    no_ask: bool,
    give_up: float,
    ssh_config: str | None,
    exact: bool,
    as_json: bool,
) -> int:
    """Say which files at the source are held here completely, and which are not and why.

    Every file is made again now and compared with its digest, archives included, and the source is
    asked what it has today. The exit code is 0 only if all of it is safe here, otherwise 3. The
    statement (-o) carries a digest over itself. Nothing is ever deleted at a source: cas cannot.

    \b
    Examples:
      cas release minimal -o minimal.json
      cas release npu --sums npu.sha256
      ssh npu 'cd / && sha256sum -c' < npu.sha256
      cas release --check minimal.json
    """
    if check is not None:
        return _check(check, as_json=as_json)
    if not names:
        raise UsageError("what is to be let go is missing", advice="name a tier, a set or a source")
    from cli.releasing import Order, release
    from cli.wiring import Wishes

    wishes = Wishes(ssh_config=ssh_config, give_up=give_up)
    return release(
        Order(
            names, plan_path, store_path, not no_ask, as_json, statement, sums, wishes,
            output.sizes(exact),
        )
    )  # fmt: skip


def _check(path: Path, *, as_json: bool) -> int:
    from cas.errors import EXIT_DONE, EXIT_LEFT_OUT, FormatError
    from cas.release.statement import STATEMENT_LIMIT, check_statement

    try:
        with path.open("rb") as file:
            fields = check_statement(file.read(STATEMENT_LIMIT))
    except OSError as error:
        raise UsageError(f"cannot be read: {error.strerror}", where=str(path)) from error
    except FormatError as error:
        raise FormatError(str(error), where=str(path)) from error
    if as_json:
        output.json_line(fields)
    else:
        safe = "all of it was safe" if fields.get("safe") else "not all of it was safe"
        made = fields.get("made_ms")
        when = output.moment(made) if isinstance(made, int) else "some day"
        output.result(f"The statement is as it was made on {when}: {safe}.")
    return EXIT_DONE if fields.get("safe") is True else EXIT_LEFT_OUT
