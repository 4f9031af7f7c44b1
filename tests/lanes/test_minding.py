"""The client's side of several lanes: what ends is noticed, closed, and told; who rests is left
alone."""

from __future__ import annotations

import asyncio
import math
import os
import random
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import pytest_asyncio

from cas import __version__
from cas.agent.attach import KEY_DIGITS
from cas.chunker import IDENTITY
from cas.errors import PeerError, TransportError
from cas.messages import MESSAGES, PIECE_SIZE, PROTOCOL, Hello, Message, Page, Piece, encode_message
from cas.pull import lane as lane_module
from cas.pull import lanes as lanes_module
from cas.pull import minder, silence
from cas.pull.lane import within
from cas.pull.lanes import Lanes, agent_name
from cas.pull.minder import LaneOptions
from cas.pull.state import SyncState
from cas.pull.sync import SyncOptions, sync
from cas.session import Role, Session
from cas.store.memory_index import MemoryIndex, MemoryScanCache
from cas.store.writer import Writer
from cas.transport.base import Dialer, Transport
from cas.transport.memory import pair
from tests.lanes.inside import ManyLanes
from tests.pull.world import AgentDialer, World

LIMIT_SECONDS = 120.0
STEPS = range(8)


@pytest_asyncio.fixture
async def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[ManyLanes]:
    monkeypatch.setattr(tempfile, "tempdir", os.fspath(tmp_path))
    made = ManyLanes(MemoryScanCache())
    yield made
    await made.end()


def lanes_to(
    dialer: Dialer, state: SyncState, limit: Callable[[], int | None] = lambda: None
) -> Lanes:
    """Up to two lanes to a source."""
    options = LaneOptions(fixed=2, limit=limit)
    return Lanes(dialer, "far", agent_name(b"client"), options, state)


async def test_what_ends_the_watch_is_told(source: ManyLanes) -> None:
    asked: list[None] = []

    def limit() -> int | None:
        asked.append(None)
        if len(asked) > 2:
            raise RuntimeError("nobody thought of this")
        return None

    lanes = lanes_to(source, SyncState(), limit)
    await lanes.open()
    with pytest.raises(RuntimeError, match="nobody thought of this"):
        await asyncio.wait_for(lanes.receive(), LIMIT_SECONDS)
    await lanes.close()


async def test_a_lane_that_is_being_closed_is_closed_to_the_end(source: ManyLanes) -> None:
    state = SyncState()
    lanes = lanes_to(source, state)
    await lanes.open()
    (transport,) = source.lanes
    close = transport.close
    closed = asyncio.Event()

    async def slowly() -> None:
        await asyncio.sleep(0.2)
        await close()
        closed.set()

    transport.close = slowly  # type: ignore[method-assign]
    await transport.cut()
    while transport in [member.lane.transport for member in lanes.members.values()]:  # noqa: ASYNC110
        await asyncio.sleep(0)
    await lanes.close()
    assert closed.is_set()
    assert [] == state.lanes


class Scripted:
    """An agent that takes several lanes and says `facts`; a test says the rest."""

    name = "far"

    def __init__(self, *facts: tuple[str, str]) -> None:
        self.far: Transport | None = None
        self._facts = (("lanes", "8"), *facts)

    def attaching(self, name: str) -> Dialer:
        del name
        return self

    async def connect(self) -> Transport:
        if self.far is not None:
            raise TransportError("one is enough")
        near, self.far = pair()
        hello = Hello(PROTOCOL, __version__, IDENTITY, self._facts)
        await self.far.send(Session(Role.AGENT).greeting(hello))
        return near

    async def send(self, message: Message) -> None:
        """Send it as it is."""
        assert self.far is not None
        await self.far.send(encode_message(message))

    async def send_in_pieces(self, number: int, message: Message) -> None:
        """Send it as message number `number`."""
        data = encode_message(message)
        for at in range(0, len(data), PIECE_SIZE):
            part = data[at : at + PIECE_SIZE]
            await self.send(Piece(MESSAGES, number, at, len(data), part))


async def test_a_lane_without_a_number_is_left_neither_open_nor_shown() -> None:
    state = SyncState()
    dialer = Scripted()
    lanes = lanes_to(dialer, state)
    with pytest.raises(PeerError, match="no number"):
        await lanes.open()
    assert [] == state.lanes
    assert dialer.far is not None
    while await dialer.far.receive():  # up to our end of it
        pass


async def test_no_more_is_read_than_is_taken_however_few_messages_it_is() -> None:
    dialer = Scripted(("lane", "0"))
    lanes = lanes_to(dialer, SyncState())
    await lanes.open()
    pages = [Page(1, n, random.Random(n).randbytes(2**20)) for n in range(20)]

    async def send_all() -> None:
        for number, page in enumerate(pages):
            await dialer.send_in_pieces(number, page)

    sending = asyncio.create_task(send_all())
    while not (sending.done() or lanes.is_full):  # noqa: ASYNC110
        await asyncio.sleep(0)
    assert lanes.is_full
    assert not sending.done()
    came = [await asyncio.wait_for(lanes.receive(), LIMIT_SECONDS) for _ in pages]
    assert pages == came
    await sending
    await lanes.close()


