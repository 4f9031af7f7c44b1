"""The page: one file with all that it needs in it, for a browser without network.

What the far end named is text everywhere: escaped in HTML; in the charts' JSON ASCII without `<`,
`>` and `&`, so that it cannot end its element. Beyond that the page's own policy lets a browser run
just the two scripts that stand in it, by their SHA-256, and load nothing from anywhere.
"""

from __future__ import annotations

import html
import json
from base64 import b64encode
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from importlib.resources import files

from cas import __version__
from cas.report import library, run_charts, tier_charts
from cas.report.facts import Facts, RunFacts, Words
from cas.report.figures import Figure
from cas.report.tables import Tables, folded, tag

UNSAFE = {ord("<"): "\\u003c", ord(">"): "\\u003e", ord("&"): "\\u0026"}
NOTHING = "Nothing yet."


@dataclass(frozen=True, slots=True)
class Section:
    """A heading, what is to be known about it, charts, and tables; `empty` is what there is to say
    where `is_empty`."""

    title: str
    text: str
    figures: Sequence[Figure]
    tables: str
    is_empty: bool
    empty: str = NOTHING


def page(
    facts: Facts, runs: Sequence[RunFacts], pairs: Sequence[tuple[int, int]], words: Words, *,
    where: str, made_ms: int,
) -> str:  # fmt: skip
    """The report of the store at `where` as HTML. `pairs` are those of tiers that share anything,
    in order. Raises UsageError without plotly."""
    style = _part("page.css")
    scripts = [library.script(), _part("page.js")]
    sections = list(_sections(facts, runs, pairs, words))
    drawn = {
        figure.id: [view.fields() for view in figure.views]
        for section in sections
        for figure in section.figures
        if figure.views and not section.is_empty
    }
    title = f"What is held in {words.text(where)}"
    made = f"{words.moment(made_ms)}, cas {__version__}"
    return "".join([
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n',
        f'<meta http-equiv="Content-Security-Policy" content="{_policy(scripts)}">\n',
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n',
        '<meta name="referrer" content="no-referrer">\n',
        f"<title>{html.escape(title)}</title>\n<style>\n{style}</style>\n</head>\n<body>\n",
        f"<h1>{html.escape(title)}</h1>\n", tag("p", made), _tiles(facts, words),
        *(_html(section) for section in sections), _footer(facts, words),
        f'<script type="application/json" id="figures">{embedded(drawn)}</script>\n',
        *(f"<script>{script}</script>\n" for script in scripts), "</body>\n</html>\n",
    ])  # fmt: skip


def embedded(value: object) -> str:
    """JSON that may stand in a page's script: nothing in it ends the element."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False).translate(UNSAFE)


def _part(name: str) -> str:
    return files("cas.report").joinpath(name).read_text("utf-8")


def _policy(scripts: Sequence[str]) -> str:
    digests = [b64encode(sha256(text.encode()).digest()).decode() for text in scripts]
    allowed = " ".join(f"'sha256-{digest}'" for digest in digests)
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _sections(
    facts: Facts, runs: Sequence[RunFacts], pairs: Sequence[tuple[int, int]], words: Words
) -> Iterator[Section]:
    tables, none = Tables(facts, words), not facts.tiers
    yield Section(
        "From logical bytes to the wire",
        "What a tier takes up at its source, what that is when archives are unpacked, how much is "
        "left without duplicates, what of it was fetched for this tier, and what that took on the "
        "wire, compressed. Pages, recipes and the protocol come on top of it.",
        [tier_charts.waterfall(facts, words), tier_charts.measures(facts, words)],
        tables.tiers(), none,
    )  # fmt: skip
    yield Section(
        "What tiers have in common",
        "Distinct bytes that two tiers both have; the colour says how much of the smaller tier "
        "that is. In the diagonal, what is unique in the tier.",
        [tier_charts.matrix(facts, words)],
        folded("All pairs", tables.pairs(pairs)) if pairs else "",
        len(facts.tiers) < 2, NOTHING if none else "There is only one tier.",
    )  # fmt: skip
    yield Section(
        "Where it was first had from",
        "On the left the tiers that bytes were first fetched for, on the right those that have "
        "them: each distinct byte of a tier once.",
        [tier_charts.flow(facts, words)], folded("All of it in numbers", tables.flows()), none,
    )  # fmt: skip
    yield Section(
        "Runs",
        "New content and bytes on the wire, a second; and over how many lanes.",
        [run_charts.courses(runs, words), run_charts.totals(runs, words)],
        tables.runs(runs), not runs,
    )  # fmt: skip
    yield Section(
        "Largest files",
        "Of the unpacked bytes, those that came before, in an earlier tier or earlier in the same, "
        "are repeated, and those that another tier has too are shared.",
        [], tables.files(), not facts.files,
    )  # fmt: skip
    yield Section(
        "Left packed",
        "What in archives was kept as it is, because taking it apart would not have given back the "
        "same bytes, or was not worth it. Nothing is lost by that but duplicates in there.",
        [], tables.reasons() + tables.packed(),
        not facts.packed_count, NOTHING if none else "Nothing.",
    )  # fmt: skip


def _html(section: Section) -> str:
    head = f"<section>\n<h2>{html.escape(section.title)}</h2>\n"
    if section.is_empty:
        return f"{head}{tag('p', section.empty, 'empty')}</section>\n"
    charts = [_chart(figure) for figure in section.figures if figure.views]
    head += tag("p", section.text) + "".join(charts[:1])
    body = "".join(charts[1:]) + section.tables
    return head.replace("<h2>", '<div class="whole"><h2>') + f"</div>\n{body}</section>\n"


def _chart(figure: Figure) -> str:
    name = f"chart-{figure.id}"
    choose = ""
    if len(figure.views) > 1:
        choices = "".join(
            f'<option value="{number}">{html.escape(view.title)}</option>'
            for number, view in enumerate(figure.views)
        )
        choose = f'<p class="choose"><select data-for="{name}">{choices}</select></p>\n'
    elif figure.views[0].title:
        choose = tag("p", figure.views[0].title)
    if figure.log:
        choose += (
            '<p class="choose checks"><label>'
            f'<input type="checkbox" data-for="{name}"> logarithmic</label></p>\n'
        )
    return f'{choose}<div class="chart" id="{name}" data-chart="{figure.id}"></div>\n'


def _tiles(facts: Facts, words: Words) -> str:
    it = facts.together
    tiles = [
        ("logical", it.logical), ("unpacked", it.unpacked), ("unique", it.unique),
        ("fetched", it.fetched), ("on the wire", it.wire), ("not here yet", it.parts.missing),
    ]  # fmt: skip
    items = "".join(
        f'<li><b data-value="{size}" title="{size:,} bytes">{words.size(size)}</b>{name}</li>'
        for name, size in tiles
    )
    return f'<ul class="tiles">{items}</ul>\n'


def _footer(facts: Facts, words: Words) -> str:
    lines = [
        f"Pages and recipes: {words.size(facts.meta[1])}.",
        f"Received again: {words.size(facts.again[1])}.",
        *(f"Cannot be read, and is missing above: {words.text(line)}" for line in facts.damaged),
        "Sizes are decimal: 1 kB is 1000 bytes.",
    ]
    body = "".join(f"<p>{html.escape(line)}</p>" for line in lines)
    scripts = "<noscript><p>The charts need JavaScript; the tables have the same.</p></noscript>"
    return f"<footer>{body}{scripts}</footer>\n"
