"""The first leg of an SSH connection, with every byte of it counted.

An SSH library sits on a stream: it is given a transport to write to, and is itself the protocol
that receives. `Wire` stands between it and the event loop, and is to each what the other is. So
version strings, key exchanges, logins, keepalives and padding are counted with the payload, for
two short calls per read or write. A connection through jump hosts has one wire, to the first.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable

from cas.transport.child import end_process
from cas.transport.pipes import StandardError
from cas.transport.within import within

GRACE_SECONDS = 1.0
ADDRESS_SECONDS = 0.25  # until a host's next address is tried beside the first (RFC 8305)


class Wire(asyncio.Protocol):
    """A TCP connection, or what a ProxyCommand makes of its standard input and output.

    `family`, `local_addr` and `proxy_command` say which; `timeout` is for TCP to connect, seconds.
    When a connection has ended another can be made; the counts go on.
    """

    def __init__(self, timeout: float) -> None:
        self.bytes_in = 0
        self.bytes_out = 0
        self.family: int = socket.AF_UNSPEC
        self.local_addr: tuple[str, int] | None = None
        self.proxy_command: str | None = None
        self._timeout = timeout
        self._user: asyncio.Protocol | None = None
        self._transport: asyncio.Transport | None = None
        self._proxy: asyncio.subprocess.Process | None = None
        self._proxy_stderr: StandardError | None = None

    async def create_connection(
        self, factory: Callable[[], asyncio.Protocol], host: str, port: int
    ) -> tuple[Wire, asyncio.Protocol]:
        """Connect, and join what `factory` makes to the stream.

        Raises OSError (socket.gaierror: no such name) and asyncio.TimeoutError.
        """
        await self.end()
        self._user = user = factory()
        loop = asyncio.get_running_loop()
        if self.proxy_command:
            sock = await self._start_proxy(self.proxy_command)
            await loop.create_connection(lambda: self, sock=sock)
        else:
            connecting = loop.create_connection(
                lambda: self,
                host,
                port,
                family=self.family,
                local_addr=self.local_addr,
                happy_eyeballs_delay=ADDRESS_SECONDS,
            )
            await within(connecting, self._timeout)
        return self, user

    def proxy_said(self) -> str:
        """The end of the proxy command's standard error; "" without one."""
        return self._proxy_stderr.text() if self._proxy_stderr else ""

    async def end(self) -> None:
        """End the stream, and the proxy command; takes a few seconds at most."""
        self.abort()
        proxy, self._proxy = self._proxy, None
        try:
            if proxy:
                await end_process(proxy, GRACE_SECONDS)
        finally:
            if self._proxy_stderr:
                self._proxy_stderr.close()

    async def _start_proxy(self, command: str) -> socket.socket:
        """Run the command as ssh does, one end of a socket pair its standard input and output."""
        ours, theirs = socket.socketpair()
        read_fd, write_fd = os.pipe()
        try:
            self._proxy = await asyncio.create_subprocess_exec(
                "/bin/sh",
                "-c",
                f"exec {command}",
                stdin=theirs.fileno(),
                stdout=theirs.fileno(),
                stderr=write_fd,
                start_new_session=True,
            )
        except BaseException:
            ours.close()
            os.close(read_fd)
            raise
        finally:
            theirs.close()
            os.close(write_fd)
        self._proxy_stderr = StandardError(read_fd)
        return ours

    # To the event loop: the protocol.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See `asyncio.Protocol`, as for all below."""
        assert isinstance(transport, asyncio.Transport)
        assert self._user
        self._transport = transport
        self._user.connection_made(self)  # type: ignore[arg-type]  # a transport in all it uses

    def data_received(self, data: bytes) -> None:
        self.bytes_in += len(data)
        self._user.data_received(data)  # type: ignore[union-attr]  # set before the first byte

    def eof_received(self) -> bool | None:
        return self._user.eof_received() if self._user else None

    def connection_lost(self, exc: Exception | None) -> None:
        if self._user:
            self._user.connection_lost(exc)

    # To the SSH library: the transport.

    def write(self, data: bytes) -> None:
        self.bytes_out += len(data)
        if self._transport:
            self._transport.write(data)

    def get_extra_info(self, name: str, default: object = None) -> object:
        return self._transport.get_extra_info(name, default) if self._transport else default

    def abort(self) -> None:
        if self._transport:
            self._transport.abort()

    def close(self) -> None:
        self.abort()
