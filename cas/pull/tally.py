"""Keeps the numbers of one tier right over several rounds and connections."""

from __future__ import annotations

from cas.pull.planner import Counts
from cas.pull.state import TierState
from cas.transport.base import Transport


class Tally:
    """One round's share of a tier's state. What earlier rounds brought counts as fetched, not as
    here, so `to_fetch` and `fetched` never go back."""

    def __init__(self, state: TierState, transport: Transport) -> None:
        self._state = state
        self._transport = transport
        self._before = (
            state.wire_in - transport.bytes_in,
            state.wire_out - transport.bytes_out,
            state.fetched,
        )

    def wire(self) -> None:
        """Take in what has crossed by now."""
        self._state.wire_in = self._before[0] + self._transport.bytes_in
        self._state.wire_out = self._before[1] + self._transport.bytes_out

    def counts(self, counts: Counts) -> None:
        """Take in what the scan says."""
        state = self._state
        state.names = counts.names
        state.logical = counts.logical
        state.unique = counts.unique
        state.to_fetch = max(state.to_fetch, self._before[2] + counts.missing)
        state.here = max(0, counts.unique - state.to_fetch)
