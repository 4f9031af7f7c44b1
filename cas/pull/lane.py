"""A lane as the client sees it: a transport with a session on it, greeted and checked."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from cas import __version__
from cas.chunker import IDENTITY
from cas.errors import CasError, PeerError, TransportError
from cas.messages import PROTOCOL, Beat, Hello, Message
from cas.session import Role, Session, State
from cas.transport.base import Dialer, Transport

GREETING_SECONDS = 60.0
SILENCE_SECONDS = 120.0
HOST_LIMIT = 255  # characters, as POSIX allows
HEARD_SIZE = 64 * 1024  # bytes that count as having heard something: no heartbeats add up to it

T = TypeVar("T")


class Lane:
    """An open lane. `peer` is the agent's HELLO."""

    def __init__(self, transport: Transport, name: str, *, silence: float | None = None) -> None:
        self.transport = transport
        self.name = name
        self.heard = time.monotonic()
        self._silence = silence
        self.peer = Hello(0, "", "", ())
        self._session = Session(Role.CLIENT)
        self._coming: asyncio.Future[bytes] | None = None
        self._waited = 0.0  # seconds in which we waited and heard nothing
        self._came = 0  # bytes since something was heard

    @property
    def host(self) -> str:
        """What the source calls itself."""
        return self.facts.get("host", self.name)[:HOST_LIMIT]

    async def send(self, message: Message) -> None:
        """Send one message; raises TransportError, also when the far end does not read, or has said
        what ended the conversation."""
        if self._session.state is State.CLOSED:
            raise TransportError("the lane has ended", where=self.name)
        if not isinstance(message, Beat):
            self._waited = 0.0  # an answer is due from now on
        sending = asyncio.ensure_future(self.transport.send(self._session.send(message)))
        try:
            while not sending.done():
                before = self.transport.bytes_out
                await asyncio.wait((sending,), timeout=self.silence)
                if not sending.done() and self.transport.bytes_out == before:
                    raise TransportError(_nothing("was taken", self.silence), where=self.name)
            sending.result()
        finally:
            await _give_up(sending)

    async def receive(self) -> Message:
        """The next message; raises TransportError when the lane has ended or fallen silent. May be
        cancelled at any moment: what had come is there the next time.

        A heartbeat alone does not count: an agent that only says it lives brings nothing.
        """
        while (message := self._session.next_message()) is None:
            if self._session.state is State.CLOSED:
                raise TransportError("the agent has ended", where=self.name)
            self._session.receive(await self._bytes())
        if not isinstance(message, Beat):
            self._waited = 0.0
        return message

    async def _bytes(self) -> bytes:
        """The next bytes. Not by `asyncio.wait_for`: before Python 3.12 it forgets that it was
        cancelled when that happens as they come."""
        if self._coming is None:
            self._coming = asyncio.ensure_future(self.transport.receive())
        left, began = self.silence - self._waited, time.monotonic()
        if left > 0:
            await asyncio.wait((self._coming,), timeout=left)
        self._waited += time.monotonic() - began
        if left <= 0 or not self._coming.done():
            raise TransportError(_nothing("has come", self.silence), where=self.name)
        coming, self._coming = self._coming, None
        data = coming.result()
        self.heard = time.monotonic()
        self._came += len(data)
        if self._came >= HEARD_SIZE:  # a large message on a slow link
            self._waited, self._came = 0.0, 0
        return data

    def rest(self) -> None:
        """No answer is due now: silence so far does not count."""
        self._waited = 0.0

    async def close(self) -> None:
        """End the lane."""
        if self._coming is not None:
            coming, self._coming = self._coming, None
            await _give_up(coming)
        await self.transport.close()

    @property
    def silence(self) -> float:
        """For how many seconds it may bring, or take, nothing while an answer is due."""
        return SILENCE_SECONDS if self._silence is None else self._silence

    @property
    def facts(self) -> dict[str, str]:
        """What the agent says of itself."""
        return dict(self.peer.facts)

    async def greet(self, facts: tuple[tuple[str, str], ...] = ()) -> None:
        """Exchange HELLOs, ours with `facts`. Raises PeerError when the agent is not of our
        kind."""
        hello = await self.receive()
        if not isinstance(hello, Hello):
            raise PeerError("the agent did not begin with HELLO", where=self.name)
        self.peer = hello
        _check(hello, self.name)
        await self.send(Hello(PROTOCOL, __version__, IDENTITY, facts))

    def explain(self, error: CasError) -> CasError:
        """`error`, with what the far end said when it never became an agent."""
        said = self.transport.complaints().strip()
        noise = self._session.noise.decode("utf-8", "backslashreplace").strip()
        if self.peer.protocol or not (said or noise):
            return error
        return TransportError(
            f"the agent did not start: {(said or noise)[-2000:]}",
            where=self.name,
            advice="cas must be installed there (`cas bootstrap` does that, without root), or "
            "`agent` be set in the plan",
        )


async def open_lane(
    dialer: Dialer,
    facts: tuple[tuple[str, str], ...] = (),
    *,
    silence: float | None = None,
) -> Lane:
    """Connect and greet; `silence` is how long it may then bring nothing. Raises TransportError,
    PeerError."""
    transport = await dialer.connect()
    lane = Lane(transport, dialer.name, silence=silence)
    try:
        await within(GREETING_SECONDS, lane.greet(facts))
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


async def within(
    seconds: float,
    work: Coroutine[Any, Any, T],
    undo: Callable[[T], Awaitable[None]] | None = None,
) -> T:
    """What `work` returns; raises asyncio.TimeoutError. See `Lane._bytes`. What it returns too late
    to be given on, as that or a cancelling came first, is handed to `undo`."""
    task = asyncio.ensure_future(work)
    try:
        await asyncio.wait((task,), timeout=seconds)
        if not task.done():
            raise asyncio.TimeoutError
        return task.result()
    except BaseException:
        await _give_up(task)
        if undo is not None and not task.cancelled() and task.exception() is None:
            await undo(task.result())
        raise


def _nothing(what: str, seconds: float) -> str:
    return f"nothing {what} for {seconds:.0f} s"


async def _give_up(task: asyncio.Future[T]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


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
