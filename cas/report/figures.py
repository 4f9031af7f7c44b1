"""What a chart is to the page: data and layout as plotly.js takes them, once or in several views.

Names come from the far end. In a chart they are cut, and `<`, `>` and `&` are spelt as entities,
since plotly.js reads some markup in texts. They are never values of an axis: those are numbers, and
names the texts of their ticks, so that equal names and ones that look like dates stay what they
are. `names` has them in two lengths, for wide windows and for narrow ones.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

WIDE, NARROW, HOVER = 26, 16, 60  # characters
COLOURS = ("#9aa5b1", "#4c9be8", "#2f9e8f", "#e0a13c", "#d9643a")  # readable on white and black
GREY = "rgba(128,128,128,0.55)"
MARGIN = {"l": 8, "r": 16, "t": 8, "b": 36}


@dataclass(frozen=True, slots=True)
class View:
    """One state of a chart. `names` are the texts of an axis' ticks, or of the nodes of a flow."""

    title: str
    data: list[dict[str, Any]]
    layout: dict[str, Any]
    names: dict[str, Sequence[str]]

    def fields(self) -> dict[str, Any]:
        """For JSON."""
        names = {
            where: {"wide": [short(text, WIDE) for text in texts],
                    "narrow": [short(text, NARROW) for text in texts]}
            for where, texts in self.names.items()
        }  # fmt: skip
        return {"data": self.data, "layout": self.layout, "names": names}


@dataclass(frozen=True, slots=True)
class Figure:
    """A chart by its `id`; the first view is shown first. `log` names an axis that may be drawn
    with equal steps for equal ratios."""

    id: str
    views: list[View]
    log: str = ""


def short(text: str, most: int) -> str:
    """A name for a chart: cut in its middle, with no markup, and no `$` that begins a formula."""
    return html.escape(cut(text, most), quote=False).replace("$", "&#36;")


def cut(text: str, most: int) -> str:
    """A name of at most so many characters, cut in its middle: ends tell names apart."""
    if len(text) <= most:
        return text
    tail = most // 2 - 1
    return f"{text[: most - tail - 1]}…{text[len(text) - tail :]}"


def names_axis(count: int, **more: Any) -> dict[str, Any]:
    """An axis of names, each at its number, the first on top where it is upright."""
    return {
        "tickmode": "array", "tickvals": list(range(count)), "ticks": "", "showgrid": False,
        "zeroline": False, "automargin": True, "range": [-0.5, count - 0.5], "fixedrange": True,
        **more,
    }  # fmt: skip


def sizes_axis(unit: str = "B", **more: Any) -> dict[str, Any]:
    """An axis of bytes from zero."""
    return {
        "tickformat": "~s", "ticksuffix": unit, "rangemode": "tozero", "automargin": True,
        "nticks": 6, "fixedrange": True, **more,
    }  # fmt: skip
