"""Transports that fail on purpose, for tests of what stands on them."""

from __future__ import annotations

from cas.errors import TransportError
from cas.transport.base import Transport


class CutTransport:
    """Passes exactly `after` bytes, both ways together, and is lost then.

    A send that goes beyond hands over its beginning and fails; a piece received is cut short, and
    the next `receive` fails. The far end sees the end of its stream.
    """

    def __init__(self, inner: Transport, after: int) -> None:
        self._inner = inner
        self._left = after

    @property
    def bytes_in(self) -> int:
        return self._inner.bytes_in

    @property
    def bytes_out(self) -> int:
        return self._inner.bytes_out

    async def send(self, data: bytes) -> None:
        passed = data[: self._left]
        self._left -= len(passed)
        await self._inner.send(passed)
        if len(passed) < len(data):
            await self._cut()

    async def receive(self) -> bytes:
        if not self._left:
            await self._cut()
        data = await self._inner.receive()
        passed = data[: self._left]
        self._left -= len(passed)
        if len(passed) < len(data) and not passed:
            await self._cut()
        return passed

    async def close(self) -> None:
        await self._inner.close()

    def complaints(self) -> str:
        return self._inner.complaints()

    async def _cut(self) -> None:
        await self._inner.close()
        raise TransportError("the connection was lost: cut for a test")
