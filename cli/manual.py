"""Manual pages, made of the texts that `--help` shows, in roff's man macros (groff_man(7)).

A help text is plain paragraphs, and blocks behind a line with `\b` alone, which stand as they are:
a word with a colon above indented lines. That is all there is to turn into roff. What has no place
in a help text and belongs on a page (exit codes, environment, files) is here.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator, Sequence

import click

SECTION = "1"

# What roff would take for its own, or turn into typography that no shell understands.
SPELT = str.maketrans({
    "\\": "\\e", "-": "\\-", "'": "\\(aq", "`": "\\(ga", "^": "\\(ha", "~": "\\(ti"
})  # fmt: skip

EXIT_CODES = (
    ("0", "done"),
    ("1", "failed; one line on standard error says what, where, and what to do"),
    ("2", "the command line or the plan is wrong"),
    ("3", "done, but something was left out, and it is listed"),
    ("10", "there is no store"),
    ("11", "another process is writing to the store"),
    ("12", "damage was found"),
    ("130", "interrupted; everything received so far is kept"),
)
ENVIRONMENT = (
    ("CAS_PLAN", "The plan, where no --plan is given."),
    ("CAS_STORE", "The store, where no --store is given."),
    ("NO_COLOR", "If this is not empty, there are no colours on a terminal either."),
    ("XDG_CACHE_HOME", "The cache of scans is in cas below this directory, or below ~/.cache."),
)
FILES = (
    ("plan.toml", "The plan, in the working directory or the nearest one above it."),
    ("~/.ssh/config", "What hosts are called, and how they are reached."),
)


def page_name(command: str) -> str:
    """The page of a command, `cas-sync`; that of cas for an empty one."""
    return f"cas-{command}" if command else "cas"


def main_page(group: click.Group, commands: Sequence[click.Command], version: str) -> str:
    """The page of cas itself, which lists the others."""
    context = click.Context(group, info_name="cas", **group.context_settings)
    listed = [(f"cas {c.name}", c.get_short_help_str(200)) for c in commands]
    body = [
        *_head("", _first_sentence(group), version),
        *_synopsis("cas", group, context),
        *_description(group),
        ".SH COMMANDS",
        *_tagged(listed),
        *_options(group, context),
        ".SH EXIT STATUS",
        *_tagged(EXIT_CODES),
        ".SH ENVIRONMENT",
        *_tagged(ENVIRONMENT),
        ".SH FILES",
        *_tagged(FILES),
        *_see_also(page_name(str(c.name)) for c in commands),
    ]
    return _page(body)


def command_page(group: click.Group, command: click.Command, version: str) -> str:
    """The page of one command, a subcommand of `group`."""
    name = str(command.name)
    above = click.Context(group, info_name="cas", **group.context_settings)
    context = click.Context(command, info_name=name, parent=above)
    body = [
        *_head(name, command.get_short_help_str(200), version),
        *_synopsis(f"cas {name}", command, context),
        *_description(command),
        *_options(command, context),
        ".SH EXIT STATUS",
        _text("As of every command; they are listed in cas(1)."),
        *_see_also(["cas"]),
    ]
    return _page(body)


def escaped(text: str) -> str:
    """`text` so that roff shows it as it is, copied with the minus signs and quotes of a shell."""
    return text.translate(SPELT)


def _text(text: str) -> str:
    """A line of running text: `code` in bold, and no dot that would be a request."""
    parts = [escaped(part) for part in text.split("`")]
    if len(parts) % 2 == 0:  # one that is alone stands for itself
        return _guarded(escaped(text))
    return _guarded("".join(f"\\fB{p}\\fR" if i % 2 else p for i, p in enumerate(parts)))


def _guarded(line: str) -> str:
    return f"\\&{line}" if line.startswith((".", "\\(aq")) else line


def _head(name: str, summary: str, version: str) -> list[str]:
    page = page_name(name)
    return [
        f'.TH {escaped(page.upper())} {SECTION} "" "cas {escaped(version)}" "cas manual"',
        ".SH NAME",
        f"{escaped(page)} \\- {escaped(summary[:1].lower() + summary[1:].rstrip('.'))}",
    ]


def _synopsis(path: str, command: click.Command, context: click.Context) -> list[str]:
    words = " ".join(command.collect_usage_pieces(context))
    return [".SH SYNOPSIS", f".B {escaped(path)}", _guarded(escaped(words))]


def _description(command: click.Command) -> list[str]:
    lines: list[str] = [".SH DESCRIPTION"]
    for block in re.split(r"\n\s*\n", inspect.cleandoc(command.help or "")):
        if block.startswith("\b"):
            lines += _verbatim(block.split("\n")[1:])
        else:
            lines += [".PP", _text(" ".join(block.split()))]
    return lines


def _verbatim(lines: Sequence[str]) -> list[str]:
    """A block as it stands; a title above it makes it a section."""
    title = re.match("(Examples?)(.*):$", lines[0])
    found = [] if title is None else [f".SH {title[1].upper()}"]
    if title is not None and title[2]:
        found.append(_text(f"{title[1]}{title[2]}:"))
    rest = [line.strip() if title else line for line in lines[1 if title else 0 :]]
    return [
        *found,
        ".PP",
        ".RS 4",
        ".nf",
        *(_guarded(escaped(line)) for line in rest),
        ".fi",
        ".RE",
    ]


def _options(command: click.Command, context: click.Context) -> list[str]:
    named = [param for param in command.get_params(context) if isinstance(param, click.Option)]
    records = [option.get_help_record(context) for option in named]
    return [".SH OPTIONS", *_tagged(record for record in records if record is not None)]


def _tagged(rows: Iterable[tuple[str, str]]) -> Iterator[str]:
    for name, text in rows:
        yield from (".TP", f".B {escaped(name)}", _text(" ".join(text.split())))


def _see_also(pages: Iterable[str]) -> list[str]:
    named = [f"\\fB{escaped(page)}\\fR({SECTION})" for page in pages]
    return [".SH SEE ALSO", *(f"{name}," for name in named[:-1]), named[-1]]


def _first_sentence(command: click.Command) -> str:
    return inspect.cleandoc(command.help or "").partition("\n")[0]


def _page(lines: Sequence[str]) -> str:
    text = "\n".join(lines) + "\n"
    return re.sub(r"^(\.SH .*\n)\.PP\n", r"\1", text, flags=re.MULTILINE)
