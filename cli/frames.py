"""The lines of the live display, from one reading of the meter and the size of the terminal.

Pure, so that it can be tried without a terminal. The lines never exceed the width, nor the height
unless that is less than six; tiers that do not fit are counted instead of shown.
"""

from __future__ import annotations

from cas.pull.state import Phase
from cli import output
from cli.meter import OVER, Reading, TierReading
from cli.table import Column, cut, cut_front, render

COLUMNS = (
    Column("tier", right=False),
    Column("logical", expendable=4),
    Column("unique", expendable=5),
    Column("here", expendable=3),
    Column("to fetch", expendable=1),
    Column("fetched", expendable=2),
    Column("wire", expendable=6),
    Column("", right=False),
)
BAR_CELLS = 30
SILENT_SECONDS = 5.0  # from when on it is said that nothing comes
EIGHTHS = " ▏▎▍▌▋▊▉█"


def frame(reading: Reading, width: int, height: int) -> list[str]:
    """The lines to show: a table of tiers, what is done now, and how far the whole is."""
    if not reading.tiers:
        return [""]
    shown, before, after = _window(reading, max(1, height - 5))
    lines = render(COLUMNS, [_row(tier) for tier in shown], width)
    if before:
        lines.insert(1, f"{output.plural(before, 'tier')} before these")
    if after:
        lines.append(f"{output.plural(after, 'tier')} after these")
    return [*(cut(line, width) for line in lines), _now(reading, width), _whole(reading, width)]


def _window(reading: Reading, rows: int) -> tuple[list[TierReading], int, int]:
    """The tiers to show, around the one that is active; how many come before and after."""
    tiers = list(reading.tiers)
    if len(tiers) <= rows:
        return tiers, 0, 0
    rows = max(1, rows - 2)
    at = next((i for i, tier in enumerate(tiers) if tier.phase not in OVER), len(tiers) - 1)
    first = max(0, min(at - rows // 3, len(tiers) - rows))
    return tiers[first : first + rows], first, len(tiers) - first - rows


def _row(tier: TierReading) -> list[str]:
    if tier.phase in (Phase.WAITING, Phase.CONNECTING):
        return [tier.name, "", "", "", "", "", "", tier.phase.value]
    sizes = (tier.logical, tier.unique, tier.here, tier.to_fetch, tier.fetched, tier.wire_in)
    return [tier.name, *map(output.size, sizes), state_of(tier)]


def state_of(tier: TierReading) -> str:
    """A tier's phase in a word or two, with its percent where there is one."""
    if tier.phase is Phase.DONE:
        return f"done, {tier.left_out} left out" if tier.left_out else "done"
    if tier.phase is Phase.FETCHING and tier.percent is not None:
        return f"{tier.percent:.1f} %"
    return str(tier.phase.value)


def _now(reading: Reading, width: int) -> str:
    tier = reading.active
    if tier is None:
        return ""
    if tier.percent is None:
        begin = f"{tier.phase.value}, {output.plural(tier.names, 'name')} "
        path = cut_front(output.show_path(tier.path), max(0, width - len(begin)))
        return cut(begin + path, width)
    cells = min(BAR_CELLS, width // 3)
    return cut(f"{bar(tier.percent, cells)} {tier.percent:.1f} % of {tier.name}", width)


def _whole(reading: Reading, width: int) -> str:
    parts = [  # the first are what is left on a narrow terminal
        "" if reading.percent is None else f"{reading.percent:.1f} % of all",
        left_text(reading),
        f"{output.size(reading.rate)}/s",
        f"{output.size(reading.wire_in)} over the wire",
        f"{output.duration(reading.seconds)} so far",
    ]
    return cut(", ".join(part for part in parts if part), width)


def left_text(reading: Reading) -> str:
    """When it will be over, as far as that can be told."""
    if reading.silent >= SILENT_SECONDS and reading.active is not None:
        return f"nothing came for {output.duration(reading.silent)}"
    if reading.left is None:
        return ""
    return f"{'at least ' if reading.more else ''}{output.duration(reading.left)} left"


def bar(percent: float, cells: int) -> str:
    """A bar of `cells` cells, of which `percent` are full."""
    eighths = int(cells * 8 * min(100.0, max(0.0, percent)) / 100)
    full, rest = divmod(eighths, 8)
    text = "█" * full + (EIGHTHS[rest] if rest else "")
    return text + "░" * (cells - len(text))
