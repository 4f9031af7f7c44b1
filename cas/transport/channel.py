"""A transport over one channel of an SSH connection.

The SSH library calls a `Channel` when something arrives, and is called by it to write. Both ways
are bounded: what nobody received stops the library reading on (it then holds one channel window
more, 2 MiB, and the far end has to wait), and `send` waits while the library holds more than
64 KiB beyond the window that the far end granted.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from typing import Any, Protocol

from cas.errors import TransportError
from cas.transport.base import RECEIVE_LIMIT, Tail, printable
from cas.transport.within import within

SEND_SLICE = 128 * 1024
HELD_HIGH, HELD_LOW = 512 * 1024, 128 * 1024  # not received yet: stop reading, go on reading
LAST_WORDS_SECONDS = 2.0  # between the end of the output and the exit status


class Carrier(Protocol):
    """What a channel asks of the library's own channel."""

    def write(self, data: bytes) -> None:
        """Take data for sending; OSError if the channel is not open."""

    def pause_reading(self) -> None:
        """Deliver nothing until `resume_reading`."""

    def resume_reading(self) -> None:
        """Deliver again."""

    def get_extra_info(self, name: str) -> Any:
        """What is known of the connection; None for what is not."""


class Route(Protocol):
    """What a channel asks of the connections below it."""

    @property
    def bytes_in(self) -> int:
        """Bytes received on the wire."""

    @property
    def bytes_out(self) -> int:
        """Bytes sent on the wire."""

    async def close(self) -> None:
        """Close them all; never hangs, raises nothing."""


class Channel:
    """A `Transport`; and the session object that the SSH library reports to."""

    def __init__(self, route: Route, where: str) -> None:
        self._route = route
        self._where = where
        self.host_key = ""
        self._carrier: Carrier | None = None
        self._held: deque[bytes] = deque()
        self._held_size = 0
        self._reading_paused = False
        self._writable = asyncio.Event()
        self._writable.set()
        self._arrival = asyncio.Event()  # of data, of the end, of an error
        self._gone = asyncio.Event()
        self._sending = asyncio.Lock()
        self._ended = False
        self._closed = False
        self._failure = ""
        self._tail = Tail()
        self._how_it_ended = ""

    @property
    def bytes_in(self) -> int:
        """See `Transport.bytes_in`: everything on the first leg, up to and with the TCP payload."""
        return self._route.bytes_in

    @property
    def bytes_out(self) -> int:
        """See `Transport.bytes_out`, and `bytes_in`."""
        return self._route.bytes_out

    async def send(self, data: bytes) -> None:
        """See `Transport.send`."""
        async with self._sending:
            for start in range(0, len(data), SEND_SLICE):
                await self._writable.wait()
                self._write(data[start : start + SEND_SLICE])
            self._check()

    async def receive(self) -> bytes:
        """See `Transport.receive`."""
        await asyncio.sleep(0)  # what arrived meanwhile is taken with the rest
        while not self._held and not self._ended:
            self._check()
            self._arrival.clear()
            await self._arrival.wait()
        if self._closed:
            self._check()
        return self._take()

    async def close(self) -> None:
        """See `Transport.close`."""
        self._closed = True
        self._arrival.set()
        self._writable.set()
        try:
            if self._ended:
                with contextlib.suppress(asyncio.TimeoutError):
                    await within(self._gone.wait(), LAST_WORDS_SECONDS)
        finally:
            await self._route.close()

    def complaints(self) -> str:
        """See `Transport.complaints`."""
        return self._tail.text(self._how_it_ended)

    def fact(self, name: str) -> object:
        """What the SSH library knows of the connection ("socket", "recv_compression"); None for
        what it does not, and when the channel is closed."""
        return self._carrier.get_extra_info(name) if self._carrier else None

    def _write(self, data: bytes) -> None:
        self._check()
        try:
            if self._carrier:
                self._carrier.write(data)
                return
        except OSError:  # its side is closed, and ours with it
            pass
        raise TransportError("the far end has ended", where=self._where)

    def _take(self) -> bytes:
        """The packets that are here, together; b"" at the end."""
        parts: list[bytes] = []
        size = 0
        while self._held and size + len(self._held[0]) <= RECEIVE_LIMIT:
            parts.append(self._held.popleft())
            size += len(parts[-1])
        self._held_size -= size
        if self._reading_paused and self._held_size <= HELD_LOW and self._carrier:
            self._reading_paused = False
            self._carrier.resume_reading()
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _check(self) -> None:
        if self._closed:
            raise TransportError("the connection was closed here", where=self._where)
        if self._failure:
            raise TransportError(f"the connection was lost: {self._failure}", where=self._where)

    # What the SSH library calls, in the words of its session classes.

    def connection_made(self, carrier: Carrier) -> None:
        """The channel is open; the command is not started yet."""
        self._carrier = carrier

    def session_started(self) -> None:
        """The command is started."""

    def data_received(self, data: bytes, datatype: int | None) -> None:
        """Bytes from standard output, or with a datatype from standard error."""
        if datatype is not None:
            self._tail.add(data)
            return
        self._held.append(data)
        self._held_size += len(data)
        if self._held_size > HELD_HIGH and not self._reading_paused and self._carrier:
            self._reading_paused = True
            self._carrier.pause_reading()
        self._arrival.set()

    def eof_received(self) -> bool:
        """Standard output has ended. We may go on sending."""
        self._ended = True
        self._arrival.set()
        return True

    def exit_status_received(self, status: int) -> None:
        """How the command ended."""
        self._how_it_ended = f"exit status {status}" if status else ""

    def exit_signal_received(self, name: str, *_: object) -> None:
        """What ended the command."""
        self._how_it_ended = f"ended by SIG{name}"  # `Tail.text` makes it printable

    def connection_lost(self, error: Exception | None) -> None:
        """The channel is closed, or the connection below it is lost."""
        if error is None:
            self._ended = True
        else:
            self._failure = printable(str(error)) or type(error).__name__
        self._carrier = None
        self._gone.set()
        self._arrival.set()
        self._writable.set()

    def pause_writing(self) -> None:
        """The library holds more than enough."""
        self._writable.clear()

    def resume_writing(self) -> None:
        """The library has sent most of what it held."""
        self._writable.set()
