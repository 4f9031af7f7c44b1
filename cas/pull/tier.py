"""One round over one tier: scan there, plan here, want, store, until nothing is left to come.

The way of a byte (docs/design.md) from this side. `TierPull.handle` takes every message of the
agent; the order of pages is theirs, whatever order they arrive in. A page that the tier's last
complete snapshot has too is not even looked at, until the first difference.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, field

from cas import __version__
from cas.chunker import IDENTITY
from cas.entry import path_order
from cas.errors import NotHeldError, PeerError, SourceError, TransportError
from cas.ids import Digest
from cas.interfaces import SnapshotRow
from cas.messages import (
    LOOK_AT_ONCE,
    Ack,
    Look,
    Message,
    Missed,
    Page,
    Piece,
    Progress,
    Recipes,
    Refused,
    Same,
    Scan,
    Scanned,
    Want,
)
from cas.pack import Origin, PageRun
from cas.pieces import Assembler
from cas.plan import Tier
from cas.pull.keeper import Keeper
from cas.pull.lanes import Lanes
from cas.pull.planner import Counts, Expected, PlannedPage, Planner, bitmap
from cas.pull.receive import Receiver, StoredSegment
from cas.pull.rows import newest, page_rows
from cas.pull.state import Phase, TierState
from cas.pull.tally import Tally
from cas.pull.whereabouts import Whereabouts
from cas.snapshot import PAGES_LIMIT, PageRef, Snapshot
from cas.store.store import Store, enter_snapshot, page_ref
from cas.store.writer import Writer, now_ms

MISSES_LIMIT = 10_000  # that are kept to be listed
REASON_LIMIT = 200  # characters of each
OF_A_SCAN = (Page, Same, Recipes, Scanned, Missed)


@dataclass(slots=True)
class Round:
    """What a round came to. `missed` are (page number, chunk index, reason)."""

    scanned: Scanned | None = None
    pages: dict[int, PageRef] = field(default_factory=dict)
    missed: list[tuple[int, int, str]] = field(default_factory=list)
    snapshot: SnapshotRow | None = None


class TierPull:
    """One round. `run` returns when all that was wanted is stored or missed."""

    def __init__(
        self,
        tier: Tier,
        number: int,
        *,
        lanes: Lanes,
        assembler: Assembler,
        receiver: Receiver | None,
        store: Store,
        writer: Writer | None,
        planner: Planner,
        keeper: Keeper,
        run: bytes,
        state: TierState,
        first: bool,
        fetch: bool,
    ) -> None:
        self._tier = tier
        self._number = number
        self._lanes = lanes
        self._assembler = assembler
        self._receiver = receiver
        self._store = store
        self._writer = writer
        self._fetches = fetch and writer is not None
        self._planner = planner
        self._keeper = keeper
        self._run = run
        self._state = state
        self._first = first
        self._tally = Tally(state, lanes)
        self._whereabouts = Whereabouts(store.page)
        row, latest = newest(store, tier.name)
        is_ours = latest is not None and latest.source == tier.source
        self._base = latest if row is not None and row.complete and is_ours else None
        self._known = [ref.id for ref in latest.pages] if latest is not None else []
        self._noted = set(self._known if is_ours else [])  # pages whose rows are in the index
        self._skipping = self._base is not None
        self._passed = Counts(unique=self._base.unique if self._base is not None else 0)
        self._numbers: set[int] = set()  # of the pages that came
        self._ends: dict[int, bytes] = {}  # the last path of each page that was looked at
        self._expected: dict[int, Expected] = {}
        self._concluding = self._concluded = False
        self._started_ms = now_ms()
        self._over = False
        self._done = asyncio.Event()
        self._kept: list[tuple[int, list[Digest]]] = []
        self._uncommitted = 0
        self._progress = (0, 0)  # names and bytes that the agent has gone over
        self.round = Round()

    async def run(self) -> Round:
        """Do the round. Raises TransportError when the lane is lost, SourceError when the agent
        cannot do it, PeerError, StoreError; whatever was acknowledged then is kept."""
        self._state.phase = Phase.SCANNING
        await self._lanes.send(self._order())
        tasks = [asyncio.create_task(self._receive()), asyncio.create_task(self._done.wait())]
        if self._writer is not None:
            tasks.append(asyncio.create_task(self._keeper.keep_committing()))
        try:
            ended, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in ended:
                task.result()
        finally:
            self._over = True  # all was acknowledged, or the lane is of no more use
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self._keeper.do(_nothing)  # what the store thread was handed is done
            await self._keeper.commit()
            self._tally.wire()
        return self.round

    async def acknowledged(self, segments: Sequence[StoredSegment]) -> None:
        """These segments are durable: tell the agent, count them."""
        # Counted first: sending may be cancelled, when the lane is being lost.
        self._state.fetched += sum(segment.plain_size for segment in segments)
        self._state.stored += sum(segment.stored_size for segment in segments)
        if self._over:
            return
        with contextlib.suppress(TransportError):  # a lost lane shows where we receive
            await self._lanes.send(Ack(tuple(segment.key for segment in segments)))
        self._uncommitted -= len(segments)
        await self._settle()

    def _order(self) -> Scan:
        pending = self._store.index.pending_pages(self._tier.name)
        self._noted.update(pending)
        known = [*self._known, *pending]
        # Not those that were noted and never stored, or are lost to damage: they are sent again.
        held = self._store.index.held(known)
        pages = dict.fromkeys(page for page, here in zip(known, held, strict=True) if here)
        tier = self._tier
        return Scan(self._number, tier.name, tier.paths, tier.exclude, tier.include, tuple(pages))

    async def _receive(self) -> None:
        while True:
            await self.handle(await self._lanes.receive())

    async def handle(self, message: Message) -> None:
        """Take one message of the agent in. Raises PeerError for what does not belong here."""
        if isinstance(message, OF_A_SCAN) and message.scan != self._number:
            raise PeerError("the agent speaks of a scan that is not going on")
        if isinstance(message, OF_A_SCAN):
            self._lanes.progress()
        if isinstance(message, Piece):
            await self._piece(message)
        elif isinstance(message, Page):
            self._admit(message.number)
            await self._page(message.number, message.encoded)
        elif isinstance(message, Same):
            self._admit(message.number)
            await self._same(message)
        elif isinstance(message, Recipes):
            planned = await self._keeper.do(self._planner.recipes, message.encoded)
            for page in planned:
                await self._take(page)
        elif isinstance(message, Missed):
            self._missed(message)
        elif isinstance(message, Scanned):
            await self._scanned(message)
        elif isinstance(message, Progress):
            self._hear_of(message)
        elif isinstance(message, Refused):
            raise SourceError(message.what, where=message.where, advice=message.advice)
        await self._settle()

    def _hear_of(self, progress: Progress) -> None:
        self._state.path = progress.path
        so_far = (progress.names, progress.read)
        if so_far > self._progress:
            self._progress = so_far
            self._lanes.progress()

    async def _piece(self, piece: Piece) -> None:
        before = self._assembler.again
        data = self._assembler.add(piece)
        again = self._assembler.again - before
        self._state.fetched_again += again
        self._lanes.came_again(again)
        if data is None:
            return
        if self._receiver is None:
            raise PeerError("a segment came although nothing was wanted")
        self._lanes.progress()
        key = (piece.frame, piece.segment)
        stored = await self._keeper.do(self._receiver.store, key, data, self)
        self._uncommitted += len(stored)
        for number in [n for n, expected in self._expected.items() if not expected.left]:
            del self._expected[number]
        all_came = self.round.scanned is not None and not self._expected
        self._keeper.stored(stored, last=all_came)

    def _admit(self, number: int) -> None:
        scanned = self.round.scanned
        if number in self._numbers or number >= (scanned.pages if scanned else PAGES_LIMIT):
            raise PeerError(f"page {number} of a scan came twice, or is one too many")
        self._numbers.add(number)

    async def _page(self, number: int, encoded: bytes) -> None:
        await self._stop_skipping()
        await self._plan(number, encoded)

    async def _plan(self, number: int, encoded: bytes) -> None:
        planned, ask = await self._keeper.do(self._planner.page, number, encoded)
        for at in range(0, len(ask), LOOK_AT_ONCE):
            await self._lanes.send(Look(self._number, ask[at : at + LOOK_AT_ONCE]))
        if planned is not None:
            await self._take(planned)

    async def _same(self, message: Same) -> None:
        base = self._base
        number = message.number
        if self._skipping and base is not None and number < len(base.pages):
            ref = base.pages[number]
            if ref.id == message.page:
                self.round.pages[number] = ref
                self._passed.names += ref.entries
                self._passed.logical += ref.logical
                self._count()
                return
        try:
            encoded = await self._keeper.do(self._store.reader.object, message.page)
        except NotHeldError:
            raise PeerError("the agent takes a page for known here that is not") from None
        await self._page(number, encoded)

    async def _stop_skipping(self) -> None:
        """The tier has changed: look at the pages that were passed over so far."""
        if not self._skipping:
            return
        self._skipping = False
        passed, self.round.pages = self.round.pages, {}
        for number, ref in passed.items():
            await self._plan(number, await self._keeper.do(self._store.reader.object, ref.id))

    async def _take(self, page: PlannedPage) -> None:
        self._ends[page.number] = page.entries[-1].path
        if page.expected is not None and self._fetches:
            self._expected[page.number] = page.expected
            await self._lanes.send(Want(self._number, page.number, bitmap(page.expected.indexes)))
        if self._writer is not None:
            await self._keeper.do(self._keep, page)
        # Only now: if it is the last one, an acknowledgement may end the scan at any time.
        self.round.pages[page.number] = page_ref(page.id, page.entries)
        self._count()

    def _keep(self, page: PlannedPage) -> None:
        """Hand a page, its recipes and its rows to the writer; in the store thread."""
        writer = self._writer
        if writer is None:
            return
        origin = self.origin(0, ())
        # Rows first: a commit may come in between, and rows without their page are only early.
        writer.note(page_rows(self._tier, page, with_files=page.id not in self._noted))
        fresh = self._planner.fresh_recipes(page.entries)
        ids = [writer.add_object(recipe, origin) for recipe in fresh]
        writer.add_object(page.encoded, origin)
        self._forget_kept(ids)

    def _forget_kept(self, ids: list[Digest]) -> None:
        """Remember recipes handed to the writer; drop those that a whole commit has passed."""
        now = self._keeper.commits
        self._kept.append((now, ids))
        while self._kept and self._kept[0][0] + 2 <= now:
            self._planner.drop_recipes(self._kept.pop(0)[1])

    def _missed(self, message: Missed) -> None:
        expected = self.expected(self._number, message.number)
        for index, reason in message.chunks:
            expected.settle(index)
            if len(self.round.missed) < MISSES_LIMIT:
                self.round.missed.append((message.number, index, reason[:REASON_LIMIT]))
        self._state.missed += len(message.chunks)
        if not expected.left:
            del self._expected[message.number]

    async def _scanned(self, message: Scanned) -> None:
        if self.round.scanned is not None or max(self._numbers, default=-1) >= message.pages:
            raise PeerError("the agent ended a scan twice, or too early")
        whole = self._base is not None and len(self._base.pages) == len(self.round.pages)
        if not whole or message.pages != len(self.round.pages):
            await self._stop_skipping()
        self.round.scanned = message

    async def _settle(self) -> None:
        """After every step: has the scan been understood, is the round over?"""
        self._tally.wire()
        scanned = self.round.scanned
        if scanned is None or self._planner.is_waiting or self._done.is_set():
            return
        if len(self.round.pages) < scanned.pages:
            return
        if not self._concluding:
            self._concluding = True
            await self._conclude(scanned)
            self._concluded = True
        # Acknowledgements come here too, also while the snapshot is being written.
        if self._concluded and not self._expected and not self._uncommitted:
            self._done.set()

    async def _conclude(self, scanned: Scanned) -> None:
        """The scan is over and understood: make its totals final and its snapshot durable."""
        self._count(final=True)
        if self._writer is not None:
            await self._keeper.commit()
            await self._keeper.do(self._enter_snapshot, scanned)
            await self._keeper.commit()

    def _enter_snapshot(self, scanned: Scanned) -> None:
        """Write the tier's snapshot; in the store thread, all its pages being durable."""
        pages = tuple(self.round.pages[number] for number in range(scanned.pages))
        for number, end in self._ends.items():
            if number + 1 < len(pages) and path_order(end) >= path_order(pages[number + 1].first):
                raise PeerError("the pages of a scan are not in path order")
        # By the clock here, and after all others: the newest one is the tier, whatever the
        # source takes the time to be.
        others = [row.finished_ms for row in self._store.snapshots(self._tier.name)]
        finished_ms = max(now_ms(), max(others, default=0) + 1)
        snapshot = Snapshot(
            self._tier.name,
            self._tier.source,
            self._lanes.host,
            self._tier.paths,
            self._run,
            min(self._started_ms, finished_ms),
            finished_ms,
            IDENTITY,
            __version__,
            self._state.unique,
            pages,
            scanned.problems,
        )
        if self._writer is not None:
            self.round.snapshot = enter_snapshot(self._store, self._writer, snapshot)

    def _count(self, *, final: bool = False) -> None:
        counts = self._passed if self._skipping else self._planner.counts
        if self._first or final:
            self._tally.counts(counts, final=final)
        if final:
            self._state.scanned = True
            self._state.phase, self._state.path = Phase.FETCHING, b""

    def expected(self, scan: int, page: int) -> Expected:
        """See `Awaiting.expected`."""
        expected = self._expected.get(page) if scan == self._number else None
        if expected is None:
            raise PeerError("chunks came of a page of which none are wanted")
        return expected

    def origin(self, wire_size: int, runs: tuple[PageRun, ...]) -> Origin:
        """See `Awaiting.origin`."""
        tier, lane = self._tier, self._lanes.lane
        if self._state.phase is Phase.FETCHING:
            self._state.path = self._whereabouts.look(runs) or self._state.path
        return Origin(self._run, tier.source, tier.name, now_ms(), lane, wire_size, runs)


def _nothing() -> None:
    pass
