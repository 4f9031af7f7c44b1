"""Tables of text that fit: on a narrow terminal the least important columns go first.

Pure: rows in, lines out. The first column names the row and always stays; it alone is cut when
nothing else is left to give up.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

GAP = "  "
HANGING = 6  # cells, where a name takes more than half of a line
FIRST_LEAST = 8  # cells; the first column is never cut below it


@dataclass(frozen=True, slots=True)
class Column:
    """One column. Those with the highest `expendable` are left out first, those with 0 never."""

    title: str
    right: bool = True
    expendable: int = 0


def render(
    columns: Sequence[Column], rows: Sequence[Sequence[str]], width: int | None = None
) -> list[str]:
    """The table as lines, its titles first; at most `width` cells wide if that can be had.

    `None` is for a file or a pipe: nothing is left out there.
    """
    shown = list(range(len(columns)))
    cells = [[column.title for column in columns], *map(list, rows)]
    widths = [max(cell_width(row[i]) for row in cells) for i in shown]
    if width is not None:
        shown = _fitting(columns, widths, width)
        over = _total(widths, shown) - width
        widths[0] = max(min(widths[0], FIRST_LEAST), widths[0] - max(over, 0))
    return [_line(columns, row, widths, shown) for row in cells]


def _fitting(columns: Sequence[Column], widths: Sequence[int], width: int) -> list[int]:
    shown = list(range(len(columns)))
    while _total(widths, shown) > width:
        given_up = max(shown, key=lambda i: (columns[i].expendable, i))
        if not columns[given_up].expendable:
            break
        shown.remove(given_up)
    return shown


def _total(widths: Sequence[int], shown: Sequence[int]) -> int:
    return sum(widths[i] for i in shown) + len(GAP) * (len(shown) - 1)


def _line(
    columns: Sequence[Column], row: Sequence[str], widths: Sequence[int], shown: Sequence[int]
) -> str:
    parts = []
    for i in shown:
        text = cut(row[i], widths[i])
        space = " " * (widths[i] - cell_width(text))
        parts.append(space + text if columns[i].right else text + space)
    return GAP.join(parts).rstrip()


def cell_width(text: str) -> int:
    """How many cells of a terminal `text` takes: two for each wide character."""
    if text.isascii():
        return len(text)
    return sum(_char_width(char) for char in text)


def _char_width(char: str) -> int:
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def hanging(head: str, text: str, width: int | None) -> list[str]:
    """`text` behind `head`, in lines of at most `width` cells that are broken at spaces; those
    after the first begin below the text, or where that leaves no room, a little further in."""
    if width is None or cell_width(head + text) <= width:
        return [f"{head}{text}".rstrip()]
    indent = len(head) if len(head) <= width // 2 else HANGING
    lines, line = [], head
    for word in text.split(" "):
        if line != head and cell_width(f"{line} {word}") > width:
            lines.append(line)
            line = " " * indent + word
        else:
            line = f"{line}{word}" if line == head else f"{line} {word}"
    return [*lines, line]


def cut(text: str, width: int) -> str:
    """`text` in at most `width` cells, with an ellipsis where something is missing."""
    if cell_width(text) <= width:
        return text
    kept, used = [], 1
    for char in text:
        used += _char_width(char)
        if used > width:
            break
        kept.append(char)
    return "".join(kept) + "…" if width > 0 else ""


def cut_front(text: str, width: int) -> str:
    """As `cut`, keeping the end: what tells long paths apart."""
    if cell_width(text) <= width:
        return text
    return cut(text[::-1], width)[::-1]
