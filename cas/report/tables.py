"""The tables of the page: all that the charts show, as text, and lists of files. Each cell of a
number has it in `data-value`, exact, and shows it rounded."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from cas.report.facts import Facts, Measures, RunFacts, TierFacts, Words
from cas.report.figures import cut
from cas.report.run_charts import DIGITS

NAME_MOST = 160  # characters that are shown; all of them when one points at it
PAIRS_MOST = 100


@dataclass(frozen=True, slots=True)
class Cell:
    """What a cell shows; `value` is the exact number behind it."""

    text: str
    value: float | None = None
    is_name: bool = False


Column = tuple[str, bool]  # title; whether it holds names


class Tables:
    """Makes tables of facts; texts and names by `words`."""

    def __init__(self, facts: Facts, words: Words) -> None:
        self._facts = facts
        self._words = words

    def tiers(self) -> str:
        """The measures of each tier, and of all together."""
        rows = [self._tier(tier) for tier in self._facts.tiers]
        foot = [self._name("together"), *self._measures(self._facts.together), *[Cell("")] * 3]
        titles = ["logical", "unpacked", "unique", "fetched", "wire", "elsewhere", "adopted",
                  "not here", "exclusive", "adds", "files"]  # fmt: skip
        columns = [("tier", True), *((title, False) for title in titles)]
        return table("tiers", columns, rows, foot if len(rows) > 1 else None)

    def _tier(self, tier: TierFacts) -> list[Cell]:
        sizes = map(self._size, (tier.exclusive, tier.adds))
        return [self._name(tier.name), *self._measures(tier.measures), *sizes,
                self._number(tier.files)]  # fmt: skip

    def _measures(self, it: Measures) -> list[Cell]:
        parts = it.parts
        sizes = (it.logical, it.unpacked, it.unique, it.fetched, it.wire,
                 parts.others + parts.unknown, parts.adopted, parts.missing)  # fmt: skip
        return [self._size(size) for size in sizes]

    def pairs(self, pairs: Sequence[tuple[int, int]]) -> str:
        """What two tiers both have, most first."""
        facts = self._facts
        rows = [
            [self._name(facts.tiers[one].name), self._name(facts.tiers[other].name),
             self._size(facts.matrix[one][other]),
             Cell(f"{facts.percent(one, other):.1f} %", round(facts.percent(one, other), 2))]
            for one, other in pairs[:PAIRS_MOST]
        ]  # fmt: skip
        columns = [("tier", True), ("and", True), ("both", False), ("of the smaller", False)]
        return table("pairs", columns, rows) + self._more(len(pairs) - PAIRS_MOST, "pairs")

    def flows(self) -> str:
        """Where the bytes of each tier were first had from."""
        facts = self._facts
        rows = []
        for flow in facts.flows:
            origin = None if flow.origin is None else facts.origins[flow.origin]
            name = "not known" if origin is None else origin.tier
            if origin is not None and origin.adopted:
                name += " (adopted)"
            tier = facts.tiers[flow.to].name
            rows.append([self._name(name), self._name(tier), self._size(flow.size)])
        return table("flows", [("first had for", True), ("in", True), ("bytes", False)], rows)

    def files(self) -> str:
        """The largest."""
        rows = [
            [self._path(file.tier, file.path), *map(self._size, (
                file.size, file.unpacked, file.repeated, file.shared))]
            for file in self._facts.files
        ]  # fmt: skip
        titles = ("size", "unpacked", "repeated", "shared")
        return table("files", [("file", True), *((title, False) for title in titles)], rows)

    def reasons(self) -> str:
        """Why things were left packed, and how often."""
        rows = [
            [self._name(reason.reason), self._number(reason.count), self._size(reason.size)]
            for reason in self._facts.reasons
        ]
        return table("reasons", [("reason", True), ("times", False), ("bytes", False)], rows)

    def packed(self) -> str:
        """The largest archives of which something was."""
        rows = [
            [self._path(it.tier, it.path), self._size(it.size), self._name(it.reason)]
            for it in self._facts.packed
        ]
        left = self._facts.packed_count - len(rows)
        columns = [("archive", True), ("size", False), ("what, and why", True)]
        return table("packed", columns, rows) + self._more(left, "in smaller archives")

    def runs(self, runs: Sequence[RunFacts]) -> str:
        """The newest first."""
        rows = [self._run(run) for run in reversed(runs)]
        titles = ("fetched", "wire in", "wire out", "goodput", "lanes", "time")
        columns = [
            ("run", True),
            ("begun", True),
            *((title, False) for title in titles),
            ("", True),
        ]
        return table("runs", columns, rows)

    def _run(self, run: RunFacts) -> list[Cell]:
        rate = run.goodput
        return [
            self._name(f"{run.id.hex()[:DIGITS]} {run.command}"),
            self._name(self._words.moment(run.begun_ms) if run.begun_ms else ""),
            *map(self._size, (run.fetched, run.wire_in, run.wire_out)),
            Cell("") if rate is None else Cell(f"{self._words.size(rate)}/s", round(rate)),
            Cell("") if run.lanes is None else self._number(run.lanes),
            self._time(run.seconds),
            self._name(run.state),
        ]  # fmt: skip

    def _time(self, seconds: float | None) -> Cell:
        return Cell("") if seconds is None else Cell(self._words.duration(seconds), seconds)

    def _path(self, tier: int, path: bytes) -> Cell:
        name = self._facts.tiers[tier].name
        return Cell(f"{self._words.text(name)}:{self._words.path(path)}", is_name=True)

    def _name(self, text: str) -> Cell:
        return Cell(self._words.text(text), is_name=True)

    def _size(self, size: int) -> Cell:
        return Cell(self._words.size(size), size)

    def _number(self, count: int) -> Cell:
        return Cell(self._words.number(count), count)

    def _more(self, count: int, what: str) -> str:
        return "" if count <= 0 else tag("p", f"and {self._words.number(count)} more {what}")


def table(
    name: str, columns: Sequence[Column], rows: Sequence[Sequence[Cell]],
    foot: Sequence[Cell] | None = None,
) -> str:  # fmt: skip
    """A table that may be wider than the window."""
    head = "".join(
        f'<th scope="col"{_class(is_name)}>{html.escape(title)}</th>' for title, is_name in columns
    )
    body = "".join(_row(row) for row in rows)
    end = f"<tfoot>{_row(foot)}</tfoot>" if foot is not None else ""
    return (
        f'<div class="wide"><table data-table="{name}"><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody>{end}</table></div>\n"
    )


def _row(cells: Iterable[Cell]) -> str:
    return f"<tr>{''.join(map(_cell, cells))}</tr>\n"


def _cell(cell: Cell) -> str:
    text, more = cell.text, ""
    if cell.value is not None:
        more = f' data-value="{cell.value}" title="{_exact(cell.value)}"'
    elif cell.is_name and len(text) > NAME_MOST:
        more = f' title="{html.escape(text)}"'
        text = cut(text, NAME_MOST)
    return f"<td{_class(cell.is_name)}{more}>{html.escape(text)}</td>"


def _class(is_name: bool) -> str:
    return ' class="name"' if is_name else ""


def _exact(value: float) -> str:
    return f"{value:,}"


def tag(name: str, text: str, style: str = "quiet") -> str:
    """An element with this text in it."""
    return f'<{name} class="{style}">{html.escape(text)}</{name}>\n'


def folded(title: str, inner: str) -> str:
    """What is shown when one asks for it."""
    return f"<details><summary>{html.escape(title)}</summary>\n{inner}</details>\n"
