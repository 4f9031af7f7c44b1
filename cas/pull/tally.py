"""Keeps the numbers of one tier right over several rounds and connections."""

from __future__ import annotations

from typing import Protocol

from cas.pull.planner import Counts
from cas.pull.state import TierState


class Meter(Protocol):
    """Whatever knows what crossed."""

    def since(self) -> tuple[int, int]:
        """Bytes in and out since the last time."""


class Tally:
    """One round's share of a tier's state. What earlier rounds brought counts as fetched, not as
    here, so `fetched` never goes back; nor does `to_fetch` while a scan goes on, but at its end
    it is without what was missed before and has gone from the source since."""

    def __init__(self, state: TierState, meter: Meter) -> None:
        self._state = state
        self._meter = meter
        self._fetched_before = state.fetched

    def wire(self) -> None:
        """Take in what has crossed since this was last asked."""
        came, went = self._meter.since()
        self._state.wire_in += came
        self._state.wire_out += went

    def counts(self, counts: Counts, *, final: bool) -> None:
        """Take in what the scan says, at last or so far."""
        state = self._state
        state.names = counts.names
        state.logical = counts.logical
        state.unique = counts.unique
        state.packed = counts.packed
        to_fetch = self._fetched_before + counts.missing
        state.to_fetch = to_fetch if final else max(state.to_fetch, to_fetch)
        state.here = max(0, counts.unique - state.to_fetch)
