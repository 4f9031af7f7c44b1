import asyncio

import pytest

from cas.errors import TransportError
from cas.transport.base import Transport
from cas.transport.early import EarlyDialer
from cas.transport.memory import MemoryTransport, pair


class Doorbell:
    """A dialer that connects when it is told to, and counts."""

    name = "the door"

    def __init__(self) -> None:
        self.calls = 0
        self.opens = asyncio.Event()
        self.ends: list[MemoryTransport] = []

    def attaching(self, name: str) -> None:
        del name

    async def connect(self) -> Transport:
        self.calls += 1
        await self.opens.wait()
        near, far = pair()
        self.ends.append(far)
        return near


class Wall:
    """A dialer that gets nowhere."""

    name = "the wall"

    def attaching(self, name: str) -> None:
        del name

    async def connect(self) -> Transport:
        raise TransportError("no door", where=self.name)


async def test_the_first_connection_is_begun_at_once_and_given_out_once() -> None:
    bell = Doorbell()
    async with EarlyDialer(bell) as early:
        await asyncio.sleep(0)
        assert (early.name, bell.calls) == ("the door", 1)
        bell.opens.set()
        first = await early.connect()
        assert bell.calls == 1
        second = await early.connect()
        assert bell.calls == 2
        assert first is not second
    await first.send(b"x")  # whoever asked for it closes it
    assert await bell.ends[0].receive() == b"x"


async def test_a_failure_is_told_to_who_asks_and_tried_again() -> None:
    async with EarlyDialer(Wall()) as early:
        await asyncio.sleep(0)
        for _ in range(2):
            with pytest.raises(TransportError, match="no door"):
                await early.connect()


@pytest.mark.parametrize("has_come", [True, False])
async def test_what_nobody_asked_for_is_hung_up(has_come: bool) -> None:
    bell = Doorbell()
    async with EarlyDialer(bell):
        if has_come:
            bell.opens.set()
        for _ in range(3):
            await asyncio.sleep(0)
    assert bell.calls == 1
    assert has_come == bool(bell.ends)
    for end in bell.ends:
        assert await end.receive() == b""


async def test_a_failure_that_nobody_asked_for_is_forgotten() -> None:
    async with EarlyDialer(Wall()):
        await asyncio.sleep(0)
