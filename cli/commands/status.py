"""`cas status`: how much of each tier is here."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cas.errors import EXIT_DONE, NotHeldError
from cli import options, output
from cli.table import Column

if TYPE_CHECKING:
    from cas.snapshot import Snapshot
    from cas.store.store import Held, Store

COLUMNS = (
    Column("tier", right=False),
    Column("scanned", right=False, expendable=1),
    Column("names", expendable=3),
    Column("logical", expendable=2),
    Column("unique", expendable=4),
    Column("held"),
    Column("missing"),
    Column("left out"),
    Column("", right=False, expendable=5),
)


@dataclass(frozen=True, slots=True)
class _Standing:
    """A tier of the store or of the plan; without a snapshot it was never scanned to its end."""

    name: str
    snapshot: Snapshot | None = None
    held: Held | None = None

    @property
    def left_out(self) -> int:
        return sum(p.left_out for p in self.snapshot.problems) if self.snapshot else 0

    @property
    def complete(self) -> bool:
        return self.held is not None and not self.held.missing_chunks


@click.command("status", short_help="Say how much of each tier is held here.")
@click.argument("names", metavar="[TIER|SET]...", nargs=-1)
@options.plan_option
@options.store_option
@click.option("--problems", is_flag=True, help="List everything that was left out, and why.")
@options.bytes_option
@options.json_option
def command(
    names: tuple[str, ...],
    plan_path: str | None,
    store_path: Path | None,
    problems: bool,
    exact: bool,
    as_json: bool,
) -> int:
    """Say how much of each tier's newest snapshot is held here.

    Every chunk is looked up in the index; that its bytes are still right is for `cas verify`.
    Tiers of the plan that were never scanned to the end are listed too. While a sync writes to the
    store, how it goes is said before that.

    \b
    Examples:
      cas status
      cas status --problems 02-user-workspace
    """
    from cas.pull.record import running
    from cli import wiring
    from cli.running import show_running

    plan = wiring.maybe_plan(plan_path) if store_path is not None else wiring.plan_of(plan_path)
    planned = [tier.name for tier in plan.tiers] if plan is not None else []
    with wiring.reading(wiring.store_root(store_path, plan_path)) as store:
        tiers = list(dict.fromkeys([*planned, *store.tiers()]))
        if names:
            asked = [name for n in names for name in (plan.sets.get(n, (n,)) if plan else (n,))]
            _check_known(asked, tiers)
            tiers = [tier for tier in tiers if tier in asked]
        standings = [_standing(store, tier) for tier in tiers]
        found = running(store.layout)
    if as_json:
        if found is not None:
            output.json_line({"running": found.fields})
        for standing in standings:
            output.json_line(_fields(standing, with_problems=problems))
    else:
        if found is not None:
            show_running(found)
            output.result("")
        _print(standings, output.sizes(exact), with_problems=problems)
    return EXIT_DONE


def _check_known(asked: list[str], tiers: list[str]) -> None:
    from cas.plan import did_you_mean

    for name in asked:
        if name not in tiers:
            raise NotHeldError(
                "no such tier here or in the plan", where=name, advice=did_you_mean(name, tiers)
            )


def _standing(store: Store, tier: str) -> _Standing:
    if not store.snapshots(tier):
        return _Standing(tier)
    _, snapshot = store.latest(tier)
    return _Standing(tier, snapshot, store.held(snapshot))


def _print(standings: list[_Standing], size: output.Sizes, *, with_problems: bool) -> None:
    from cas.entry import Problem
    from cli.summary import packed_text, print_packed, print_problems, print_table

    print_table(COLUMNS, [_row(standing, size) for standing in standings])
    problems = [
        (s.name, problem) for s in standings if s.snapshot for problem in s.snapshot.problems
    ]
    packed = [
        (s.name, Problem(path, reason, left_out=False))
        for s in standings if s.held for path, reason in s.held.packed
    ]  # fmt: skip
    if with_problems:
        print_problems(problems, None)
        print_packed(packed)
    elif packed and not problems:
        output.say(f"{packed_text(len(packed))}; `--problems` lists it")
    elif problems:
        output.say(f"{output.plural(len(problems), 'problem')}; `--problems` lists them")


def _row(standing: _Standing, size: output.Sizes) -> list[str]:
    snapshot, held = standing.snapshot, standing.held
    if snapshot is None or held is None:
        return [standing.name, "never", *[""] * 6, "not scanned to its end yet"]
    return [
        standing.name,
        output.moment(snapshot.finished_ms),
        output.number(snapshot.entries),
        size(snapshot.logical),
        size(held.unique),
        _percent(held),
        size(held.missing),
        output.number(standing.left_out),
        "complete" if standing.complete else "incomplete",
    ]


def _percent(held: Held) -> str:
    """In tenths, rounded down: 100 only when nothing is missing."""
    if not held.missing_chunks:
        return "100 %"
    tenths = 1000 * (held.unique - held.missing) // max(1, held.unique)
    return f"{min(tenths, 999) / 10:.1f} %"


def _fields(standing: _Standing, *, with_problems: bool) -> dict[str, object]:
    from cli.events import problem_fields

    snapshot, held = standing.snapshot, standing.held
    fields: dict[str, object] = {"tier": standing.name, "scanned": snapshot is not None}
    if snapshot is None or held is None:
        return fields
    fields |= {
        "source": snapshot.source,
        "host": snapshot.host,
        "finished_ms": snapshot.finished_ms,
        "entries": snapshot.entries,
        "logical": snapshot.logical,
        "unique": held.unique,
        "missing": held.missing,
        "missing_chunks": held.missing_chunks,
        "complete": standing.complete,
        "left_out": standing.left_out,
        "left_packed": len(held.packed),
    }
    if with_problems:
        fields["problems"] = [problem_fields(problem) for problem in snapshot.problems]
        fields["packed"] = [
            {**output.name_fields("path", b"/" + path), "reason": reason}
            for path, reason in held.packed
        ]
    return fields
