"""What goes wrong with honest ends: cancelled, slow, lost at any moment. Nothing hangs, nothing is
lost, the numbers stay right."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import socket
import threading
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from cas.chunker import IDENTITY
from cas.entry import Content
from cas.errors import StoreError, TransportError
from cas.ids import DIGEST_SIZE, digest_of, split_digests
from cas.interfaces import Changes, SnapshotRow
from cas.messages import PROTOCOL, Ack, Beat, Hello, Look, Message, Page, Recipes, Scanned, Want
from cas.pack import HEADER_SIZE
from cas.pull import lane as lane_module
from cas.pull import tier as tier_module
from cas.pull.keeper import Keeper
from cas.pull.lane import Lane
from cas.pull.planner import PlannedPage
from cas.pull.sync import SyncOptions
from cas.pull.tier import TierPull
from cas.recipe import Recipe, encode_recipe
from cas.session import Role, Session
from cas.snapshot import Snapshot
from cas.store.layout import Layout
from cas.store.memory_index import MemoryIndex
from cas.store.store import Store, enter_snapshot
from cas.store.writer import Writer
from cas.transport.base import Transport
from cas.transport.memory import pair
from cas.verify.store import repair_store, verify_store
from tests.pull.scripted import (
    LIMIT_SECONDS,
    Peer,
    ScriptDialer,
    file,
    page,
    run_scripts,
    run_sync,
    scanned,
    segment,
    serve_wants,
)
from tests.pull.world import AgentDialer, World
from tests.real.killing import stored_twice

STEPS = range(12)  # of the event loop: more than any hand-over here takes


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


async def _steps(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def _ends(task: asyncio.Task[None]) -> bool:
    """Whether a cancelled task ends."""
    done, _ = await asyncio.wait({task}, timeout=LIMIT_SECONDS)
    task.cancel()  # once more, for the sake of the tests that follow
    await asyncio.wait({task}, timeout=LIMIT_SECONDS)
    return bool(done)


async def _open_lane() -> tuple[Lane, Transport, Session]:
    near, far = pair()
    session = Session(Role.AGENT)
    await far.send(session.greeting(Hello(PROTOCOL, "0", IDENTITY, ())))
    lane = Lane(near, "far")
    await lane.greet()
    session.receive(await far.receive())
    assert isinstance(session.next_message(), Hello)
    return lane, far, session


@pytest.mark.parametrize("steps", STEPS)
async def test_receiving_can_be_cancelled_at_any_step_and_loses_no_message(steps: int) -> None:
    lane, far, session = await _open_lane()
    seen: list[Message] = []

    async def read() -> None:
        while True:
            seen.append(await lane.receive())

    task = asyncio.create_task(read())
    await _steps(3)
    await far.send(session.send(Beat(1)))
    await _steps(steps)
    task.cancel()
    assert await _ends(task)
    await far.send(session.send(Beat(2)))
    while Beat(2) not in seen:
        seen.append(await asyncio.wait_for(lane.receive(), LIMIT_SECONDS))
    assert [Beat(1), Beat(2)] == seen
    await lane.close()


class Clock:
    """A clock that only `pass_by` moves, and receiving by `each` seconds."""

    def __init__(self, patch: pytest.MonkeyPatch, each: float = 0.0) -> None:
        self._now = 0.0
        self._each = each
        patch.setattr(lane_module, "time", SimpleNamespace(monotonic=lambda: self._now))

    def pass_by(self, seconds: float) -> None:
        """Let time pass."""
        self._now += seconds

    def slow(self, lane: Lane, size: int) -> None:
        """Let no more than `size` bytes come at a time, each with its seconds."""
        receive = lane.transport.receive
        held = bytearray()

        async def slowly() -> bytes:
            if not held:
                held.extend(await receive())
            self.pass_by(self._each)
            data = bytes(held[:size])
            del held[:size]
            return data

        lane.transport.receive = slowly  # type: ignore[method-assign]


async def test_heartbeats_alone_do_not_keep_a_lane(monkeypatch: pytest.MonkeyPatch) -> None:
    lane, far, session = await _open_lane()
    Clock(monkeypatch, each=50.0).slow(lane, 12)
    for number in range(10):
        await far.send(session.send(Beat(number)))
    with pytest.raises(TransportError, match=r"nothing (has come|was taken) for"):
        await _read(lane, 10)
    await lane.close()


async def _read(lane: Lane, count: int) -> list[Message]:
    return [await asyncio.wait_for(lane.receive(), LIMIT_SECONDS) for _ in range(count)]


async def test_a_large_message_may_take_longer_than_silence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lane, far, session = await _open_lane()
    Clock(monkeypatch, each=50.0).slow(lane, 50_000)
    sent = Page(1, 0, os.urandom(600_000))
    await far.send(session.send(sent))
    assert [sent] == await _read(lane, 1)
    await lane.close()


async def test_a_message_that_does_not_get_on_is_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lane, far, session = await _open_lane()
    Clock(monkeypatch, each=50.0).slow(lane, 100)
    await far.send(session.send(Page(1, 0, os.urandom(600_000))))
    with pytest.raises(TransportError, match=r"nothing (has come|was taken) for"):
        await _read(lane, 1)
    await lane.close()


async def test_work_of_our_own_is_not_the_far_ends_silence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lane, far, session = await _open_lane()
    clock = Clock(monkeypatch)
    for number in range(3):
        clock.pass_by(1000.0)
        await far.send(session.send(Beat(number)))
        assert [Beat(number)] == await _read(lane, 1)
    await lane.close()


async def test_a_far_end_that_does_not_read_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    lane, _, _ = await _open_lane()
    ids = tuple(split_digests(os.urandom(2_000_000 // DIGEST_SIZE * DIGEST_SIZE)))
    monkeypatch.setattr(lane_module, "SILENCE_SECONDS", 0.1)
    with pytest.raises(TransportError, match=r"nothing (has come|was taken) for"):
        await asyncio.wait_for(lane.send(Look(1, ids)), LIMIT_SECONDS)
    await lane.close()


async def _acknowledge_nothing(_: object) -> None:
    pass


@pytest.mark.parametrize("steps", STEPS)
async def test_committing_can_be_cancelled_at_any_step(steps: int) -> None:
    keeper = Keeper(None, _acknowledge_nothing)
    task = asyncio.create_task(keeper.keep_committing())
    await _steps(3)
    keeper.stored([], last=True)
    await _steps(steps)
    task.cancel()
    assert await _ends(task)
    keeper.close()


def _fill(world: World, *, files: int = 30, big: int = 2_000_000) -> None:
    rng = random.Random(4)
    for number in range(files):
        (world.source / f"f{number:03}").write_bytes(rng.randbytes(rng.randrange(1, 30_000)))
    (world.source / "big").write_bytes(rng.randbytes(big))


class Hooked:
    """A lane that calls `before` with the number of each receive, then does it."""

    def __init__(self, inner: Transport, before: Callable[[int], Awaitable[None]]) -> None:
        self._inner = inner
        self._before = before
        self.receives = 0
        self.closed = False

    @property
    def bytes_in(self) -> int:
        return self._inner.bytes_in

    @property
    def bytes_out(self) -> int:
        return self._inner.bytes_out

    async def send(self, data: bytes) -> None:
        await self._inner.send(data)

    async def receive(self) -> bytes:
        self.receives += 1
        await self._before(self.receives)
        return await self._inner.receive()

    async def close(self) -> None:
        self.closed = True
        await self._inner.close()

    def complaints(self) -> str:
        return ""


def test_cancelled_at_any_message_it_ends_and_goes_on_later(world: World) -> None:
    _fill(world)
    for number in (1, 2, 3, 4, 6, 8, 11, 15):
        with pytest.raises(asyncio.CancelledError):
            asyncio.run(_cancelled_at(world, number))
        store = world.open()
        for row in store.snapshots():
            assert not row.complete
            list(store.entries(store.snapshot(row.id)))
        store.reader.close()
    (tier,) = world.sync(world.tier("one")).tiers
    assert tier.complete
    assert world.on_disk() == world.content("one")
    assert stored_twice(world.layout.root.parent) == 0


async def _cancelled_at(world: World, number: int) -> None:
    ours = asyncio.current_task()

    async def before(receives: int) -> None:
        if receives == number and ours is not None:
            ours.cancel()

    dialer = AgentDialer(world.cache, lambda inner: Hooked(inner, before))
    await run_sync(world, dialer, world.tier("one"))


async def test_the_last_page_is_durable_before_the_snapshot_is_written(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An acknowledgement that comes while the last page is taken in must not end the scan."""
    committed = threading.Event()  # for what the end of a scan needs
    keep, conclude, commit = TierPull._keep, TierPull._conclude, Keeper.commit
    concluding: list[TierPull] = []
    lacking: list[bytes] = []

    def slow_keep(pull: TierPull, page: PlannedPage) -> None:
        if page.number == 1:
            committed.wait(0.5)
        keep(pull, page)

    async def noted_conclude(pull: TierPull, scanned: Scanned) -> None:
        concluding.append(pull)
        await conclude(pull, scanned)

    async def noted_commit(keeper: Keeper) -> None:
        ends = bool(concluding)
        await commit(keeper)
        if ends:
            committed.set()

    def checked(store: Store, writer: Writer, snapshot: Snapshot) -> SnapshotRow:
        lacking.extend(ref.id for ref in snapshot.pages if store.index.locate(ref.id) is None)
        return enter_snapshot(store, writer, snapshot)

    monkeypatch.setattr(TierPull, "_keep", slow_keep)
    monkeypatch.setattr(TierPull, "_conclude", noted_conclude)
    monkeypatch.setattr(Keeper, "commit", noted_commit)
    monkeypatch.setattr(tier_module, "enter_snapshot", checked)
    data = [b"first", b"x" * 70_000 + b"second"]
    recipe = encode_recipe(Recipe(
        len(data[1]), digest_of(data[1]),
        (digest_of(data[1][:50_000]), digest_of(data[1][50_000:])), (50_000, len(data[1]) - 50_000),
    ))  # fmt: skip
    second = replace(
        file(b"b", data[1]),
        content=Content(len(data[1]), digest_of(data[1]), 2, (digest_of(recipe),)),
    )

    async def script(peer: Peer) -> None:
        await peer.greet()
        await peer.send(page(0, file(b"a", data[0])), page(1, second), scanned(2))
        await peer.get(Look)
        # The segment is stored, and before it is acknowledged the last page's recipe comes.
        await peer.send(*segment((1, 0), [data[0]], [(1, 0, 0, 1)]), Recipes(1, (recipe,)))
        await peer.get(Ack)
        parts = [data[1][:50_000], data[1][50_000:]]
        await peer.send(*segment((2, 0), parts, [(1, 1, 0, 2)]))
        await peer.until_gone()

    await run_sync(world, ScriptDialer(script), world.tier("one"))
    assert [] == lacking
    assert world.state.tiers[0].complete


