"""What a sync or scan came to: a table, what was left out, and a line on what the wire carried."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from cas.entry import Problem
from cas.pull.state import Phase, SyncState, TierState
from cli import output
from cli.table import Column, hanging, render

if TYPE_CHECKING:
    from cli.forecast import Forecast

PROBLEMS_SHOWN = 20
RUN_DIGITS = 12

COSTS = (
    Column("tier", right=False),
    Column("names", expendable=3),
    Column("logical", expendable=2),
    Column("unique", expendable=1),
    Column("here"),
    Column("to fetch"),
)
ESTIMATES = (Column("wire, about"), Column("time", expendable=1))
STATE = Column("", right=False)
FETCHED = (
    Column("tier", right=False),
    Column("logical", expendable=4),
    Column("unique", expendable=5),
    Column("here", expendable=2),
    Column("fetched"),
    Column("wire", expendable=1),
    Column("time", expendable=3),
    Column("", right=False),
)


def report(
    state: SyncState,
    fields: Mapping[str, object],
    *,
    dry_run: bool,
    as_json: bool,
    size: output.Sizes = output.size,
    forecast: Forecast | None = None,
) -> None:
    """Say what a run came to; `fields` are its JSON summary."""
    if as_json:
        output.json_event("summary", fields)
        return
    begun = [tier for tier in state.tiers if tier.phase is not Phase.WAITING]
    if not begun:
        return
    if dry_run:
        _print_costs(state, size, forecast)
    else:
        rows = [_fetched(tier, size) for tier in state.tiers]
        print_table(FETCHED, [*rows, *_total(state, size)])
    problems = [(tier.name, problem) for tier in state.tiers for problem in tier.problems]
    print_problems(problems, PROBLEMS_SHOWN)
    if packed := sum(tier.packed for tier in state.tiers):
        output.result(f"{packed_text(packed)}: `cas status --problems` lists it")


def print_facts(facts: Iterable[tuple[str, str]], width: int, *, margin: str = "") -> None:
    """Names in `width` cells, each with what is to be said of it; on a terminal broken between
    words, and never below the names."""
    columns = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    for name, text in facts:
        for line in hanging(f"{margin}{name:<{width}}", text, columns):
            output.result(line)


def print_table(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> None:
    """A table on standard output, fitted to the terminal if that is one."""
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    titles, *lines = render(columns, rows, width)
    output.result(output.paint(titles, output.BOLD, sys.stdout))
    for line in lines:
        output.result(line)


def print_problems(problems: Sequence[tuple[str, Problem]], most: int | None) -> None:
    """One line for each problem (with its tier's name, if that says anything), at most `most`."""
    if not problems:
        return
    left_out = sum(problem.left_out for _, problem in problems)
    doubtful = len(problems) - left_out
    counts = [f"{output.number(left_out)} left out"] if left_out else []
    counts += [f"{output.number(doubtful)} taken with a doubt"] if doubtful else []
    output.result(output.paint(", ".join(counts) + ":", output.YELLOW, sys.stdout))
    # What is missing is worth more of the few lines than what is there.
    ordered = sorted(problems, key=lambda item: not item[1].left_out)
    for tier, problem in ordered[:most]:
        output.result(f"  {tier + ': ' if tier else ''}{problem_text(problem)}")
    if most is not None and len(problems) > most:
        rest = output.number(len(problems) - most)
        output.result(f"  and {rest} more; `cas status --problems` lists all")


def print_packed(packed: Sequence[tuple[str, Problem]]) -> None:
    """One line for each thing in an archive that was left as it is."""
    if packed:
        output.result(output.paint(packed_text(len(packed)) + ":", output.YELLOW, sys.stdout))
    for tier, problem in packed:
        output.result(f"  {tier}: {problem_text(problem)}")


def packed_text(count: int) -> str:
    """How often something in an archive was left as it is."""
    return f"{output.plural(count, 'thing')} in archives left packed"


def problem_text(problem: Problem) -> str:
    """A problem on one line."""
    hint = f" ({output.printable(problem.hint)})" if problem.hint else ""
    return f"{output.show_path(problem.path)}: {output.printable(problem.reason)}{hint}"


def _print_costs(state: SyncState, size: output.Sizes, forecast: Forecast | None) -> None:
    """What each tier would cost: bytes that were counted, and the wire's as they are foretold."""
    tiers = state.tiers
    columns = [*COSTS, *ESTIMATES[: len(_foretold(forecast, size))], STATE]
    rows = []
    for tier in tiers:
        sizes = map(size, (tier.logical, tier.unique, tier.here, tier.to_fetch))
        foretold = _foretold(forecast, size, tier.name)
        rows.append(
            [tier.name, output.number(tier.names), *sizes, *foretold, _state(tier, done="")]
        )
    if len(tiers) > 1:
        names, logical = (sum(t.names for t in tiers), sum(t.logical for t in tiers))
        to_fetch = size(sum(tier.to_fetch for tier in tiers))
        rows.append(["together", output.number(names), size(logical), "", "", to_fetch,
                     *_foretold(forecast, size), ""])  # fmt: skip
    print_table(columns, rows)
    rate = forecast.rate if forecast is not None else None
    if rate is not None:
        found = f", as in run {rate.run[:RUN_DIGITS]}" if rate.run else ""
        output.say(f"at {output.size(round(rate.value))}/s{found}")


def _foretold(forecast: Forecast | None, size: output.Sizes, name: str = "") -> list[str]:
    """Wire bytes of a tier, or of all, and their time where a rate is known."""
    if forecast is None:
        return []
    cost = forecast.costs[name] if name else forecast.total
    seconds = forecast.seconds(cost)
    return [size(cost.wire), *([] if seconds is None else [output.duration(seconds)])]


def _fetched(tier: TierState, size: output.Sizes) -> list[str]:
    if tier.phase is Phase.WAITING:
        return [tier.name, "", "", "", "", "", "", "not begun"]
    sizes = (tier.logical, tier.unique, tier.here, tier.fetched, tier.wire_in)
    seconds = output.duration(tier.finished - tier.started)
    return [tier.name, *map(size, sizes), seconds, _state(tier, done="complete")]


def _state(tier: TierState, *, done: str) -> str:
    if tier.phase is not Phase.DONE:
        return "not begun" if tier.phase is Phase.WAITING else "unfinished"
    if tier.left_out:
        return f"{output.number(tier.left_out)} left out"
    return done if tier.complete or not done else "incomplete"


def _total(state: SyncState, size: output.Sizes) -> list[list[str]]:
    """What adds up: not `unique` and `here`, since tiers share chunks."""
    tiers = state.tiers
    if len(tiers) < 2:
        return []
    logical = size(sum(tier.logical for tier in tiers))
    fetched = size(sum(tier.fetched for tier in tiers))
    seconds = sum(max(0.0, tier.finished - tier.started) for tier in tiers)
    wire, time = size(state.wire_in), output.duration(seconds)
    return [["together", logical, "", "", fetched, wire, time, ""]]
