"""Keeps the numbers of one tier right over several rounds and connections."""

from __future__ import annotations

from cas.pull.planner import Counts
from cas.pull.state import TierState
from cas.transport.base import Transport


class WireMeter:
    """What crossed on one connection, each byte told once: the login is the first tier's."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._told = (0, 0)

    def since(self) -> tuple[int, int]:
        """Bytes in and out since the last time."""
        now = (self._transport.bytes_in, self._transport.bytes_out)
        told, self._told = self._told, now
        return now[0] - told[0], now[1] - told[1]


class Tally:
    """One round's share of a tier's state. What earlier rounds brought counts as fetched, not as
    here, so `fetched` never goes back; nor does `to_fetch` while a scan goes on, but at its end
    it is without what was missed before and has gone from the source since."""

    def __init__(self, state: TierState, meter: WireMeter) -> None:
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
