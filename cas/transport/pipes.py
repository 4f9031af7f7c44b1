"""A transport over two descriptors: pipes to a child, our own standard input and output, a socket.

Nothing is buffered here: the kernel's pipe is the bounded buffer, `receive` is one read and `send`
as many writes as it takes. That is why it is quick (no copy but the kernel's) and why backpressure
needs no code.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable

from cas.errors import TransportError
from cas.transport.base import RECEIVE_LIMIT, Tail


class PipeTransport:
    """A `Transport` that reads from one descriptor and writes to another, or the same (a socket).

    It owns both and makes them non-blocking. `where` names the far end in errors. Counts are
    exact: what was read and written.
    """

    def __init__(self, read_fd: int, write_fd: int, where: str) -> None:
        self._read_fd = read_fd
        self._write_fd = write_fd
        self._where = where
        self._sending = asyncio.Lock()
        self._waiting: set[asyncio.Future[None]] = set()
        self._closed = False
        self.bytes_in = 0
        self.bytes_out = 0
        os.set_blocking(read_fd, False)
        os.set_blocking(write_fd, False)

    async def send(self, data: bytes) -> None:
        """See `Transport.send`."""
        loop = asyncio.get_running_loop()
        async with self._sending:
            rest = memoryview(data)
            while rest:
                written = self._write(rest)
                self.bytes_out += written
                rest = rest[written:]
                if rest:
                    await self._ready(self._write_fd, loop.add_writer, loop.remove_writer)
            self._check()

    async def receive(self) -> bytes:
        """See `Transport.receive`."""
        loop = asyncio.get_running_loop()
        await asyncio.sleep(0)  # a far end that is always ready leaves the other tasks their turn
        while (data := self._read()) is None:
            await self._ready(self._read_fd, loop.add_reader, loop.remove_reader)
        self.bytes_in += len(data)
        return data

    async def close(self) -> None:
        """See `Transport.close`."""
        if self._closed:
            return
        self._closed = True
        loop = asyncio.get_running_loop()
        loop.remove_reader(self._read_fd)
        loop.remove_writer(self._write_fd)
        for waiter in self._waiting:
            _set(waiter)
        for fd in {self._read_fd, self._write_fd}:
            os.close(fd)

    def complaints(self) -> str:
        """Nothing: the standard error is with whoever made the descriptors."""
        return ""

    def _read(self) -> bytes | None:
        self._check()
        try:
            return os.read(self._read_fd, RECEIVE_LIMIT)
        except BlockingIOError:
            return None
        except OSError as error:
            raise self._lost(error) from error

    def _write(self, data: memoryview) -> int:
        self._check()
        try:
            return os.write(self._write_fd, data)
        except BlockingIOError:
            return 0
        except OSError as error:
            raise self._lost(error) from error

    async def _ready(
        self, fd: int, add: Callable[..., None], remove: Callable[[int], object]
    ) -> None:
        """Wait until fd is ready, or was closed here."""
        waiter = asyncio.get_running_loop().create_future()
        self._waiting.add(waiter)
        add(fd, _set, waiter)
        try:
            await waiter
        finally:
            self._waiting.discard(waiter)
            if not self._closed:  # else the number may be another file's by now
                remove(fd)

    def _check(self) -> None:
        if self._closed:
            raise TransportError("the connection was closed here", where=self._where)

    def _lost(self, error: OSError) -> TransportError:
        return TransportError(f"the connection was lost: {error.strerror}", where=self._where)


def standard_streams(where: str = "the client") -> PipeTransport:
    """This process's standard input and output as a connection: the agent's end of it.

    Both descriptors are moved away: 0 then reads nothing, and 1 is the standard error, so that
    nothing that prints by accident gets into the stream.
    """
    incoming, outgoing = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return PipeTransport(incoming, outgoing, where)


class StandardError:
    """Reads a process's standard error as it comes, so that it never blocks; keeps the end."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._open = True
        self._tail = Tail()
        os.set_blocking(fd, False)
        asyncio.get_running_loop().add_reader(fd, self._read)

    def text(self, ended: str = "") -> str:
        """See `Tail.text`; what is there to be read is in it."""
        self._drain()
        return self._tail.text(ended)

    def close(self) -> None:
        """Read what is there, and stop; descendants of the process may hold the other end on."""
        self._drain()
        self._stop()

    def _drain(self) -> None:
        for _ in range(16):  # 1 MiB: as much as a pipe holds
            if self._open:
                self._read()

    def _read(self) -> None:
        try:
            data = os.read(self._fd, 64 * 1024)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if data:
            self._tail.add(data)
        else:
            self._stop()

    def _stop(self) -> None:
        if self._open:
            self._open = False
            asyncio.get_running_loop().remove_reader(self._fd)
            os.close(self._fd)


def _set(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)