def _snapshot(world: World, tier: str = "one") -> tuple[SnapshotRow, Snapshot]:
    store = world.open()
    found = store.latest(tier)
    store.reader.close()
    return found


def test_a_page_that_was_noted_and_never_stored_is_sent_again(world: World) -> None:
    _fill(world, files=3, big=10)
    world.sync(world.tier("one"))
    pages = [ref.id for ref in _snapshot(world)[1].pages]
    world.layout = Layout(world.layout.root.with_name("other"))
    world.layout.create()
    world.index = MemoryIndex()
    # Killed after the commit of a page's rows, before that of the page.
    world.index.commit(Changes(pending_pages=[("one", page) for page in pages]))
    assert world.sync(world.tier("one")).tiers[0].complete
    assert world.on_disk() == world.content("one")


def test_packs_that_are_lost_with_their_index_are_fetched_again(world: World) -> None:
    """The index was made anew from what is left: a snapshot and no pack."""
    _fill(world, files=3, big=10)
    world.sync(world.tier("one"))
    row, _ = _snapshot(world)
    for pack in world.layout.packs.iterdir():
        pack.unlink()
    world.index = MemoryIndex()
    world.index.commit(Changes(snapshots=[replace(row, complete=False)]))
    assert world.sync(world.tier("one")).tiers[0].complete
    assert world.on_disk() == world.content("one")


