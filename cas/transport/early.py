"""A dialer whose first connection is made before it is asked for, while its user is still busy."""

from __future__ import annotations

import asyncio
from types import TracebackType

from cas.transport.base import Dialer, Transport


class EarlyDialer:
    """A `Dialer` by way of another, which it calls at once. Leaving the block hangs up if nobody
    has asked for that connection; one that failed says so to whoever asks."""

    def __init__(self, dialer: Dialer) -> None:
        self.name = dialer.name
        self.dialer = dialer
        self._first: asyncio.Task[Transport] | None = None

    async def connect(self) -> Transport:
        """See `Dialer.connect`."""
        first, self._first = self._first, None
        return await (self.dialer.connect() if first is None else first)

    def attaching(self, name: str) -> Dialer | None:
        """See `Dialer.attaching`."""
        return self.dialer.attaching(name)

    async def __aenter__(self) -> EarlyDialer:
        self._first = asyncio.create_task(self.dialer.connect())
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        first, self._first = self._first, None
        if first is not None:
            first.cancel()
            [unused] = await asyncio.gather(first, return_exceptions=True)
            if not isinstance(unused, BaseException):
                await unused.close()
