"""What an agent does with several lanes, message by message."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from threading import Event
from typing import Any

import pytest
import pytest_asyncio

from cas import pieces
from cas.agent import serve
from cas.agent.notes import ScanProgress
from cas.agent.pages import ScannedPage
from cas.agent.work import Worker
from cas.entry import Problem
from cas.errors import SourceError
from cas.messages import (
    DOUBTED,
    MESSAGES,
    TRUSTED,
    Ahead,
    Beat,
    Doubt,
    Message,
    Piece,
    Refused,
    Scan,
    Scanned,
    decode_whole,
    encode_message,
)
from cas.outbox import Outbox
from cas.pull.lane import Lane, open_lane
from cas.pull.lanes import agent_name
from cas.store.memory_index import MemoryScanCache
from tests.lanes.inside import ManyLanes

LIMIT_SECONDS = 120.0


@pytest_asyncio.fixture
async def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[ManyLanes]:
    monkeypatch.setattr(tempfile, "tempdir", os.fspath(tmp_path))
    made = ManyLanes(MemoryScanCache())
    yield made
    await made.end()


async def order(lane: Lane, number: int, message: Message) -> None:
    """Send a message in one piece, as number `number`."""
    data = encode_message(message)
    await lane.send(Piece(MESSAGES, number, 0, len(data), data))


async def answer(lane: Lane) -> Message:
    """The next message that comes whole in one piece."""
    while not isinstance(piece := await lane.receive(), Piece):
        pass
    return decode_whole(piece.data)


async def test_the_last_word_on_a_lane_counts_whichever_comes_first(
    source: ManyLanes, tmp_path: Path
) -> None:
    facts = (("lanes", agent_name(b"client")),)
    lane = await open_lane(source, facts)
    other = await open_lane(source.attaching(""), facts)
    await order(lane, 1, Doubt(1, TRUSTED))
    await order(lane, 0, Doubt(1, DOUBTED))  # had been on a slow lane
    await order(lane, 2, Doubt(0, DOUBTED))
    await order(lane, 3, Scan(1, "tier", (bytes(tmp_path / "missing"),), (), (), ()))
    found = await asyncio.wait_for(answer(other), LIMIT_SECONDS)
    assert isinstance(found, Scanned)
    await lane.close()
    await other.close()


async def test_what_is_wrong_with_the_next_tier_is_not_told_before_its_turn(
    source: ManyLanes, tmp_path: Path
) -> None:
    lane = await open_lane(source, (("lanes", agent_name(b"client")),))
    roots = (bytes(tmp_path / "missing"),)
    await order(lane, 0, Ahead("next", roots, ("# no rule",), ()))
    await order(lane, 1, Scan(1, "tier", roots, (), (), ()))
    found = await asyncio.wait_for(answer(lane), LIMIT_SECONDS)
    assert isinstance(found, Scanned)
    await lane.close()


async def test_a_client_that_begins_too_much_is_told_so(
    source: ManyLanes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pieces, "PARTIAL_LIMIT", 2)
    lane = await open_lane(source, (("lanes", agent_name(b"client")),))
    for number in range(3):
        await lane.send(Piece(MESSAGES, number, 0, 100, b"begun"))
    while not isinstance(said := await asyncio.wait_for(lane.receive(), LIMIT_SECONDS), Refused):
        pass
    assert "too many" in said.what
    await lane.close()


class Endless:
    """A scan that goes on until it is stopped; and the guard of a worker, which is closed last."""

    def __init__(self) -> None:
        self.progress = ScanProgress()
        self.problems: list[Problem] = []
        self.began, self.stopped, self.over = Event(), Event(), Event()

    def stop(self) -> None:
        self.stopped.set()

    def __iter__(self) -> Iterator[ScannedPage]:
        self.began.set()
        self.stopped.wait(LIMIT_SECONDS)
        raise SourceError("stopped")

    def close(self) -> None:
        self.over.set()


def test_what_an_agent_leaves_undone_as_it_ends_is_not_told() -> None:
    endless = Endless()
    outbox = Outbox(lambda: None)
    outbox.lane_opened(0)
    guard: Any = endless
    worker = Worker(MemoryScanCache(), guard, outbox, lambda *_: endless)
    worker.handle(Scan(1, "tier", (), (), (), ()))
    assert endless.began.wait(LIMIT_SECONDS)
    worker.close()
    assert endless.over.wait(LIMIT_SECONDS)
    assert outbox.take(0) is None


async def test_a_lane_that_its_client_forgot_ends(
    source: ManyLanes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serve, "HELLO_SECONDS", 0.1)
    greeted = await open_lane(source, (("lanes", agent_name(b"client")),))
    forgotten = source.further()
    while await asyncio.wait_for(forgotten.receive(), LIMIT_SECONDS):
        pass
    await greeted.send(Beat(1))
    assert Beat(1) == await greeted.receive()
    await greeted.close()
