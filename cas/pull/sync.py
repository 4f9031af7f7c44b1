"""A sync: the chosen tiers, in order, from their sources into a store.

A tier takes one round, more only if files changed between scan and reading or the connection was
lost. Whatever was acknowledged stays, so a round after a kill, a lost lane or Ctrl-C asks only for
what is still missing: there is no other kind of resuming.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from cas.entry import Entry, Problem
from cas.errors import HostKeyError, LoginError, TransportError
from cas.interfaces import Changes
from cas.messages import Ahead, Tune
from cas.pieces import Assembler
from cas.plan import Tier
from cas.pull.keeper import Keeper
from cas.pull.lanes import Lanes, agent_name
from cas.pull.minder import GivenUpError, LaneOptions
from cas.pull.planner import IndexHoldings, Planner, Promises
from cas.pull.receive import Receiver, StoredSegment
from cas.pull.silence import GIVE_UP_SECONDS
from cas.pull.silence import REFUSED_SECONDS as RETRY_SECONDS
from cas.pull.state import Phase, SyncState, TierState
from cas.pull.tier import Round, TierPull
from cas.store.store import Store
from cas.store.writer import Writer
from cas.transport.base import Dialer

ROUNDS = 3  # over a tier whose files go on changing
BUDGET = 32 * 2**20
LOOK_AHEAD_SECONDS = 0.2
DEFAULT_LEVEL = 3


def _unlimited() -> None:
    return None


def _look_away(_tier: str, _entries: Sequence[Entry]) -> None:
    pass


@dataclass(frozen=True, slots=True)
class SyncOptions:
    """`level` for all sources, or `levels` by source (0: as the link allows); `lanes` says how many
    connections a source gets, `remembered` how many did best before; `limit` how many bytes a
    second may come now; `see` is given a tier's name and entries (see Planner); `give_up` is how
    long a source may stay out of reach; `dry_run` scans and counts only: what
    the scan found is kept if there is a writer."""

    level: int | None = None
    levels: Mapping[str, int] = field(default_factory=dict)
    lanes: Mapping[str, int] = field(default_factory=dict)
    remembered: Mapping[str, int] = field(default_factory=dict)
    limit: Callable[[], int | None] = _unlimited
    see: Callable[[str, Sequence[Entry]], None] = _look_away
    dry_run: bool = False
    give_up: float = GIVE_UP_SECONDS

    def lanes_of(self, source: str) -> LaneOptions:
        """How the lanes to `source` are to be."""
        return LaneOptions(
            fixed=self.lanes.get(source),
            remembered=self.remembered.get(source),
            give_up=self.give_up,
            limit=self.limit,
        )

    def level_for(self, source: str) -> int:
        """The zstd level that the agent of `source` is to use."""
        return self.levels.get(source, DEFAULT_LEVEL) if self.level is None else self.level


async def sync(
    tiers: Sequence[Tier],
    dialers: Mapping[str, Dialer],
    store: Store,
    writer: Writer | None,
    state: SyncState,
    options: SyncOptions,
    run: bytes = b"",
) -> None:
    """Bring `tiers` here, one after another; `state` tells how far it is at any moment.

    On return every tier's snapshot is durable and, unless its state says otherwise, complete.
    Raises CasError when a source cannot be reached or served, the store cannot be written, or a
    peer breaks the protocol; on that, and when cancelled, all that was stored is committed first.
    """
    run = run or new_run()
    state.started = time.monotonic()
    state.tiers[:] = [TierState(tier.name, tier.source) for tier in tiers]
    for source in dict.fromkeys(tier.source for tier in tiers):
        if source not in dialers:
            raise TransportError("no way to reach this source is known", where=source)
    async with contextlib.AsyncExitStack() as stack:
        links: dict[str, _Link] = {}
        promises = Promises()
        for number, (tier, tier_state) in enumerate(zip(tiers, state.tiers, strict=True)):
            link = links.get(tier.source)
            if link is None:
                link = links[tier.source] = _Link(
                    dialers[tier.source], store, writer, promises, state, options, run
                )
                stack.push_async_callback(link.close)
            rest = (later for later in tiers[number + 1 :] if later.source == tier.source)
            await link.pull(tier, tier_state, next(rest, None))
            promises.end_tier()


def new_run() -> bytes:
    """The id of a run: 16 random bytes."""
    return os.urandom(16)


class _Link:
    """The way to one source: an agent and its lanes, made anew as often as it is lost."""

    def __init__(
        self,
        dialer: Dialer,
        store: Store,
        writer: Writer | None,
        promises: Promises,
        state: SyncState,
        options: SyncOptions,
        run: bytes,
    ) -> None:
        self._dialer = dialer
        self._store = store
        self._writer = writer
        self._promises = promises
        self._state = state
        self._options = options
        self._run = run
        self._lanes: Lanes | None = None
        self._keeper = Keeper(writer, self._acknowledged)
        self._pull: TierPull | None = None
        self._scans = 0
        self._following: Tier | None = None
        self._assembler = Assembler()
        self._receiver: Receiver | None = None

    async def pull(self, tier: Tier, state: TierState, following: Tier | None) -> None:
        """Bring one tier here, in as many rounds as it takes; `following` will be the next."""
        state.started = time.monotonic()
        self._following = following
        try:
            for number in range(ROUNDS):
                last = await self._round_over_faults(tier, state, first=number == 0)
                if not last.missed:
                    break
                self._state.note(
                    f"{tier.name}: {len(last.missed)} chunks had changed since the scan"
                )
            await self._finish(state, last)
        except BaseException:
            state.phase = Phase.FAILED
            raise
        finally:
            state.finished = time.monotonic()

    async def close(self) -> None:
        """Commit what is left, say goodbye, end: the later also when the earlier is cancelled."""
        async with contextlib.AsyncExitStack() as rest:
            rest.callback(self._keeper.close)
            rest.push_async_callback(self._hang_up)
            if self._lanes is not None:
                rest.push_async_callback(self._lanes.goodbye)
            await self._keeper.commit()

    async def _round_over_faults(self, tier: Tier, state: TierState, *, first: bool) -> Round:
        """One round, begun again after each lost connection until the source is given up."""
        since = time.monotonic()
        attempt = 0
        while True:
            fetched = state.fetched
            try:
                return await self._round(tier, state, first=first)
            except (HostKeyError, LoginError, GivenUpError):
                raise
            except TransportError as error:
                await self._hang_up()
                if state.fetched > fetched:
                    since, attempt = time.monotonic(), 0
                tried = attempt >= len(RETRY_SECONDS)  # else it may have been here all the time
                if self._never_was or (tried and time.monotonic() - since > self._options.give_up):
                    raise
                pause = RETRY_SECONDS[min(attempt, len(RETRY_SECONDS) - 1)]
                attempt += 1
                first = False
                self._state.note(f"{error}; trying again in {pause:.0f} s")
                await asyncio.sleep(pause)

    async def _round(self, tier: Tier, state: TierState, *, first: bool) -> Round:
        lanes = await self._connected(tier, state)
        self._scans += 1
        writer = self._writer
        holdings = IndexHoldings(
            self._store.index,
            self._store.reader.object,
            writer.pending if writer is not None and self._fetches else self._promises.held,
        )
        self._promises.begin_round()
        self._pull = TierPull(
            tier,
            self._scans,
            lanes=lanes,
            assembler=self._assembler,
            receiver=self._receiver,
            store=self._store,
            writer=writer,
            planner=Planner(holdings, partial(self._options.see, tier.name)),
            keeper=self._keeper,
            run=self._run,
            state=state,
            first=first,
            fetch=self._fetches,
        )
        ahead = asyncio.create_task(self._look_ahead(lanes, state))
        lanes.is_awaited = True
        try:
            return await self._pull.run()
        finally:
            lanes.is_awaited = False
            self._pull = None
            ahead.cancel()
            await asyncio.gather(ahead, return_exceptions=True)

    async def _look_ahead(self, lanes: Lanes, state: TierState) -> None:
        """While this tier is on its way, let the agent learn what is in the next."""
        following, self._following = self._following, None
        if following is None or not lanes.is_far or not self._fetches:
            return
        while not state.scanned:  # noqa: ASYNC110 - it is a counter, and there is no hurry
            await asyncio.sleep(LOOK_AHEAD_SECONDS)
        await lanes.send(
            Ahead(following.name, following.paths, following.exclude, following.include)
        )

    async def _finish(self, state: TierState, last: Round) -> None:
        problems = list(last.scanned.problems) if last.scanned is not None else []
        row = last.snapshot
        is_whole = not last.missed and (self._fetches or not state.to_fetch)
        if row is not None and is_whole and not row.complete and self._writer is not None:
            self._writer.note(Changes(snapshots=[replace(row, complete=True)]))
            await self._keeper.commit()
        if last.missed:
            problems += await self._keeper.do(_name_missed, self._store, last)
        state.problems = tuple(problems)
        state.complete = not last.missed and not self._options.dry_run
        state.phase = Phase.DONE

    async def _connected(self, tier: Tier, state: TierState) -> Lanes:
        if self._lanes is None:
            state.phase = Phase.CONNECTING
            lanes = Lanes(
                self._dialer,
                tier.source,
                agent_name(self._client(tier)),
                self._options.lanes_of(tier.source),
                self._state,
            )
            await lanes.open()
            self._lanes = lanes
            self._assembler = Assembler()
            self._receiver = None
            if self._writer is not None and self._fetches:
                self._receiver = Receiver(self._writer)
            await lanes.send(Tune(self._options.level_for(tier.source), BUDGET))
        return self._lanes

    def _client(self, tier: Tier) -> bytes:
        """Who we are to an agent: one that still waits for the same is ended by its successor."""
        if self._writer is None:  # there may be others like us
            return self._run
        root = self._store.layout.root
        # Hosts may well have one name, and their stores one path.
        return os.fsencode(f"{socket.gethostname()}\0{tier.source}\0{root}\0{root.stat().st_ino}")

    @property
    def _fetches(self) -> bool:
        """Whether content is to come: not when only the scan is kept."""
        return not self._options.dry_run

    @property
    def _never_was(self) -> bool:
        return not self._scans

    async def _acknowledged(self, segments: list[StoredSegment]) -> None:
        if self._pull is not None:
            await self._pull.acknowledged(segments)

    async def _hang_up(self) -> None:
        receiver, self._receiver = self._receiver, None
        lanes, self._lanes = self._lanes, None
        try:
            if receiver is not None:
                await self._keeper.do(receiver.close)
        finally:
            if lanes is not None:
                if lanes.best is not None:
                    self._state.best_lanes[lanes.source] = lanes.best
                await lanes.close()


def _name_missed(store: Store, last: Round) -> list[Problem]:
    """The files whose chunks did not come, with the reason of the first."""
    problems: dict[bytes, Problem] = {}
    for number in sorted({page for page, _, _ in last.missed}):
        reasons = {index: reason for page, index, reason in last.missed if page == number}
        at = 0
        for entry in store.page(last.pages[number].id):
            count = entry.content.chunk_count if entry.content is not None else 0
            reason = next((reasons[i] for i in range(at, at + count) if i in reasons), None)
            if reason is not None:
                problems[entry.path] = Problem(entry.path, reason)
            at += count
    return list(problems.values())
