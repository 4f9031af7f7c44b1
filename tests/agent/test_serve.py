"""A client that is lost, slow, or asks for nonsense: the agent ends, and its threads do."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import pytest

from cas import __version__
from cas.agent.serve import serve
from cas.chunker import IDENTITY
from cas.ids import digest_of
from cas.messages import (
    PROTOCOL,
    Ack,
    Beat,
    Bye,
    Hello,
    Look,
    Message,
    Page,
    Piece,
    Refused,
    Scan,
    Scanned,
    Tune,
    Want,
)
from cas.session import Role, Session
from cas.store.memory_index import MemoryScanCache
from cas.transport.base import Transport
from cas.transport.memory import pair

LIMIT_SECONDS = 120.0
M = TypeVar("M")


class Client:
    """The client's end of a lane."""

    def __init__(self, transport: Transport) -> None:
        self.transport = transport
        self._session = Session(Role.CLIENT)

    async def send(self, *messages: Message) -> None:
        """Send all of them."""
        for message in messages:
            await self.transport.send(self._session.send(message))

    async def get(self, kind: type[M]) -> M:
        """The next message of a kind, others passed over."""
        while True:
            message = self._session.next_message()
            if isinstance(message, kind):
                return message
            assert not isinstance(message, Refused), message
            if message is None:
                data = await self.transport.receive()
                assert data, "the agent has ended"
                self._session.receive(data)


Talk = Callable[[Client], Awaitable[None]]


async def _talk(talk: Talk, *, silence: float = 300.0) -> None:
    """Let a client talk to an agent, then be gone; the agent and its threads must end."""
    before = set(threading.enumerate())
    near, far = pair()
    agent = asyncio.create_task(serve(far, MemoryScanCache(), silence=silence))
    client = Client(near)
    await client.get(Hello)
    await client.send(Hello(PROTOCOL, __version__, IDENTITY, ()), Tune(1, 2**20))
    await asyncio.wait_for(talk(client), LIMIT_SECONDS)
    await near.close()
    await asyncio.wait_for(agent, LIMIT_SECONDS)
    await _threads_end(before)


async def _threads_end(before: set[threading.Thread]) -> None:
    for thread in set(threading.enumerate()) - before:
        if not thread.name.startswith("asyncio"):
            await asyncio.to_thread(thread.join, LIMIT_SECONDS)
            assert not thread.is_alive()


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    rng = random.Random(1)
    # Of which the first has the chunks that are wanted, wherever its page ends.
    for number in range(20):
        size = 8_000_000 if number == 0 else 400_000
        (tmp_path / f"f{number:02}").write_bytes(rng.randbytes(size))
    return tmp_path


def scan(tree: Path, number: int = 1) -> Scan:
    """The order to scan the tree."""
    return Scan(number, "tier", (bytes(tree),), (), (), ())


async def test_a_client_that_takes_no_segments_and_goes_leaves_no_thread(tree: Path) -> None:
    async def talk(client: Client) -> None:
        await client.send(scan(tree))
        await client.get(Scanned)
        await client.send(Want(1, 1, b"\xff" * 10))
        await client.get(Piece)  # and none is ever acknowledged

    await _talk(talk)


@pytest.mark.parametrize("steps", [0, 1, 2, 5, 20])
async def test_a_client_that_goes_in_the_middle_of_a_scan_leaves_no_thread(
    tree: Path, steps: int
) -> None:
    async def talk(client: Client) -> None:
        await client.send(scan(tree), scan(tree, 2), scan(tree, 3))
        for _ in range(steps):
            await asyncio.sleep(0)

    await _talk(talk)


async def test_goodbye_ends_the_agent_in_the_middle_of_its_work(tree: Path) -> None:
    async def talk(client: Client) -> None:
        await client.send(scan(tree))
        await client.get(Page)
        await client.send(Bye())

    await _talk(talk)


async def test_a_silent_client_is_given_up() -> None:
    before = set(threading.enumerate())
    near, far = pair()
    await asyncio.wait_for(serve(far, MemoryScanCache(), silence=0.01), LIMIT_SECONDS)
    await near.close()
    await _threads_end(before)


async def test_an_agent_that_is_cancelled_leaves_no_thread(tree: Path) -> None:
    before = set(threading.enumerate())
    near, far = pair()
    agent = asyncio.create_task(serve(far, MemoryScanCache()))
    client = Client(near)
    await client.get(Hello)
    await client.send(Hello(PROTOCOL, __version__, IDENTITY, ()), Tune(1, 2**20), scan(tree))
    await client.get(Scanned)
    await client.send(Want(1, 1, b"\x01"))
    await client.get(Piece)
    agent.cancel()
    with pytest.raises(asyncio.CancelledError):
        await agent
    await _threads_end(before)
    await near.close()


NONSENSE: dict[str, list[Message]] = {
    "a want of no scan": [Want(9, 0, b"\x01")],
    "a want of a page that never came": [Want(1, 4_000_000, b"\x01")],
    "a want past the page": [Want(1, 0, b"\0" * 100 + b"\x01")],
    "a want of four million chunks": [Want(1, 0, b"\xff" * 500_000)],
    "a look for a recipe that is none": [Look(1, (digest_of(b"never"),))],
}


@pytest.mark.parametrize("messages", NONSENSE.values(), ids=NONSENSE)
async def test_nonsense_is_refused(tree: Path, messages: list[Message]) -> None:
    async def talk(client: Client) -> None:
        await client.send(scan(tree))
        await client.get(Scanned)
        await client.send(*messages)
        assert 0 == (await client.get(Refused)).scan

    await _talk(talk)


async def test_a_scan_number_is_used_once(tree: Path) -> None:
    async def talk(client: Client) -> None:
        await client.send(scan(tree), scan(tree))
        assert 0 == (await client.get(Refused)).scan

    await _talk(talk)


async def test_scans_do_not_pile_up(tree: Path) -> None:
    async def talk(client: Client) -> None:
        await client.send(*(scan(tree, number) for number in range(1, 100)))
        assert 0 == (await client.get(Refused)).scan

    await _talk(talk)


async def test_acks_and_beats_of_anything_are_harmless(tree: Path) -> None:
    async def talk(client: Client) -> None:
        await client.send(Ack(((7, 7), (0, 0))), Ack(()), Beat(2**64 - 1), scan(tree))
        assert Beat(2**64 - 1) == await client.get(Beat)
        assert (await client.get(Scanned)).pages

    await _talk(talk)
