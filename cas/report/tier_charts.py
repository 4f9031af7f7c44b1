"""Charts of tiers: the waterfall, their measures side by side, what they share, and the flow from
the tiers that chunks were first had for to those that have them."""

from __future__ import annotations

from typing import Any

from cas.report.facts import Facts, Measures, Words
from cas.report.figures import (
    COLOURS,
    GREY,
    HOVER,
    MARGIN,
    Figure,
    View,
    names_axis,
    short,
    sizes_axis,
)

MEASURES = ("logical", "unpacked", "unique", "fetched", "wire")
PAD = 14  # pixels between the nodes of a flow, room for a name
NOT_HERE, NOT_KNOWN = "not here", "origin not known"


def steps(it: Measures) -> list[tuple[str, int, bool]]:
    """The waterfall from logical bytes to those on the wire: names and sizes, a level (true) or the
    change to the next one, of which those that are nothing are left out."""
    parts = it.parts
    changes = [
        ("logical", it.logical, True),
        ("in archives", it.unpacked - it.logical, False),
        ("unpacked", it.unpacked, True),
        ("duplicates", it.unique - it.unpacked, False),
        ("unique", it.unique, True),
        ("with other tiers", -parts.others, False),
        ("adopted", -parts.adopted, False),
        (NOT_KNOWN, -parts.unknown, False),
        (NOT_HERE, -parts.missing, False),
        ("older snapshots", it.fetched - parts.own, False),
        ("fetched", it.fetched, True),
        ("compression", it.wire - it.fetched, False),
        ("wire", it.wire, True),
    ]
    return [step for step in changes if step[1] or step[2]]


def waterfall(facts: Facts, words: Words) -> Figure:
    """All tiers together, then each."""
    views = [_waterfall("all together", facts.together, words)] if len(facts.tiers) > 1 else []
    views += [_waterfall(words.text(t.name), t.measures, words) for t in facts.tiers]
    return Figure("waterfall", views)


def _waterfall(title: str, it: Measures, words: Words) -> View:
    rows = steps(it)
    names = [name for name, _, _ in rows]
    trace = {
        "type": "waterfall", "orientation": "h", "y": list(range(len(rows))),
        "x": [size for _, size, _ in rows],
        "measure": ["absolute" if is_level else "relative" for _, _, is_level in rows],
        "customdata": [f"{name}: {size:,} bytes" for name, size, _ in rows],
        "hovertemplate": "%{customdata}<extra></extra>",
        "connector": {"line": {"color": GREY, "width": 1}},
        "totals": {"marker": {"color": COLOURS[1]}},
        "increasing": {"marker": {"color": COLOURS[3]}},
        "decreasing": {"marker": {"color": COLOURS[2]}},
    }  # fmt: skip
    labels = {
        "type": "scatter", "mode": "text", "x": ends(rows), "y": list(range(len(rows))),
        "text": [f" {signed(size, words, is_level)}" for _, size, is_level in rows],
        "textposition": "middle right", "hoverinfo": "skip", "cliponaxis": False,
    }  # fmt: skip
    most = max((it.logical, it.unpacked, it.unique, it.fetched, it.wire, 1))
    layout = {
        "height": 60 + 30 * len(rows), "showlegend": False, "margin": MARGIN,
        "xaxis": sizes_axis(range=[0, most * 1.2]),
        "yaxis": names_axis(len(rows), range=[len(rows) - 0.5, -0.5]),
    }  # fmt: skip
    return View(title, [trace, labels], layout, {"yaxis": names})


def ends(rows: list[tuple[str, int, bool]]) -> list[int]:
    """The right end of each bar."""
    ends, at = [], 0
    for _, size, is_level in rows:
        after = size if is_level else at + size
        ends.append(after if is_level else max(at, after))
        at = after
    return ends


def signed(size: int, words: Words, is_level: bool) -> str:
    """A size for people; of a change, with its sign."""
    if is_level:
        return words.size(size)
    return ("+" if size > 0 else "\N{MINUS SIGN}") + words.size(abs(size))


def measures(facts: Facts, words: Words) -> Figure:
    """The five measures of each tier side by side."""
    count = len(facts.tiers)
    data = []
    for name, colour in zip(MEASURES, COLOURS, strict=True):
        sizes = [getattr(tier.measures, name) for tier in facts.tiers]
        data.append({
            "type": "bar", "orientation": "h", "name": name, "x": sizes, "y": list(range(count)),
            "marker": {"color": colour}, "hovertemplate": "%{customdata}<extra></extra>",
            "customdata": [
                f"{_hover(tier.name, words)}<br>{name}: {size:,} bytes"
                for tier, size in zip(facts.tiers, sizes, strict=True)
            ],
        })  # fmt: skip
    layout = {
        "barmode": "group", "bargap": 0.25, "height": 90 + count * (62 if count <= 12 else 44),
        "margin": {**MARGIN, "t": 34}, "xaxis": sizes_axis(),
        "yaxis": names_axis(count, range=[count - 0.5, -0.5]),
        "legend": {"orientation": "h", "x": 0, "y": 1, "xanchor": "left", "yanchor": "bottom",
                   "traceorder": "normal"},
    }  # fmt: skip
    return Figure("measures", [View("", data, layout, {"yaxis": _names(facts, words)})], "xaxis")


