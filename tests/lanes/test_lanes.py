"""Several lanes to one agent, as processes: they share its work, and may be killed."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import tempfile
import time
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path

import pytest

from cas.agent.attach import NO_AGENT
from cas.errors import TransportError
from cas.messages import Beat, Bye
from cas.plan import Tier
from cas.pull.lane import Lane, open_lane
from cas.pull.lanes import agent_name
from cas.pull.state import SyncState
from cas.pull.sync import SyncOptions, sync
from cas.store.writer import Writer
from cas.transport.child import ChildDialer
from cli.wiring import local_agent
from tests.pull.world import World

LIMIT_SECONDS = 300.0
LANES = 3
RATE = 2_000_000  # bytes a second until the meddling is over: there is time for it

Meddle = Callable[[SyncState], Coroutine[None, None, None]]


@pytest.fixture
def environment(tmp_path: Path) -> Iterator[dict[str, str]]:
    """Of the agents: directories of their own; the temporary one is empty in the end."""
    with tempfile.TemporaryDirectory(prefix="cas-lanes-") as temporary:
        paths = {"XDG_CACHE_HOME": str(tmp_path / "cache"), "TMPDIR": temporary}
        yield {**os.environ, **paths, "PYTHONPATH": str(Path(__file__).parents[2])}
        assert [] == os.listdir(temporary)


@pytest.fixture
def world(tmp_path: Path) -> World:
    made = World(tmp_path)
    rng = random.Random(1)
    for number in range(24):
        (made.source / f"{number}").write_bytes(rng.randbytes(4_000_000))
    return made


def run(world: World, environment: dict[str, str], meddle: Meddle) -> SyncState:
    """Sync the tree over LANES lanes, slowly while `meddle` does what it does."""

    async def both(writer: Writer) -> None:
        dialer = ChildDialer(local_agent(), environment, name="far", takes_lanes=True)
        meddling = asyncio.create_task(meddle(world.state))
        options = SyncOptions(
            level=1,
            lanes={"far": LANES},
            give_up=LIMIT_SECONDS,
            limit=lambda: None if meddling.done() else RATE,
        )
        work = sync([tier], {"far": dialer}, world.open(), writer, world.state, options)
        try:
            await asyncio.wait_for(work, LIMIT_SECONDS)
            assert meddling.done(), "it was all here too soon"
        finally:
            meddling.cancel()
            await asyncio.gather(meddling, return_exceptions=True)
        meddling.result()

    tier = Tier("one", "far", (bytes(world.source),))
    world.state = SyncState()
    writer = Writer(world.layout, world.index)
    try:
        asyncio.run(both(writer))
    finally:
        writer.close()
    return world.state


def children(word: bytes = b"--attach") -> list[int]:
    """The processes of ours that were started with a word; those that are further lanes."""
    found = []
    for pid in filter(str.isdecimal, os.listdir("/proc")):
        try:
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            parent = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        if parent == os.getpid() and word in words:
            found.append(int(pid))
    return found


async def _all_up(state: SyncState) -> None:
    await _until(lambda: sum(lane.state == "up" for lane in state.lanes) == LANES)


async def _until(condition: Callable[[], bool]) -> None:
    while not condition():  # noqa: ASYNC110 - what is waited for is another process
        await asyncio.sleep(0.02)


async def _listen(lane: Lane) -> None:
    while True:
        await lane.receive()


def test_lanes_share_the_work_and_leave_nothing(world: World, environment: dict[str, str]) -> None:
    state = run(world, environment, _all_up)
    assert state.tiers[0].complete
    assert [] == state.events
    assert [] == state.lanes
    assert world.on_disk() == world.content("one")


def test_lanes_that_are_killed_are_replaced_and_nothing_is_lost(
    world: World, environment: dict[str, str]
) -> None:
    killed: list[int] = []

    async def kill(state: SyncState) -> None:
        for _ in range(3):
            await _all_up(state)
            killed.append(children()[0])
            os.kill(killed[-1], signal.SIGKILL)
            await _until(lambda: killed[-1] not in children())
            await asyncio.sleep(0.2)

    state = run(world, environment, kill)
    assert 3 == len(killed)
    assert state.tiers[0].complete
    assert state.tiers[0].fetched == state.tiers[0].to_fetch
    assert any("is gone" in event for event in state.events)
    assert world.on_disk() == world.content("one")


async def test_only_who_knows_the_name_gets_in(environment: dict[str, str]) -> None:
    name = agent_name(b"client")
    dialer = ChildDialer(local_agent(), environment, takes_lanes=True)
    lane = await open_lane(dialer, (("lanes", name),))
    further = dialer.attaching(name)
    stranger = dialer.attaching(agent_name(b"client"))  # the same key, another token
    assert further is not None
    assert stranger is not None
    second = await open_lane(further, (("lanes", name),))
    assert ("0", "1") == (lane.facts["lane"], second.facts["lane"])
    with pytest.raises(TransportError, match=NO_AGENT):
        await open_lane(stranger)
    await second.close()
    successor = await open_lane(dialer, (("lanes", agent_name(b"client")),))
    assert "0" == successor.facts["lane"]
    with pytest.raises(TransportError):  # the former agent has made room for it
        await _listen(lane)
    await lane.close()
    await successor.send(Bye())
    await successor.close()


async def test_an_agent_that_is_told_to_end_leaves_nothing(environment: dict[str, str]) -> None:
    dialer = ChildDialer(local_agent(), environment, takes_lanes=True)
    lane = await open_lane(dialer, (("lanes", agent_name(b"client")),))
    await lane.send(Beat(1))
    assert Beat(1) == await lane.receive()  # its door is open
    (agent,) = children(b"serve")
    os.kill(agent, signal.SIGTERM)
    with pytest.raises(TransportError):
        await _listen(lane)
    await lane.close()
    assert "ended by SIGTERM" == lane.transport.complaints()


async def test_a_process_is_seen_to_its_end_also_when_that_is_cancelled() -> None:
    transport = await ChildDialer(["sleep", "60"], grace_seconds=LIMIT_SECONDS).connect()
    closing = asyncio.create_task(transport.close())
    await asyncio.sleep(0.1)
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing
    assert "ended by SIGKILL" == transport.complaints()


def test_one_lane_keeps_a_limit_too(world: World) -> None:
    """Some 96 MB at 40 MB/s take 2 s at least, whatever the machine."""
    began = time.monotonic()
    state = world.sync(
        world.tier("one"), options=SyncOptions(level=1, give_up=30.0, limit=lambda: 40_000_000)
    )
    assert state.tiers[0].complete
    assert time.monotonic() - began >= state.tiers[0].wire_in / 40_000_000 - 0.5
