"""Showing how far a sync is while it runs: live on a terminal, lines elsewhere, or JSON.

    async with shown(display_for(state, as_json=False)):
        await sync(...)

The display only reads the engine's counters, a few times a second, and always shows the last state
before the `with` is left, whatever ended it.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Protocol

from cas.pull.state import SyncState


class Display(Protocol):
    """Shows one sync. Times are of the monotonic clock."""

    @property
    def seconds(self) -> float:
        """How long from tick to tick."""

    def begin(self, now: float) -> None:
        """Start showing."""

    def tick(self, now: float) -> None:
        """Show what has changed."""

    def end(self, now: float) -> None:
        """Show the last state and leave the terminal as it was."""


def display_for(state: SyncState, *, as_json: bool) -> Display:
    """The display that suits where we are."""
    if as_json:
        from cli.events import EventDisplay

        return EventDisplay(state)
    if sys.stderr.isatty() and os.environ.get("TERM") != "dumb":
        from cli.live import LiveDisplay

        return LiveDisplay(state)
    from cli.lines import LineDisplay

    return LineDisplay(state)


@asynccontextmanager
async def shown(display: Display) -> AsyncIterator[None]:
    """Show a sync as long as the block runs."""
    display.begin(time.monotonic())
    ticking = asyncio.create_task(_tick(display))
    try:
        yield
    finally:
        ticking.cancel()
        await asyncio.wait([ticking])
        display.end(time.monotonic())
    if not ticking.cancelled():
        ticking.result()  # a display that broke is a mistake of ours, told after the work is done


async def _tick(display: Display) -> None:
    while True:
        try:
            display.tick(time.monotonic())
        except BrokenPipeError:  # nobody reads along any more: no reason to stop fetching
            return
        await asyncio.sleep(display.seconds)
