"""One far end, reached in three ways: what the conformance suite is run against."""

import asyncio
import contextlib
import functools
import hashlib
import sys
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any, ParamSpec, Protocol, TypeVar

from cas.transport.base import RECEIVE_LIMIT, Dialer, Transport
from cas.transport.child import ChildDialer
from cas.transport.memory import pair
from cas.transport.ssh import SshDialer
from tests.real.sshd import Server
from tests.transport import far

LIMIT_SECONDS = 120  # of a whole test, so that what hangs fails
FAR = [sys.executable, "-S", far.__file__]

P = ParamSpec("P")
T = TypeVar("T")


def limited(test: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, Coroutine[Any, Any, T]]:
    """A test that fails if it takes for ever."""

    @functools.wraps(test)
    async def run(*args: P.args, **kwargs: P.kwargs) -> T:
        return await asyncio.wait_for(test(*args, **kwargs), LIMIT_SECONDS)

    return run


class Ends(Protocol):
    """A way to reach `far.main`."""

    exact: bool  # whether the counts are those of the payload

    async def connect(self, *arguments: str) -> Transport:
        """A far end with these arguments."""


class ChildEnds:
    """A child process."""

    exact = True

    async def connect(self, *arguments: str) -> Transport:
        return await ChildDialer([*FAR, *arguments]).connect()


class SshEnds:
    """A login to a real sshd."""

    exact = False

    def __init__(self, server: Server) -> None:
        self._server = server

    async def connect(self, *arguments: str) -> Transport:
        return await dialer(self._server, *arguments).connect()


class MemoryEnds:
    """The other end of a pair, and a task that plays the far end."""

    exact = True

    def __init__(self) -> None:
        self._tasks: list[asyncio.Task[None]] = []

    async def connect(self, *arguments: str) -> Transport:
        near, peer = pair()
        self._tasks.append(asyncio.create_task(_play(peer, *arguments)))
        return near

    async def end(self) -> None:
        """Stop the far ends that still play."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


async def _play(peer: Transport, mode: str, *arguments: str) -> None:
    with contextlib.suppress(Exception):
        await _PARTS[mode](peer, *arguments)
    await peer.close()


async def _echo(peer: Transport) -> None:
    while data := await peer.receive():
        await peer.send(data)


async def _source(peer: Transport, size: str, progress: str) -> None:
    data = far.stream(int(size))
    for start in range(0, int(size), far.BLOCK):
        await peer.send(data[start : start + far.BLOCK])
        _note(progress, start + far.BLOCK)


async def _sink(peer: Transport, size: str, gate: str) -> None:
    await until(Path(gate).exists)
    data = await receive_exactly(peer, int(size))
    await peer.send(hashlib.sha256(data).hexdigest().encode())


def _note(path: str, number: int) -> None:
    Path(path).write_text(str(number))


_PARTS: dict[str, Callable[..., Awaitable[None]]] = {
    "echo": _echo,
    "source": _source,
    "sink": _sink,
}


def dialer(server: Server, *arguments: str, **options: Any) -> Dialer:
    """To the far end on a test's sshd."""
    options.setdefault("config_paths", [server.config])
    return SshDialer(server.alias, [*FAR, *arguments], **options)


async def receive_some(transport: Transport) -> bytes:
    """`receive`, which must keep its promise about sizes."""
    data = await transport.receive()
    assert len(data) <= RECEIVE_LIMIT
    return data


async def receive_exactly(transport: Transport, size: int) -> bytes:
    """So many bytes, which arrive in pieces; nothing may follow the last in its piece."""
    data = bytearray()
    while len(data) < size:
        piece = await receive_some(transport)
        assert piece, f"the stream ended after {len(data)} bytes of {size}"
        data += piece
    assert size == len(data)
    return bytes(data)


async def receive_all(transport: Transport) -> bytes:
    """To the end of the stream."""
    data = bytearray()
    while piece := await receive_some(transport):
        data += piece
    return bytes(data)


async def settled(measure: Callable[[], int]) -> int:
    """The value once it has stopped growing; if it is not bounded, any later one is as good."""
    last, same = measure(), 0
    while same < 25:
        await asyncio.sleep(0.02)
        now = measure()
        last, same = now, same + 1 if now == last else 0
    return last


async def until(condition: Callable[[], bool]) -> None:
    """Wait for something that no event of this process tells."""
    while True:
        if condition():
            return
        await asyncio.sleep(0.01)


async def send_until_refused(transport: Transport) -> None:
    """Send for ever, which must fail."""
    while True:
        await transport.send(bytes(far.BLOCK))


def is_running(pid: int) -> bool:
    """Whether the process is there and no zombie."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return False
    return stat.rpartition(b")")[2].split()[0] not in (b"Z", b"X")


def far_ids(answer: bytes) -> tuple[int, int, int]:
    """What a lingering far end answers: its process, its parent's, its session."""
    pid, parent, session = map(int, answer.split())
    return pid, parent, session
