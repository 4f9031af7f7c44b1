"""Store work for one source connection, off the event loop: two threads, one order of writes.

The *store thread* plans pages, decodes and hashes segments, appends to packs; everything it does
happens in the order in which it was handed over. The *commit thread* makes what was appended
durable; one commit takes all that has gathered since the last. Only after it are segments given to
`acknowledge`. A segment waits a moment for others to be committed with: chunk ids are spread all
over the index, so each commit writes a page of it for almost every chunk, and two are dear.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from cas.pull.receive import StoredSegment
from cas.store.writer import Writer

COMMIT_SECONDS = 0.25  # a segment waits this long for company
COMMIT_SIZE = 16 * 2**20  # stored bytes that do not wait: well below what the agent has in flight
IDLE_COMMIT_SECONDS = 1.0  # pages alone wait this long for company

T = TypeVar("T")


class Keeper:
    """Runs the two threads. `acknowledge` is awaited with the segments of each commit."""

    def __init__(
        self,
        writer: Writer | None,
        acknowledge: Callable[[list[StoredSegment]], Awaitable[None]],
    ) -> None:
        self._writer = writer
        self._acknowledge = acknowledge
        self._store_thread = ThreadPoolExecutor(1, "store")
        self._commit_thread = ThreadPoolExecutor(1, "commit")
        self._stored: list[StoredSegment] = []
        self._urgent = asyncio.Event()
        self.commits = 0

    async def do(self, work: Callable[..., T], *arguments: object) -> T:
        """Run `work(*arguments)` in the store thread, after everything handed over before."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._store_thread, work, *arguments)

    def stored(self, segments: list[StoredSegment], *, last: bool = False) -> None:
        """These segments were handed to the writer: commit them soon and acknowledge them; at once
        if they are the `last`."""
        if segments and not self._stored:
            asyncio.get_running_loop().call_later(COMMIT_SECONDS, self._urgent.set)
        self._stored += segments
        if last or sum(segment.stored_size for segment in self._stored) >= COMMIT_SIZE:
            self._urgent.set()

    async def commit(self) -> None:
        """Commit now; durable on return, and acknowledged."""
        if self._writer is None:
            return
        batch, self._stored = self._stored, []
        loop = asyncio.get_running_loop()
        try:
            await loop.run_in_executor(self._commit_thread, self._writer.commit)
        except BaseException:  # cancelled, perhaps: the next commit speaks for these too
            self._stored = batch + self._stored
            raise
        self.commits += 1
        if batch:
            await self._acknowledge(batch)

    async def keep_committing(self) -> None:
        """Commit soon after segments were stored, and now and then for pages; until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            # Not by `asyncio.wait_for`: before Python 3.12 it forgets that it was cancelled when
            # that happens as the event comes.
            idle = loop.call_later(IDLE_COMMIT_SECONDS, self._urgent.set)
            try:
                await self._urgent.wait()
            finally:
                idle.cancel()
            self._urgent.clear()
            await self.commit()

    def close(self) -> None:
        """End the threads; what they were handed is done first."""
        self._store_thread.shutdown(wait=True)
        self._commit_thread.shutdown(wait=True)
