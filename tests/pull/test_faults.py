"""What goes wrong with honest ends: cancelled, slow, lost at any moment. Nothing hangs, nothing is
lost, the numbers stay right."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from cas.chunker import IDENTITY
from cas.errors import TransportError
from cas.ids import DIGEST_SIZE, split_digests
from cas.messages import PROTOCOL, Beat, Hello, Look, Message, Page
from cas.pull import lane as lane_module
from cas.pull.keeper import Keeper
from cas.pull.lane import Lane
from cas.session import Role, Session
from cas.transport.base import Transport
from cas.transport.memory import pair
from tests.pull.scripted import LIMIT_SECONDS
from tests.pull.world import World

STEPS = range(12)  # of the event loop: more than any hand-over here takes


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


async def _steps(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def _ends(task: asyncio.Task[None]) -> bool:
    """Whether a cancelled task ends."""
    done, _ = await asyncio.wait({task}, timeout=1.0)
    task.cancel()  # once more, for the sake of the tests that follow
    await asyncio.wait({task}, timeout=1.0)
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
    with pytest.raises(TransportError, match="two minutes"):
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
    with pytest.raises(TransportError, match="two minutes"):
        await asyncio.wait_for(lane.send(Look(1, ids)), LIMIT_SECONDS)
    await lane.close()


async def _acknowledge_nothing(_: object) -> None:
    pass


@pytest.mark.parametrize("steps", STEPS)
async def test_committing_can_be_cancelled_at_any_step(steps: int) -> None:
    keeper = Keeper(None, _acknowledge_nothing)
    task = asyncio.create_task(keeper.keep_committing())
    await _steps(3)
    keeper.stored([])
    await _steps(steps)
    task.cancel()
    assert await _ends(task)
    keeper.close()
