"""Two ends of a connection inside one process: for tests, and for an agent in the same process."""

from __future__ import annotations

import asyncio
from collections import deque

from cas.errors import TransportError
from cas.transport.base import RECEIVE_LIMIT

BUFFER_LIMIT = 1024 * 1024  # bytes under way in each direction


def pair(limit: int = BUFFER_LIMIT) -> tuple[MemoryTransport, MemoryTransport]:
    """Both ends; at most `limit` bytes are under way each way. Closing one end ends the stream
    that the other receives, after what was sent."""
    there, back = _Stream(limit), _Stream(limit)
    return MemoryTransport(there, back), MemoryTransport(back, there)


class MemoryTransport:
    """One end of `pair`: a `Transport` whose wire has no overhead and is never lost."""

    def __init__(self, outgoing: _Stream, incoming: _Stream) -> None:
        self._outgoing = outgoing
        self._incoming = incoming
        self._sending = asyncio.Lock()
        self._closed = False
        self.bytes_in = 0
        self.bytes_out = 0

    async def send(self, data: bytes) -> None:
        """See `Transport.send`."""
        async with self._sending:
            rest = memoryview(data)
            while rest:
                self._check()
                accepted = self._outgoing.put(rest)
                self.bytes_out += accepted
                rest = rest[accepted:]
                if not accepted:
                    await self._outgoing.changed()
            self._check()

    async def receive(self) -> bytes:
        """See `Transport.receive`."""
        await asyncio.sleep(0)  # a receiver in a loop leaves the others their turn
        while True:
            self._check()
            data = self._incoming.take()
            if data is not None:
                self.bytes_in += len(data)
                return data
            await self._incoming.changed()

    async def close(self) -> None:
        """See `Transport.close`."""
        self._closed = True
        self._outgoing.end()
        self._incoming.drop()

    def complaints(self) -> str:
        """Nothing: there is no standard error."""
        return ""

    def _check(self) -> None:
        if self._closed:
            raise TransportError("the connection was closed here")


class _Stream:
    """One direction. `put` and `take` never wait; `changed` waits until another try is worth it."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._held: deque[bytes] = deque()
        self._size = 0
        self._ended = False  # no more will be put
        self._dropped = False  # no more will be taken
        self._waiting: list[asyncio.Future[None]] = []

    def put(self, data: memoryview) -> int:
        """Take in as much of data as there is room for, and say how much that was."""
        if self._dropped:
            raise TransportError("the far end has closed the connection")
        part = bytes(data[: min(RECEIVE_LIMIT, self._limit - self._size)])
        if part:
            self._held.append(part)
            self._size += len(part)
            self._wake()
        return len(part)

    def take(self) -> bytes | None:
        """The oldest bytes; b"" at the end; None if there are none yet."""
        if not self._held:
            return b"" if self._ended else None
        data = self._held.popleft()
        self._size -= len(data)
        self._wake()
        return data

    def end(self) -> None:
        """Nothing more comes after what is held."""
        self._ended = True
        self._wake()

    def drop(self) -> None:
        """Nobody takes any more."""
        self._dropped = True
        self._held.clear()
        self._size = 0
        self._wake()

    async def changed(self) -> None:
        """Wait until something was put, taken, ended or dropped."""
        waiter = asyncio.get_running_loop().create_future()
        self._waiting.append(waiter)
        await waiter

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, []
        for waiter in waiting:
            if not waiter.done():
                waiter.set_result(None)
