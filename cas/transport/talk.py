"""Talking to a program at the far end that is no agent: scripts of ours, a shell.

What a login shell prints before they begin is passed over: a script says where its answer begins
and ends, or marks each of its lines.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

from cas.errors import TransportError
from cas.transport.base import Dialer, Tail, Transport

LINE_LIMIT = 64 * 1024


async def run_script(
    dialer: Dialer, script: bytes, *, end: bytes, limit: int, seconds: float
) -> bytes:
    """What a shell that reads `script` prints, with `end` at its end; all that came if it ends
    without, or prints more than `limit` bytes.

    Raises TransportError when it takes too long, and what `connect` raises.
    """
    transport = await dialer.connect()
    try:
        return await asyncio.wait_for(_answer(transport, script, end, limit), seconds)
    except asyncio.TimeoutError:
        what = f"the host did not answer within {seconds:.0f} s"
        raise TransportError(what, where=dialer.name) from None
    finally:
        await transport.close()


async def _answer(transport: Transport, script: bytes, end: bytes, limit: int) -> bytes:
    await transport.send(script)
    answer = bytearray()
    while end not in answer and len(answer) < limit:
        data = await transport.receive()
        if not data:
            break
        answer += data
    return bytes(answer)


class Talk:
    """JSON lines from the far end, each behind `mark`; whatever else it prints is noise."""

    def __init__(self, transport: Transport, name: str, mark: bytes) -> None:
        self._transport = transport
        self._name = name
        self._mark = mark
        self._coming = bytearray()
        self._noise = Tail()

    async def say(self, fields: dict[str, object]) -> None:
        """Send one line. Raises TransportError."""
        await self._transport.send(json.dumps(fields).encode() + b"\n")

    async def hear(self, seconds: float) -> dict[str, Any]:
        """The next line. Raises TransportError if none comes for so long, or the far end ends."""
        while True:
            line, newline, rest = self._coming.partition(b"\n")
            if newline:
                self._coming = rest
                if line.startswith(self._mark):
                    return self._fields(bytes(line[len(self._mark) :]))
                self._noise.add(bytes(line) + b"\n")
            else:
                await self._more(seconds)

    async def _more(self, seconds: float) -> None:
        try:
            data = await asyncio.wait_for(self._transport.receive(), seconds)
        except asyncio.TimeoutError:
            what = f"nothing came for {seconds:.0f} s"
            raise TransportError(what, where=self._name) from None
        if not data or len(self._coming) > LINE_LIMIT:
            raise TransportError(await self._ended(), where=self._name)
        self._coming += data

    async def _ended(self) -> str:
        await self._transport.close()
        self._noise.add(bytes(self._coming))
        said = self._transport.complaints() or self._noise.text()
        return f"the far end has ended: {said[-1000:]}" if said else "the connection ended"

    def _fields(self, line: bytes) -> dict[str, Any]:
        try:
            fields = json.loads(line)
        except ValueError:
            fields = None
        if not isinstance(fields, dict):
            raise TransportError("the far end said something unexpected", where=self._name)
        return fields
