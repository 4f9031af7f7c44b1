"""The waterfall and the matrix as pictures, drawn without a browser by matplotlib; the only place
that knows it. It draws into memory: no window, no display."""

from __future__ import annotations

import io
import logging
import warnings
from typing import TYPE_CHECKING

from cas.errors import UsageError
from cas.report.facts import Facts, Measures, Words
from cas.report.figures import COLOURS, cut
from cas.report.tier_charts import ends, signed, steps

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NAME_MOST = 28  # characters
DPI = 150
TEXTS_MOST = 14  # tiers; of more, cells are too small for texts
WHITE, BLUE = "#ffffff", "#6aaef2"


def pictures(facts: Facts, words: Words) -> dict[str, bytes]:
    """PNG files by name. Raises UsageError without matplotlib."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise UsageError(
            "matplotlib is not installed", where="--png", advice="pip install 'cas-sync[report]'"
        ) from None
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    count = len(facts.tiers)
    side = 3.0 + 0.55 * max(2, min(count, 40))
    flat = Figure((9.0, 4.2), DPI, layout="constrained")
    square = Figure((side + 1.5, side), DPI, layout="constrained")
    _waterfall(flat.add_subplot(), facts.together, words)
    _matrix(square, square.add_subplot(), facts, words)
    return {"waterfall.png": _png(flat), "matrix.png": _png(square)}


def _png(figure: Figure) -> bytes:
    made = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a name may have characters that no font here has
        figure.savefig(made, format="png")
    return made.getvalue()


def _waterfall(axes: Axes, it: Measures, words: Words) -> None:
    rows = steps(it)
    for place, ((_, size, is_level), end) in enumerate(zip(rows, ends(rows), strict=True)):
        colour = COLOURS[1] if is_level else COLOURS[3] if size > 0 else COLOURS[2]
        axes.barh(place, abs(size), left=end - abs(size), color=colour)
        axes.annotate(signed(size, words, is_level), (end, place), (4, 0), va="center",
                      textcoords="offset points")  # fmt: skip
    axes.set_yticks(range(len(rows)), [name for name, _, _ in rows])
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_xlim(0, 1.15 * max([1, *ends(rows)]))
    axes.xaxis.set_major_formatter(lambda value, _place: words.size(value))
    axes.spines[["top", "right"]].set_visible(False)


def _matrix(figure: Figure, axes: Axes, facts: Facts, words: Words) -> None:
    from matplotlib.colors import LinearSegmentedColormap

    tiers = range(len(facts.tiers))
    axes.set_frame_on(False)
    if not tiers:
        axes.set_axis_off()
        return
    shares = [[0.0 if a == b else facts.percent(a, b) for b in tiers] for a in tiers]
    colours = LinearSegmentedColormap.from_list("shared", [WHITE, BLUE])
    image = axes.imshow(shares, cmap=colours, vmin=0, vmax=100)
    names = [cut(words.text(tier.name), NAME_MOST) for tier in facts.tiers]
    # A name is no formula, whatever stands in it.
    axes.set_yticks(tiers, names, parse_math=False)
    axes.set_xticks(tiers, names, rotation=45, ha="right", parse_math=False)
    axes.tick_params(length=0)
    figure.colorbar(image, ax=axes, shrink=0.8, label="of the smaller, %")
    for a in tiers if len(tiers) <= TEXTS_MOST else ():
        for b in tiers:
            if facts.matrix[a][b]:
                axes.text(b, a, words.size(facts.matrix[a][b]), ha="center", va="center",
                          fontsize=6)  # fmt: skip
