"""The lines of the live display, from one reading of the meter and the size of the terminal.

Pure, so that it can be tried without a terminal. The lines never exceed the width, nor the height
unless that is less than six. Where there is no room for all, tiers and lanes are counted instead of
shown: tiers around the one that is active stay, and of the lanes those in trouble first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from cas.pull.state import Phase
from cli import output
from cli.meter import OVER, LaneReading, Reading, TierReading
from cli.table import Column, cell_width, cut, cut_front, render

COLUMNS = (
    Column("tier", right=False),
    Column("logical", expendable=5),
    Column("unique", expendable=6),
    Column("here", expendable=4),
    Column("to fetch", expendable=2),
    Column("fetched", expendable=3),
    Column("wire", expendable=7),
    Column("left", expendable=1),
    Column("", right=False),
)
LANES = (
    Column("lane", right=False),
    Column("state", right=False),
    Column("rate"),
    Column("last byte"),
    Column("received", expendable=1),
    Column("content", expendable=2),
)
LANES_LEAST = 4  # rows; for fewer there is a line that counts them
BAR_CELLS = 30
PATH_LEAST = 12  # cells; for fewer a path is not begun
SILENT_SECONDS = 5.0  # from when on it is said that nothing comes
EIGHTHS = " ▏▎▍▌▋▊▉█"


@dataclass(frozen=True, slots=True)
class Frame:
    """What to show; `titles` are the numbers of the lines that are titles."""

    lines: list[str]
    titles: tuple[int, ...] = (0,)


def frame(reading: Reading, width: int, height: int) -> Frame:
    """A table of tiers, one of lanes, what is done now, and how far the whole is."""
    if not reading.tiers:
        return Frame([""])
    room = max(1, height - 3)  # without the last two lines, and one that stays free
    lanes = _lane_lines(reading, width, _room_for_lanes(reading, room))
    tiers = _tier_lines(reading, width, max(1, room - len(lanes) - 2))
    lines = [*tiers, *lanes, _now(reading, width), _whole(reading, width)]
    return Frame(lines, (0, len(tiers)) if len(lanes) > 1 else (0,))


def status_lines(reading: Reading, width: int) -> list[str]:
    """The frame without its table of tiers, as high as it is."""
    lanes = _lane_lines(reading, width, len(reading.lanes) + 1)
    return [line for line in (*lanes, _now(reading, width), _whole(reading, width)) if line]


def _tier_lines(reading: Reading, width: int, rows: int) -> list[str]:
    shown, before, after = _window(reading, rows)
    lines = render(COLUMNS, [_row(tier) for tier in shown], width)
    if before:
        lines.insert(1, f"{output.plural(before, 'tier')} before these")
    if after:
        lines.append(f"{output.plural(after, 'tier')} after these")
    return [cut(line, width) for line in lines]


def _room_for_lanes(reading: Reading, room: int) -> int:
    """Lines: what the tiers leave, but half of all at least."""
    return max(room - len(reading.tiers) - 2, room // 2)


def _lane_lines(reading: Reading, width: int, room: int) -> list[str]:
    """A title and a row for each lane, as far as there is room, or one line, or none when there is
    a single lane with nothing to say of it."""
    lanes = reading.lanes
    if len(lanes) < 2 and all(lane.state == "up" for lane in lanes):
        return []
    if len(lanes) + 1 > room and room < LANES_LEAST + 2:
        return [cut(lanes_text(lanes), width)] if room > 0 else []
    fits = len(lanes) + 1 <= room
    shown = list(lanes) if fits else sorted(lanes, key=_by_trouble)[: room - 2]
    sources = {lane.source for lane in lanes}
    rows = [_lane_row(lane, with_source=len(sources) > 1) for lane in shown]
    lines = [cut(line, width) for line in render(LANES, rows, width)]
    return lines if fits else [*lines, cut(lanes_text(lanes), width)]


def _by_trouble(lane: LaneReading) -> tuple[bool, bool, int]:
    return lane.state == "up", lane.state == "login", lane.number


def _lane_row(lane: LaneReading, *, with_source: bool) -> list[str]:
    number = "new" if lane.number < 0 else str(lane.number)
    name = f"{output.printable(lane.source)} {number}" if with_source else number
    if lane.state == "login":
        return [name, "login", "", output.duration(lane.silent), "", ""]
    return [
        name,
        lane.state,
        f"{output.size(lane.rate)}/s",
        output.duration(lane.silent),
        output.size(lane.bytes_in),
        output.size(lane.payload),
    ]


def lanes_text(lanes: Sequence[LaneReading]) -> str:
    """How many lanes there are in which state: `24 lanes (21 up, 2 suspect, 1 login)`."""
    counts = Counter(lane.state for lane in lanes)
    states = [state for state in ("up", "suspect", "lost", "retiring", "login") if counts[state]]
    total = output.plural(len(lanes), "lane")
    if states == ["up"]:
        return total
    return f"{total} ({', '.join(f'{counts[state]} {state}' for state in states)})"


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
        return [tier.name, *[""] * 7, tier.phase.value]
    sizes = (tier.logical, tier.unique, tier.here, tier.to_fetch, tier.fetched, tier.wire_in)
    left = output.duration(tier.left) if tier.left is not None and tier.scanned else ""
    return [tier.name, *map(output.size, sizes), left, state_of(tier)]


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
    line = cut(f"{bar(tier.percent, cells)} {tier.percent:.1f} % of {tier.name}", width)
    room = width - cell_width(line) - len(", at ")
    if not tier.path or room < PATH_LEAST:
        return line
    return f"{line}, at {cut_front(output.show_path(tier.path), room)}"


def _whole(reading: Reading, width: int) -> str:
    parts = [  # the first are what is left on a narrow terminal
        "" if reading.percent is None else f"{reading.percent:.1f} % of all",
        left_text(reading),
        *rate_texts(reading),
        f"{output.size(reading.wire_in)} over the wire",
        f"{output.duration(reading.seconds)} so far",
    ]
    line = ""
    for part in filter(None, parts):
        longer = f"{line}, {part}" if line else part
        if cell_width(longer) > width:
            break
        line = longer
    return cut(line or parts[1] or parts[2], width)


def left_text(reading: Reading) -> str:
    """When it will be over, as far as that can be told."""
    if reading.silent >= SILENT_SECONDS and reading.active is not None:
        return f"nothing came for {output.duration(reading.silent)}"
    if reading.left is None:
        return ""
    return f"{'at least ' if reading.more else ''}{output.duration(reading.left)} left"


def rate_texts(reading: Reading) -> list[str]:
    """The wire's speed, and what of it becomes content here."""
    rate = f"{output.size(reading.rate)}/s"
    content = f"{output.size(reading.content)}/s of it content"
    return [rate, content] if reading.rate and reading.content else [rate]


def bar(percent: float, cells: int) -> str:
    """A bar of `cells` cells, of which `percent` are full."""
    eighths = int(cells * 8 * min(100.0, max(0.0, percent)) / 100)
    full, rest = divmod(eighths, 8)
    text = "█" * full + (EIGHTHS[rest] if rest else "")
    return text + "░" * (cells - len(text))