def matrix(facts: Facts, words: Words) -> Figure:
    """What two tiers both have, coloured by how much of the smaller that is. In the diagonal, what
    is unique, without a colour."""
    tiers = range(len(facts.tiers))
    count, names = len(tiers), _names(facts, words)
    cells = facts.matrix
    trace: dict[str, Any] = {
        "type": "heatmap", "x": list(tiers), "y": list(tiers), "zmin": 0, "zmax": 100,
        "z": [[None if a == b else round(facts.percent(a, b), 2) for b in tiers] for a in tiers],
        "text": [[words.size(cells[a][b]) if cells[a][b] else "" for b in tiers] for a in tiers],
        "customdata": [[_both(facts, words, a, b) for b in tiers] for a in tiers],
        "hovertemplate": "%{customdata}<extra></extra>", "hoverongaps": True,
        "texttemplate": "%{text}", "xgap": 2, "ygap": 2,
        "colorbar": {"title": {"text": "of the smaller", "side": "right"}, "ticksuffix": " %",
                     "thickness": 12, "outlinewidth": 0, "len": 1},
    }  # fmt: skip
    layout = {
        "height": 130 + min(46, max(22, 620 // max(1, count))) * count, "margin": MARGIN,
        "xaxis": names_axis(count, tickangle=-45, side="bottom"),
        "yaxis": names_axis(count, range=[count - 0.5, -0.5]),
    }  # fmt: skip
    return Figure("matrix", [View("", [trace], layout, {"xaxis": names, "yaxis": names})])


def _both(facts: Facts, words: Words, one: int, other: int) -> str:
    both = facts.matrix[one][other]
    first, second = (_hover(facts.tiers[n].name, words) for n in (one, other))
    if one == other:
        return f"{first}<br>unique: {both:,} bytes"
    return f"{first}<br>{second}<br>both: {both:,} bytes, {facts.percent(one, other):.1f} %"


def flow(facts: Facts, words: Words) -> Figure:
    """From the tiers that bytes were first had for, on the left, to those that have them."""
    left = [_origin(tier, adopted, words) for tier, adopted in
            ((it.tier, it.adopted) for it in facts.origins)]  # fmt: skip
    left += [NOT_KNOWN, NOT_HERE]
    names = [*left, *_names(facts, words)]
    links = [
        (len(left) - 2 if it.origin is None else it.origin, len(left) + it.to, it.size)
        for it in facts.flows
    ]
    links += [(len(left) - 1, len(left) + number, tier.measures.parts.missing)
              for number, tier in enumerate(facts.tiers)]  # fmt: skip
    links = [link for link in links if link[2]]
    used = sorted({node for source, target, _ in links for node in (source, target)})
    at = {node: place for place, node in enumerate(used)}
    long = [short(names[node], HOVER) for node in used]
    height = 140 + 34 * max(len(left) - 2, len(facts.tiers))
    places = _places(links, used, len(left), height)
    trace = {
        "type": "sankey", "arrangement": "fixed", "valueformat": ",d", "valuesuffix": " bytes",
        "node": {"pad": PAD, "thickness": 14, "x": [x for x, _ in places],
                 "y": [y for _, y in places], "line": {"width": 0}, "customdata": long,
                 "color": [_colour(node, len(left)) for node in used],
                 "hovertemplate": "%{customdata}<br>%{value:,d} bytes<extra></extra>"},
        "link": {"source": [at[source] for source, _, _ in links],
                 "target": [at[target] for _, target, _ in links],
                 "value": [link[2] for link in links],
                 "customdata": [f"{short(names[link[0]], HOVER)} → {short(names[link[1]], HOVER)}"
                                for link in links],
                 "color": [_link_colour(link[0], len(left)) for link in links],
                 "hovertemplate": "%{customdata}<br>%{value:,d} bytes<extra></extra>"},
    }  # fmt: skip
    layout = {"height": height + 24, "margin": {"l": 8, "r": 8, "t": 12, "b": 12}}
    return Figure("flow", [View("", [trace], layout, {"node": [names[n] for n in used]})])


def _places(
    links: list[tuple[int, int, int]], used: list[int], left: int, height: int
) -> list[tuple[float, float]]:
    """Where the middle of each node is, in shares of the chart: on either side in order, as long as
    what flows through it, with room between."""
    through: dict[int, int] = {}
    for source, target, size in links:
        through[source] = through.get(source, 0) + size
        through[target] = through.get(target, 0) + size
    sides = [[node for node in used if node < left], [node for node in used if node >= left]]
    room = height - PAD * (max(map(len, sides)) - 1)
    scale = room / max(1, sum(size for _, _, size in links))
    found = {}
    for x, side in zip((0.001, 0.999), sides, strict=True):
        at = 0.0
        for node in side:
            found[node] = x, min(0.999, max(0.001, (at + through[node] * scale / 2) / height))
            at += through[node] * scale + PAD
    return [found[node] for node in used]


def _origin(tier: str, adopted: bool, words: Words) -> str:
    return f"{words.text(tier)} (adopted)" if adopted else words.text(tier)


def _colour(node: int, left: int) -> str:
    if node >= left:
        return COLOURS[0]
    return GREY if node >= left - 2 else COLOURS[1:][node % (len(COLOURS) - 1)]


def _link_colour(source: int, left: int) -> str:
    if source >= left - 2:
        return "rgba(128,128,128,0.22)"
    colour = _colour(source, left).lstrip("#")
    red, green, blue = (int(colour[at : at + 2], 16) for at in (0, 2, 4))
    return f"rgba({red},{green},{blue},0.38)"


def _names(facts: Facts, words: Words) -> list[str]:
    return [words.text(tier.name) for tier in facts.tiers]


def _hover(name: str, words: Words) -> str:
    return short(words.text(name), HOVER)
