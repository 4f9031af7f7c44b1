"""Talking to a program at the far end that is no agent: scripts of ours, a shell.

What a login shell prints before they begin is passed over: a script says where its answer begins
and ends, or marks each of its lines.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from typing import Any

from cas.errors import TransportError
from cas.transport.base import Dialer, Tail, Transport
from cas.transport.within import within

LINE_LIMIT = 64 * 1024
ANSWER_LIMIT = 2**20


class NoShell(TransportError):
    """The host could be reached, but runs no shell for us."""


async def run_script(
    dialer: Dialer, script: bytes, *, end: bytes, limit: int, seconds: float
) -> bytes:
    """What a shell that reads `script` prints, with `end` at its end; all that came if it ends
    without, or prints more than `limit` bytes.

    Raises TransportError when it takes too long, and what `connect` raises.
    """
    transport = await dialer.connect()
    try:
        return await within(_answer(transport, script, end, limit), seconds)
    except asyncio.TimeoutError:
        what = f"the host did not answer within {seconds:.0f} s"
        raise TransportError(what, where=dialer.name) from None
    finally:
        await transport.close()


async def _answer(transport: Transport, script: bytes, end: bytes, limit: int) -> bytes:
    with contextlib.suppress(TransportError):  # it may have ended: what it said is worth more
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
            data = await within(self._transport.receive(), seconds)
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


class Shell:
    """A POSIX shell at the far end that reads commands from its standard input, one at a time."""

    def __init__(self, transport: Transport, name: str) -> None:
        self._transport = transport
        self._name = name
        self._coming = bytearray()
        self._asked = 0

    async def ask(self, commands: str, seconds: float) -> str:
        """What the commands print, without what is left of earlier ones or of the login shell.

        Raises NoShell when the shell ends, asyncio.TimeoutError when no answer has come
        after so many seconds, and after that again each time.
        """
        self._asked += 1
        begin, end = (f"cas-{word}-{self._asked}\n" for word in ("begin", "end"))
        lines = f"echo {begin}{commands}\necho; echo {end}"
        await within(self._transport.send(lines.encode()), seconds)
        answer = await within(self._until(end.encode()), seconds)
        _, _, body = answer.partition(begin.encode())
        return body.decode("utf-8", "replace").strip()

    async def _until(self, end: bytes) -> bytes:
        while end not in self._coming:
            data = await self._transport.receive()
            if not data or len(self._coming) > ANSWER_LIMIT:
                raise NoShell("the host does not run a shell for us", where=self._name)
            self._coming += data
        answer, _, rest = bytes(self._coming).partition(end)
        self._coming = bytearray(rest)
        return answer
