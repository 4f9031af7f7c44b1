"""Which tiers have come a step further since the last look: for displays that report events."""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum

from cas.pull.state import Phase, SyncState, TierState


class Stage(IntEnum):
    """The steps of a tier, each passed once and in this order."""

    WAITING = 0
    STARTED = 1
    SCANNED = 2
    FINISHED = 3


class Stages:
    """Remembers what was reported; a tier that went through several steps reports each."""

    def __init__(self, state: SyncState) -> None:
        self._state = state
        self._reported: dict[int, Stage] = {}
        self._notes = 0

    def news(self) -> Iterator[tuple[TierState, Stage]]:
        """Each step that a tier has made since the last call."""
        for number, tier in enumerate(self._state.tiers):
            reported, now = self._reported.get(number, Stage.WAITING), stage_of(tier)
            for value in range(reported + 1, now + 1):
                if value != Stage.SCANNED or tier.scanned:
                    yield tier, Stage(value)
            self._reported[number] = max(reported, now)

    def notes(self) -> list[tuple[int, str]]:
        """The engine's events since the last call: when, in ms since 1970, and what."""
        state, known = self._state, self._notes
        fresh = list(zip(state.times[known:], state.events[known:], strict=False))
        self._notes += len(fresh)
        return fresh


def stage_of(tier: TierState) -> Stage:
    """How far a tier is."""
    if tier.phase in (Phase.DONE, Phase.FAILED):
        return Stage.FINISHED
    if tier.scanned:
        return Stage.SCANNED
    return Stage.WAITING if tier.phase is Phase.WAITING else Stage.STARTED
