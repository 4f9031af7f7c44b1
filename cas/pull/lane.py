"""A lane as the client sees it: a transport with a session on it, greeted and checked."""

from __future__ import annotations

import asyncio
import time

from cas import __version__
from cas.chunker import IDENTITY
from cas.errors import CasError, PeerError, TransportError
from cas.messages import PROTOCOL, Beat, Hello, Message
from cas.pull.tally import WireMeter
from cas.session import Role, Session, State
from cas.transport.base import Dialer, Transport

GREETING_SECONDS = 60.0
SILENCE_SECONDS = 120.0


class Lane:
    """An open lane. `peer` is the agent's HELLO."""

    def __init__(self, transport: Transport, name: str) -> None:
        self.transport = transport
        self.name = name
        self.meter = WireMeter(transport)
        self._heard = time.monotonic()
        self.peer = Hello(0, "", "", ())
        self._session = Session(Role.CLIENT)

    async def send(self, message: Message) -> None:
        """Send one message; raises TransportError."""
        if not isinstance(message, Beat):
            self._heard = time.monotonic()  # an answer is due from now on
        await self.transport.send(self._session.send(message))

    async def receive(self) -> Message:
        """The next message; raises TransportError when the lane has ended or fallen silent.

        A heartbeat alone does not count: an agent that only says it lives brings nothing.
        """
        while (message := self._session.next_message()) is None:
            if self._session.state is State.CLOSED:
                raise TransportError("the agent has ended", where=self.name)
            left = self._heard + SILENCE_SECONDS - time.monotonic()
            try:
                data = await asyncio.wait_for(self.transport.receive(), left)
            except asyncio.TimeoutError:
                raise TransportError("nothing has come for two minutes", where=self.name) from None
            self._session.receive(data)
        if not isinstance(message, Beat):
            self._heard = time.monotonic()
        return message

    async def close(self) -> None:
        """End the lane."""
        await self.transport.close()

    async def greet(self) -> None:
        """Exchange HELLOs. Raises PeerError when the agent is not of our kind."""
        hello = await self.receive()
        if not isinstance(hello, Hello):
            raise PeerError("the agent did not begin with HELLO", where=self.name)
        self.peer = hello
        _check(hello, self.name)
        await self.send(Hello(PROTOCOL, __version__, IDENTITY, ()))

    def explain(self, error: CasError) -> CasError:
        """`error`, with what the far end said when it never became an agent."""
        said = self.transport.complaints().strip()
        noise = self._session.noise.decode("utf-8", "backslashreplace").strip()
        if self.peer.protocol or not (said or noise):
            return error
        return TransportError(
            f"the agent did not start: {(said or noise)[-2000:]}",
            where=self.name,
            advice="cas must be installed there (`cas serve` in the PATH), or `agent` be set in "
            "the plan",
        )


async def open_lane(dialer: Dialer) -> Lane:
    """Connect and greet. Raises TransportError, PeerError."""
    transport = await dialer.connect()
    lane = Lane(transport, dialer.name)
    try:
        await asyncio.wait_for(lane.greet(), GREETING_SECONDS)
    except asyncio.TimeoutError:
        await lane.close()
        raise lane.explain(
            TransportError("the agent did not answer in a minute", where=dialer.name)
        ) from None
    except CasError as error:
        await lane.close()
        raise lane.explain(error) from error
    except BaseException:
        await lane.close()
        raise
    return lane


def _check(hello: Hello, name: str) -> None:
    if hello.protocol != PROTOCOL:
        older = "there" if hello.protocol < PROTOCOL else "here"
        raise PeerError(
            f"the agent is cas {hello.version} with protocol {hello.protocol}, this is "
            f"{__version__} with {PROTOCOL}",
            where=name,
            advice=f"update cas {older}",
        )
    if hello.chunker != IDENTITY:
        raise PeerError(
            f"the agent cuts chunks by {hello.chunker!r}, this is {IDENTITY!r}",
            where=name,
            advice="both ends need the same chunker, or nothing would be the same chunk",
        )
