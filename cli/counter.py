"""Showing how far local work is (restore, bundle, verify): a bar on a terminal, lines elsewhere.

    with counting("restored", total) as count:
        work(progress=count)

`count(bytes, items)` adds to what is done, from any thread, one at a time. More than the total is
never shown, nor a percent where the total is not known.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from cli import output
from cli.lines import LATER, LATER_FROM, SOON

Count = Callable[[int, int], None]


@contextmanager
def counting(done: str, total: int | None = None, item: str = "file") -> Iterator[Count]:
    """Show `done` ("restored") so many bytes and items as long as the block runs."""
    tally = Tally(done, total, item)
    if sys.stderr.isatty() and os.environ.get("TERM") != "dumb":
        with _bar(tally, total) as count:
            yield count
        return
    yield Lines(tally, time.monotonic()).count


@contextmanager
def _bar(tally: Tally, total: int | None) -> Iterator[Count]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.fields[text]}", markup=False),
        BarColumn(bar_width=30),
        TextColumn("{task.fields[percent]}", markup=False),
        TimeRemainingColumn(),
    )
    console = Console(file=sys.stderr, highlight=False, markup=False)
    with Progress(*columns, console=console, transient=True) as progress:
        bar = progress.add_task("", total=total, text=tally.text, percent=tally.percent)

        def count(size: int, items: int) -> None:
            tally.add(size, items)
            progress.update(bar, completed=tally.shown, text=tally.text, percent=tally.percent)

        yield count


class Tally:
    """What is done, in words."""

    def __init__(self, done: str, total: int | None, item: str) -> None:
        self._done = done
        self._total = total
        self._item = item
        self._size = self._items = 0

    def add(self, size: int, items: int) -> None:
        """Take in what was done."""
        self._size += size
        self._items += items

    @property
    def shown(self) -> int:
        """Bytes done, no more than the total."""
        return self._size if self._total is None else min(self._size, self._total)

    @property
    def text(self) -> str:
        """`1,200 files, 4.00 MB restored`."""
        of = "" if self._total is None else f" of {output.size(self._total)}"
        return (
            f"{output.plural(self._items, self._item)}, {output.size(self.shown)}{of} {self._done}"
        )

    @property
    def percent(self) -> str:
        """In whole percent, rounded down; empty where the total is not known."""
        return f"{100 * self.shown // self._total} %" if self._total else ""


class Lines:
    """The same as lines with their time: the first after five seconds."""

    def __init__(
        self, tally: Tally, now: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._tally = tally
        self._began = self._said = now
        self._clock = clock

    def count(self, size: int, items: int) -> None:
        """Take in what was done, and say so if it is time to."""
        self._tally.add(size, items)
        now = self._clock()
        if now - self._said >= (SOON if now - self._began < LATER_FROM else LATER):
            self._said = now
            percent = f" ({self._tally.percent})" if self._tally.percent else ""
            output.say(f"{time.strftime('%H:%M:%S')} {self._tally.text}{percent}")
