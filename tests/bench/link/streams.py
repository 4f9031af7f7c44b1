"""Raw streams over SSH: some connections by asyncssh in one process, each with `cat` of a file.

    python streams.py CONFIG ALIAS COUNT FILE SECONDS

It prints one JSON object: `up`, when the last of them had brought its first bytes; `rate`, the
bytes a second of all together in SECONDS from then on; `lost`, how many had ended by then. Four
logins at most are under way at a time, and each is tried five times.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import time

import asyncssh

LOGINS = 4
TRIES = 5
UP_SECONDS = 120.0  # a connection that has brought nothing by then is not waited for
SETTLE_SECONDS = 3.0


class _Stream(asyncssh.SSHClientSession[bytes]):
    def __init__(self) -> None:
        self.came = 0
        self.first = asyncio.Event()
        self.ended = False

    def data_received(self, data: bytes, datatype: int | None) -> None:
        self.came += len(data)
        self.first.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self.ended = True
        self.first.set()


async def _begin(config: str, alias: str, path: str, turn: asyncio.Semaphore) -> _Stream:
    stream = _Stream()
    for attempt in range(TRIES):
        with contextlib.suppress(OSError, asyncssh.Error, asyncio.TimeoutError):
            async with turn:
                connection = await asyncssh.connect(
                    alias, config=[config], connect_timeout=90, login_timeout=60
                )
                command = f"exec cat {path}"
                await connection.create_session(lambda: stream, command, encoding=None)
            await stream.first.wait()
            return stream
        await asyncio.sleep(1 + attempt)
    raise SystemExit(f"no connection to {alias}")


async def _measure(config: str, alias: str, count: int, path: str, seconds: float) -> None:
    began = time.monotonic()
    turn = asyncio.Semaphore(LOGINS)
    beginning = [asyncio.ensure_future(_begin(config, alias, path, turn)) for _ in range(count)]
    await asyncio.wait(beginning, timeout=UP_SECONDS)
    up = time.monotonic() - began
    await asyncio.sleep(SETTLE_SECONDS)
    streams = [task.result() for task in beginning if task.done()]
    before, at = sum(stream.came for stream in streams), time.monotonic()
    await asyncio.sleep(seconds)
    came = sum(stream.came for stream in streams) - before
    rate = came / (time.monotonic() - at)
    lost = count - sum(not stream.ended for stream in streams)
    print(json.dumps({"up": round(up, 1), "rate": round(rate), "lost": lost}), flush=True)


if __name__ == "__main__":
    asyncio.run(
        _measure(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4], float(sys.argv[5]))
    )
