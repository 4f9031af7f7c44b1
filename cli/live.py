"""The live display of a sync on a terminal: the frame of `frames.py`, drawn anew in place by rich.

It vanishes at the end; what remains are the summary on standard output and what was said above.
"""

from __future__ import annotations

import sys

from rich.console import Console
from rich.live import Live
from rich.text import Text

from cas.pull.state import SyncState
from cli import output
from cli.frames import Frame, frame
from cli.meter import Meter
from cli.stages import Stages


class LiveDisplay:
    """See `progress.Display`."""

    seconds = 0.25

    def __init__(self, state: SyncState, console: Console | None = None) -> None:
        self._state = state
        self._console = console or Console(file=sys.stderr, highlight=False, markup=False)
        self._stages = Stages(state)
        self._live: Live | None = None
        self._meter: Meter | None = None

    def begin(self, now: float) -> None:
        """See `Display.begin`."""
        self._meter = Meter(self._state, now)
        self._live = Live(
            console=self._console,
            auto_refresh=False,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
            vertical_overflow="crop",
        )
        self._live.start()

    def tick(self, now: float) -> None:
        """See `Display.tick`."""
        if self._live is None or self._meter is None:
            return
        for at_ms, note in self._stages.notes():
            said = f"{output.clock(at_ms)} {output.printable(note)}"
            self._console.print(Text(said), soft_wrap=True)
        shown = frame(self._meter.read(now), self._console.width - 1, self._console.height)
        # https://no-color.org speaks of colours alone, and rich leaves bold in. But tables are left
        # plain then too (`output.paint`), and who sets it has one rule to know.
        self._live.update(_styled(shown, bold=not self._console.no_color), refresh=True)

    def end(self, now: float) -> None:
        """See `Display.end`."""
        if self._live is not None:
            self.tick(now)
            self._live.stop()
            self._live = None


def _styled(shown: Frame, *, bold: bool) -> Text:
    """Only the titles are set apart; the words say the rest."""
    text = Text(no_wrap=True, overflow="crop")
    for number, line in enumerate(shown.lines):
        text.append("\n" if number else "")
        text.append(line, "bold" if bold and number in shown.titles else None)
    return text
