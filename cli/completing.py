"""What a shell's completion is answered with; `cas completion SHELL` prints the shell's half.

The shell's function calls `cas` with `_CAS_COMPLETE` set and the line up to the cursor, click finds
the command and the parameter that the cursor is in, and each answer is a line `type TAB value TAB
help`. Types: `plain` is whole, `part` goes on (no space after it), `file` and `dir` leave it to the
shell.

What a parameter takes is read from its metavar, the same that the help shows: TIER, SET, SOURCE and
RUN are names of the plan and the store, PATH a path of the tier before it. Files and choices are
completed by click. Nothing here fails or talks: where nothing is found, nothing is offered.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem, ShellComplete, add_completion_class

from cas.errors import CasError
from cli.completing_scripts import SCRIPTS

if TYPE_CHECKING:
    from cas.plan import Plan

VARIABLE = "_CAS_COMPLETE"
SPECIAL = re.compile(r"""[\s"'\\$`&|;<>()*?\[\]{}!#~^]""")
SPECIAL_IN_DOUBLE = re.compile(r'["\\$`]')


@dataclass(frozen=True, slots=True)
class Typed:
    """A command line up to the cursor: whole words, and the one that the cursor is in, of which
    the shell lets the first `kept` characters stand. `quote` is the one that is still open."""

    words: tuple[str, ...]
    word: str
    kept: int = 0
    quote: str = ""


def read_line(line: str, breaks: str) -> Typed:
    """`line` as a shell reads it; `breaks` are the characters that end a word for its completion
    without ending it for the command (bash: COMP_WORDBREAKS)."""
    words: list[str] = []
    word, kept, quote, begun = "", 0, "", False
    chars = iter(line)
    for char in chars:
        if not quote and char.isspace():
            words += [word] if begun else []
            word, kept, begun = "", 0, False
            continue
        begun = True
        if char == "\\" and quote != "'":
            word += next(chars, "")
        elif char == quote:
            quote, kept = "", len(word)
        elif not quote and char in "'\"":
            quote, kept = char, len(word)
        else:
            word += char
            kept = len(word) if char in breaks and not quote else kept
    return Typed(tuple(words), word, kept, quote)


def in_bash(value: str, typed: Typed) -> str:
    """What bash must put in the place of the word: it does neither strip nor quote."""
    rest = value[typed.kept :]
    if typed.quote == "'":
        return rest.replace("'", "'\\''")
    special = SPECIAL_IN_DOUBLE if typed.quote else SPECIAL
    return special.sub(lambda found: "\\" + found[0], rest)


def register() -> None:
    """Let click know the three shells."""
    for shell in SCRIPTS:
        add_completion_class(type(f"_{shell.title()}", (_Answers,), {"name": shell}))


class _Answers(ShellComplete):
    """See click: from what a shell has said to what it is answered."""

    def source(self) -> str:
        return SCRIPTS[self.name]

    def complete(self) -> str:
        breaks = os.environ.get("COMP_WORDBREAKS", "") if self.name == "bash" else ""
        typed = read_line(os.environ.get("COMP_LINE", ""), breaks)
        option = re.match("--[^=]*=", typed.word)
        before = option[0] if option else ""
        found: list[CompletionItem[str]] = []
        with suppress(CasError, OSError):
            found = self.get_completions(list(typed.words[1:]), typed.word)
        return "\n".join(self._line(item, before + item.value, typed) for item in found)

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem[str]]:
        """As click does it, with what metavars mean."""
        name = next((arg for arg in args if not arg.startswith("-")), "")
        command = self.cli.get_command(click.Context(self.cli), name)  # type: ignore[attr-defined]
        for param in command.params if command else ():
            if not isinstance(param.type, click.Path | click.Choice) and param.metavar:
                param.type = _Named(param.metavar)
        return super().get_completions(args, incomplete)

    def _line(self, item: CompletionItem[str], value: str, typed: Typed) -> str:
        if item.type != "plain":
            return f"{item.type}\t\t"
        kind = "part" if value.endswith((":", "/")) else "plain"
        if self.name == "bash":
            return f"{kind}\t{in_bash(value, typed)}\t"
        if self.name == "zsh":
            value = value.replace("\\", "\\\\").replace(":", "\\:")
        return f"{kind}\t{value}\t{item.help or ''}"


class _Named(click.types.StringParamType):
    """A parameter whose metavar says what may stand there."""

    name = "named"

    def __init__(self, metavar: str) -> None:
        self._words = set(re.findall("[A-Z]+", metavar))
        self._literal = re.findall("[a-z]+", metavar)
        self._lists = "," in metavar

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem[str]]:
        """See click."""
        del param
        if "FILE" in self._words:
            return [CompletionItem(incomplete, type="file")]
        before, comma, last = incomplete.rpartition(",") if self._lists else ("", "", incomplete)
        if "PATH" in self._words and ":" in last:
            return [CompletionItem(value) for value in _paths(ctx.params, last)]
        offers = dict(self._offers(ctx.params)) | dict.fromkeys(self._literal, "")
        return [
            CompletionItem(f"{before}{comma}{value}", help=text)
            for value, text in offers.items()
            if value.startswith(last)
        ]

    def _offers(self, params: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        """Names and what they are."""
        plan = _plan(params)
        if "TIER" in self._words:
            end = ":" if "PATH" in self._words else ""
            yield from ((tier + end, "tier") for tier in _tiers(plan, params))
        if "SET" in self._words and plan is not None:
            yield from ((name, f"set: {', '.join(of)}") for name, of in plan.sets.items())
        if "SOURCE" in self._words and plan is not None:
            yield from ((s.name, f"source: {s.host or 'here'}") for s in plan.sources.values())
        if "RUN" in self._words:
            yield from _runs(params)


def _plan(params: Mapping[str, Any]) -> Plan | None:
    from cli.wiring import maybe_plan

    with suppress(CasError, OSError):
        return maybe_plan(params.get("plan_path"))
    return None


def _tiers(plan: Plan | None, params: Mapping[str, Any]) -> Iterable[str]:
    """The plan's, then others that are held."""
    from cli import wiring

    tiers = [tier.name for tier in plan.tiers] if plan is not None else []
    with suppress(CasError, OSError):
        root = wiring.store_root(params.get("store_path"), params.get("plan_path"))
        with wiring.reading(root) as store:
            tiers += store.tiers()
    return dict.fromkeys(tiers)


def _runs(params: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The runs' first digits."""
    from cas.store.layout import Layout
    from cli import wiring

    with suppress(CasError, OSError):
        root = wiring.store_root(params.get("store_path"), params.get("plan_path"))
        yield from ((path.stem[:8], "run") for path in sorted(Layout(root).runs.glob("*.json")))


def _paths(params: Mapping[str, Any], target: str) -> list[str]:
    from cli import wiring
    from cli.completing_paths import complete_target

    with suppress(CasError, OSError):
        root = wiring.store_root(params.get("store_path"), params.get("plan_path"))
        with wiring.reading(root) as store:
            return complete_target(store, target)
    return []