async def test_what_does_not_come_in_pieces_ends_the_conversation() -> None:
    dialer = Scripted(("lane", "0"))
    lanes = lanes_to(dialer, SyncState())
    await lanes.open()
    await dialer.send(Page(1, 0, b"page"))
    with pytest.raises(PeerError, match="sent Page"):
        await asyncio.wait_for(lanes.receive(), LIMIT_SECONDS)
    await lanes.close()


@pytest.mark.parametrize("steps", STEPS)
async def test_what_was_made_as_its_maker_was_cancelled_is_undone(steps: int) -> None:
    made: list[str] = []
    kept: list[str] = []
    undone: list[str] = []

    async def make() -> str:
        await asyncio.sleep(0)
        made.append("a lane")
        return made[0]

    async def undo(what: str) -> None:
        undone.append(what)

    async def use() -> None:
        kept.append(await within(LIMIT_SECONDS, make(), undo))

    task = asyncio.create_task(use())
    for _ in range(steps):
        await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait((task,), timeout=LIMIT_SECONDS)
    assert made == kept + undone


class Clock:
    """The client's clock of lanes, which `pass_by` puts forward."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._ahead = 0.0
        self._looks = 0
        for module in (lane_module, lanes_module):
            patch.setattr(module, "time", SimpleNamespace(monotonic=self._read))
        patch.setattr(minder, "time", SimpleNamespace(monotonic=self._look))
        patch.setattr(minder, "TICK_SECONDS", 0.001)

    def _read(self) -> float:
        return time.monotonic() + self._ahead

    def _look(self) -> float:
        self._looks += 1
        return self._read()

    async def pass_by(self, seconds: float) -> None:
        """Let time pass, no more at once than a pause of this process would be."""
        for _ in range(math.ceil(seconds)):
            self._ahead += 1.0
            seen = self._looks
            while self._looks == seen:  # noqa: ASYNC110
                await asyncio.sleep(0.001)


async def test_a_source_that_waits_for_its_next_tier_is_not_given_up(
    source: ManyLanes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock(monkeypatch)

    class Late(AgentDialer):
        async def connect(self) -> Transport:
            for _ in range(40):  # each time the source is silent long enough to be pinged
                came = source.lanes[0].bytes_in
                await clock.pass_by(silence.PING_SECONDS)
                while source.lanes[0].bytes_in == came:  # noqa: ASYNC110
                    await asyncio.sleep(0.001)
            return await super().connect()

    world = World(tmp_path)
    for part in ("a", "b"):
        (world.source / part).mkdir()
        (world.source / part / "file").write_bytes(b"in " + part.encode())
    tiers = [world.tier("one", "a"), replace(world.tier("two", "a"), source="near")]
    tiers.append(world.tier("three", "b"))
    dialers: dict[str, Dialer] = {"far": source, "near": Late(world.cache)}
    writer = Writer(world.layout, world.index)
    options = SyncOptions(give_up=60.0)
    try:
        work = sync(tiers, dialers, world.open(), writer, world.state, options)
        await asyncio.wait_for(work, LIMIT_SECONDS)
    finally:
        writer.close()
    assert [True] * 3 == [tier.complete for tier in world.state.tiers]
    assert [] == world.state.events
    assert [] == world.state.lanes


async def test_a_sync_that_is_cancelled_as_it_ends_ends_all_the_same(
    source: ManyLanes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    leaving = asyncio.Event()

    async def goodbye(_: Lanes) -> None:
        leaving.set()
        await asyncio.sleep(LIMIT_SECONDS)

    monkeypatch.setattr(Lanes, "goodbye", goodbye)
    world = World(tmp_path)
    writer = Writer(world.layout, world.index)
    work = sync(
        [world.tier("one")], {"far": source}, world.open(), writer, world.state, SyncOptions()
    )
    task = asyncio.create_task(work)
    await asyncio.wait_for(leaving.wait(), LIMIT_SECONDS)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    writer.close()
    assert [] == world.state.lanes
    with pytest.raises(TransportError, match="closed here"):
        await source.lanes[0].receive()
    ours = ("store_", "commit_")
    assert [] == [t.name for t in threading.enumerate() if t.name.startswith(ours)]


async def test_a_client_is_known_by_its_store_not_by_where_that_lies(
    source: ManyLanes, tmp_path: Path
) -> None:
    world = World(tmp_path)
    for at in range(3):
        if at == 2:  # as another host of the same name might have it
            world.layout.root.rename(tmp_path / "elsewhere")
            world.layout.create()
            world.index = MemoryIndex()
        writer = Writer(world.layout, world.index)
        try:
            await sync(
                [world.tier("one")],
                {"far": source},
                world.open(),
                writer,
                world.state,
                SyncOptions(),
            )
        finally:
            writer.close()
    first, again, other = (name[:KEY_DIGITS] for name in source.asked_for)
    assert first == again
    assert first != other