class LostAtAck(Hooked):
    """A lane that is lost while its first acknowledgement is being sent."""

    def __init__(self, inner: Transport) -> None:
        super().__init__(inner, self._lost)
        self._sending = asyncio.Event()

    async def send(self, data: bytes) -> None:
        if data[4] == Ack.TYPE:
            self._sending.set()
            # Mostly the loss shows where we receive; a commit at the end of a scan sends its
            # acknowledgement from there, and then it shows here.
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(asyncio.Event().wait(), 2)
            raise TransportError("lost by the test")
        await self._inner.send(data)

    async def _lost(self, _: int) -> None:
        if self._sending.is_set():
            raise TransportError("lost by the test")

    async def receive(self) -> bytes:
        reading = asyncio.ensure_future(super().receive())
        lost = asyncio.ensure_future(self._sending.wait())
        try:
            await asyncio.wait((reading, lost), return_when=asyncio.FIRST_COMPLETED)
            await self._lost(0)
            return await reading
        finally:
            reading.cancel()
            lost.cancel()
            await asyncio.gather(reading, lost, return_exceptions=True)


def test_what_was_durable_when_the_lane_was_lost_is_counted(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cas.pull.sync.RETRY_SECONDS", (0.0,))
    _fill(world)
    first = [True]

    def wrap(inner: Transport) -> Transport:
        return LostAtAck(inner) if first and first.pop() else inner

    (tier,) = world.sync(world.tier("one"), wrap=wrap).tiers
    assert tier.complete
    assert tier.fetched == tier.to_fetch == tier.unique
    assert tier.here == 0
    assert world.on_disk() == world.content("one")


def test_a_source_that_comes_back_at_once_is_not_given_up(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long the scan had lasted, in which nothing was fetched."""
    monkeypatch.setattr("cas.pull.sync.RETRY_SECONDS", (0.0, 0.0))
    _fill(world, files=3, big=10)
    world.sync(world.tier("one"))
    left = [2]

    async def before(_: int) -> None:
        left[0] -= 1
        if left[0] == 0:
            raise TransportError("lost by the test")

    options = SyncOptions(give_up=0.0)
    state = world.sync(world.tier("one"), wrap=lambda t: Hooked(t, before), options=options)
    assert state.tiers[0].complete
    assert 1 == len(state.events)


def test_a_source_that_never_answers_again_is_given_up(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cas.pull.sync.RETRY_SECONDS", (0.0, 0.0))
    _fill(world, files=3, big=10)
    left = [2]

    async def before(_: int) -> None:
        left[0] -= 1
        if left[0] <= 0:
            raise TransportError("lost by the test")

    with pytest.raises(TransportError, match="lost by the test"):
        world.sync(
            world.tier("one"),
            wrap=lambda t: Hooked(t, before),
            options=SyncOptions(give_up=0.0),
        )


def test_cancelled_it_ends_although_the_far_end_takes_nothing(world: World) -> None:
    _fill(world)
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(_cancelled_when_stuck(world))
    (tier,) = world.sync(world.tier("one")).tiers
    assert tier.complete
    assert stored_twice(world.layout.root.parent) == 0


async def _cancelled_when_stuck(world: World) -> None:
    ours = asyncio.current_task()

    class Stuck(Hooked):
        async def send(self, data: bytes) -> None:
            if data[4] == Ack.TYPE:
                assert ours is not None
                ours.cancel()
                await asyncio.Event().wait()
            await self._inner.send(data)

    async def before(_: int) -> None:
        pass

    await run_sync(
        world, AgentDialer(world.cache, lambda inner: Stuck(inner, before)), world.tier("one")
    )


@pytest.mark.parametrize("after", [0, 1, 2, 3])
def test_a_store_that_fails_leaves_no_lane_and_no_thread(
    world: World, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    _fill(world)
    lanes: list[Hooked] = []
    left = [after]
    commit = world.index.commit

    async def before(_: int) -> None:
        pass

    def wrap(inner: Transport) -> Transport:
        lanes.append(Hooked(inner, before))
        return lanes[-1]

    def failing(changes: Changes) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise StoreError("the disk is full")
        commit(changes)

    with monkeypatch.context() as patch:
        patch.setattr(world.index, "commit", failing)
        with pytest.raises(StoreError, match="disk is full"):
            world.sync(world.tier("one"), wrap=wrap)
    assert [True] == [lane.closed for lane in lanes]
    ours = ("store_", "commit_")
    assert [] == [t.name for t in threading.enumerate() if t.name.startswith(ours)]
    assert world.sync(world.tier("one")).tiers[0].complete
    assert world.on_disk() == world.content("one")


@pytest.mark.parametrize("finished", [[2**64 - 1, 5], [10**13, 10**12], [0, 0]])
def test_the_last_scan_is_the_newest_snapshot_whatever_the_source_says_of_the_time(
    world: World, finished: list[int]
) -> None:
    for number, time_ms in enumerate(finished):
        data = b"content %d" % number

        async def script(peer: Peer, data: bytes = data, time_ms: int = time_ms) -> None:
            await peer.greet()
            await peer.send(page(0, file(b"a", data)), Scanned(1, 1, (), time_ms, time_ms))
            await serve_wants(peer, {0: [data]}, 1)
            await peer.until_gone()

        assert run_scripts(world, script).tiers[0].complete
        assert {b"/a": data} == world.content("one")
    row, snapshot = _snapshot(world)
    assert snapshot.started_ms <= snapshot.finished_ms == row.finished_ms
    assert 2 == len(world.index.snapshots("one"))


async def test_a_tier_that_has_moved_to_another_source_says_so(world: World) -> None:
    _fill(world, files=3, big=10)
    dialer = AgentDialer(world.cache)
    await run_sync(world, dialer, world.tier("one"))
    await run_sync(world, dialer, replace(world.tier("one"), source="near"))
    assert world.state.tiers[0].complete
    assert 0 == world.state.tiers[0].fetched
    row, snapshot = _snapshot(world)
    assert ("near", True) == (snapshot.source, row.complete)
    await run_sync(world, dialer, replace(world.tier("one"), source="near"))
    assert 2 == len(world.index.snapshots("one"))


async def test_a_tier_whose_paths_have_changed_is_the_new_ones(world: World) -> None:
    for part in ("a", "b", "c"):
        (world.source / part).mkdir()
        (world.source / part / "file").write_bytes(b"in " + part.encode())
    dialer = AgentDialer(world.cache)
    for parts in (("a", "b"), ("b",), ("b", "c"), ("a", "b", "c"), ("a", "b")):
        tier = world.tier("one", *parts)
        await run_sync(world, dialer, tier)
        assert world.on_disk(*parts) == world.content("one")
        row, snapshot = _snapshot(world)
        assert (tier.paths, True) == (snapshot.roots, row.complete)
        (state,) = world.state.tiers
        assert snapshot.unique == state.unique == sum(len(f"in {part}") for part in parts)
        assert state.to_fetch == state.fetched == state.unique - state.here


async def test_two_plans_that_use_one_name_do_not_mix_their_tiers(world: World) -> None:
    for part in ("a", "b"):
        (world.source / part).mkdir()
        (world.source / part / "file").write_bytes(b"in " + part.encode())
    dialer = AgentDialer(world.cache)
    one, other = world.tier("one", "a"), replace(world.tier("one", "b"), source="near")
    for tier, part in ((one, "a"), (other, "b"), (one, "a"), (other, "b")):
        await run_sync(world, dialer, tier)
        assert world.on_disk(part) == world.content("one")
        row, snapshot = _snapshot(world)
        assert (tier.source, True) == (snapshot.source, row.complete)


async def test_two_sources_share_what_they_have(world: World) -> None:
    for part in ("a", "b"):
        (world.source / part).mkdir()
        (world.source / part / "same").write_bytes(b"the same" * 100)
        (world.source / part / "own").write_bytes(part.encode() * 50)
    near = replace(world.tier("two", "b"), source="near")
    third = world.tier("three", "a", "b")
    await run_sync(world, AgentDialer(world.cache), world.tier("one", "a"), near, third)
    counted = [(t.unique, t.here, t.to_fetch, t.fetched) for t in world.state.tiers]
    assert [(850, 0, 850, 850), (850, 800, 50, 50), (900, 900, 0, 0)] == counted
    assert all(tier.complete for tier in world.state.tiers)


class AtWant(Hooked):
    """A lane that does something to the source just before the first wants reach the agent."""

    def __init__(self, inner: Transport, change: Callable[[], object], times: list[int]) -> None:
        super().__init__(inner, self._nothing)
        self._change = change
        self._times = times

    async def _nothing(self, _: int) -> None:
        pass

    async def send(self, data: bytes) -> None:
        if data[4] == Want.TYPE and self._times[0]:
            self._times[0] -= 1
            self._change()
        await self._inner.send(data)


def _to_fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def _to_directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _to_link(path: Path) -> None:
    path.unlink()
    path.symlink_to("f001")


CHANGES: dict[str, Callable[[Path], object]] = {
    "deleted": Path.unlink,
    "shorter": lambda path: os.truncate(path, 1_000_000),
    "longer": lambda path: path.write_bytes(os.urandom(500_000) + path.read_bytes()),
    "a FIFO": _to_fifo,
    "a directory": _to_directory,
    "a link": _to_link,
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_file_that_changes_between_scan_and_reading(
    world: World, change: Callable[[Path], object]
) -> None:
    _fill(world, files=5)
    victim, times = world.source / "big", [1]
    state = world.sync(
        world.tier("one"), wrap=lambda inner: AtWant(inner, lambda: change(victim), times)
    )
    (tier,) = state.tiers
    assert tier.complete
    assert () == tier.problems
    assert world.on_disk() == world.content("one")
    assert tier.fetched == tier.to_fetch
    assert tier.unique == sum(map(len, world.on_disk().values()))


@pytest.mark.parametrize("lose", [Path.unlink, lambda pack: os.truncate(pack, HEADER_SIZE)])
def test_a_pack_that_was_lost_is_fetched_again_once_that_was_found(
    world: World, lose: Callable[[Path], None]
) -> None:
    _fill(world, files=3, big=10)
    world.sync(world.tier("one"))
    (pack,) = world.layout.packs.iterdir()
    lose(pack)
    unnoticed = world.sync(world.tier("one")).tiers[0]
    assert (True, 0) == (unnoticed.complete, unnoticed.fetched)  # nobody has looked yet
    store = world.open()
    repair_store(store, verify_store(store, lambda *_: None))
    store.reader.close()
    assert not any(row.complete for row in world.index.snapshots())
    (tier,) = world.sync(world.tier("one")).tiers
    assert tier.complete
    assert tier.fetched == tier.to_fetch == tier.unique
    assert world.on_disk() == world.content("one")


async def test_the_newest_entry_of_a_path_is_that_of_the_last_scan(world: World) -> None:
    path = world.source / "file"
    dialer = AgentDialer(world.cache)
    near = replace(world.tier("one"), source="near")
    for tier, content in (
        (world.tier("one"), b"first"),
        (world.tier("one"), b"second"),
        (world.tier("one"), b"first"),
        (near, b"first"),
        (near, b"second"),
    ):
        path.write_bytes(content)
        os.utime(path, (1, 1))
        await run_sync(world, dialer, tier)
        row = world.index.find_file(tier.source, bytes(path)[1:])
        assert row is not None
        assert row.page in [ref.id for ref in _snapshot(world)[1].pages]
        store = world.open()
        entry = store.page(row.page)[row.number]
        assert entry.content == Content(len(content), digest_of(content), 1)
        store.reader.close()


async def test_a_snapshot_says_what_the_source_calls_itself(world: World) -> None:
    _fill(world, files=1, big=1)
    await run_sync(world, AgentDialer(world.cache), world.tier("one"))
    assert socket.gethostname() == _snapshot(world)[1].host
