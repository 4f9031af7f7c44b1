"""Lanes that are cut, frozen and thawed at random: a sync ends complete all the same.

All waits of the engine are made short, so that what takes minutes on a bad link happens in seconds.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import tempfile
from pathlib import Path
from types import ModuleType

import pytest

from cas import outbox
from cas.pull import minder, silence
from cas.pull import sync as sync_module
from cas.pull.state import SyncState
from cas.pull.sync import SyncOptions, sync
from cas.store.writer import Writer
from tests.lanes.inside import ManyLanes
from tests.pull.world import World

SEEDS = range(4)
LANES = 4
LIMIT_SECONDS = 240.0
CHAOS_SECONDS = 2.0
RATE = 3_000_000  # bytes a second: what there is lasts about as long as the chaos
SHORT: dict[ModuleType, dict[str, object]] = {
    silence: {
        "PING_SECONDS": 0.1,
        "SUSPECT_SECONDS": 0.3,
        "SUSPECT_MOST_SECONDS": 0.6,
        "DROP_SECONDS": 0.4,
        "PROBE_SECONDS": 0.5,
        "PROBE_SLOW_SECONDS": 0.5,
        "PROBE_PAUSE_SECONDS": 0.02,
        "REFUSED_SECONDS": (0.02, 0.05),
    },
    minder: {"TICK_SECONDS": 0.02, "BEAT_SECONDS": 0.3},
    outbox: {"HEDGE_SECONDS": 0.1, "OVERDUE_SECONDS": 0.3, "LOOK_SECONDS": 0.02},
    sync_module: {"RETRY_SECONDS": (0.05,), "LOOK_AHEAD_SECONDS": 0.02},
}


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """Two directories of files that do not compress; and no patience."""
    monkeypatch.setattr(tempfile, "tempdir", os.fspath(tmp_path))
    for module, numbers in SHORT.items():
        for name, number in numbers.items():
            monkeypatch.setattr(module, name, number)
    made = World(tmp_path)
    rng = random.Random(1)
    for part in ("a", "b"):
        (made.source / part).mkdir()
        for number in range(40):
            size = rng.choice((100, 10_000, 200_000))
            (made.source / part / f"{number}").write_bytes(rng.randbytes(size))
    return made


async def _meddle(source: ManyLanes, state: SyncState, rng: random.Random) -> None:
    """Do to the last lanes what a bad network does, and to agents now and then; let all pass in the
    end."""
    while not any(lane.state == "up" for lane in state.lanes):  # noqa: ASYNC110
        await asyncio.sleep(0)
    loop = asyncio.get_running_loop()
    end = loop.time() + CHAOS_SECONDS
    while loop.time() < end:
        await asyncio.sleep(rng.uniform(0.0, 0.1))
        lanes = source.lanes[-2 * LANES :]
        lane = rng.choice(lanes) if lanes else None
        act = rng.random()
        if lane is None or act < 0.2:
            continue
        if act < 0.4:
            await lane.cut()
        elif act < 0.65:
            lane.freeze()
        elif act < 0.93:
            lane.thaw()
        elif act < 0.95:
            await source.end()
        else:
            for one in lanes:
                one.freeze()
            await asyncio.sleep(rng.uniform(0.0, 0.6))
            for one in lanes:
                one.thaw()
    for lane in source.lanes:
        lane.thaw()


async def _sync(world: World, seed: int, seconds: float = LIMIT_SECONDS) -> ManyLanes:
    """A sync, cancelled after so long; nothing of it is left in any case."""
    world.state = SyncState()
    source = ManyLanes(world.cache)
    writer = Writer(world.layout, world.index)
    store = world.open()
    tiers = [world.tier("one", "a"), world.tier("two", "b")]
    options = SyncOptions(level=1, lanes={"far": LANES}, give_up=120.0, limit=lambda: RATE)
    meddling = asyncio.create_task(_meddle(source, world.state, random.Random(seed)))
    try:
        work = sync(tiers, {"far": source}, store, writer, world.state, options)
        await asyncio.wait_for(work, seconds)
    finally:
        meddling.cancel()
        await asyncio.gather(meddling, return_exceptions=True)
        await source.end()
        writer.close()
        store.reader.close()
        assert [] == world.state.lanes
        assert {asyncio.current_task()} == asyncio.all_tasks()
    return source


@pytest.mark.parametrize("seed", SEEDS)
async def test_a_sync_over_lanes_that_come_and_go_ends_complete(world: World, seed: int) -> None:
    source = await _sync(world, seed)
    state = world.state
    for tier, part in zip(state.tiers, ("a", "b"), strict=True):
        assert tier.complete
        assert tier.fetched == tier.to_fetch
        assert world.on_disk(part) == world.content(tier.name)
    assert state.wire_in <= sum(lane.bytes_in for lane in source.lanes)
    assert state.wire_in >= sum(tier.stored for tier in state.tiers)
    assert state.sources["far"].connections > LANES


async def test_a_sync_that_is_cancelled_at_any_time_leaves_nothing_and_can_go_on(
    world: World,
) -> None:
    rng = random.Random(1)
    for seed in range(4):
        with contextlib.suppress(asyncio.TimeoutError):
            await _sync(world, seed, rng.uniform(0.0, 0.8))
    await _sync(world, 0)
    for tier, part in zip(world.state.tiers, ("a", "b"), strict=True):
        assert tier.complete
        assert world.on_disk(part) == world.content(tier.name)
