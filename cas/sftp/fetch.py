"""Brings one file here, into the staging directory, in pieces over whatever connections are free.

A file is what it was when it was looked at, or nothing of it counts: each connection opens it by
itself and looks whether size and time are still those, and when all has come they are looked at
once more. If they have changed, it begins again, a few times; what changes all the time is taken as
it came last, as far as it goes without a gap, and marked.

Times are whole seconds over SFTP, so a change within the second of the one before would not show:
a file that was modified just now is waited for first.
"""

from __future__ import annotations

import asyncio
import errno
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from cas.sftp.pool import Pool
from cas.sftp.staging import Staging, staged_key
from cas.transport.sftp import PIECE, Attributes, Changed, SftpSession

PAUSES = (0.1, 0.5)  # seconds before a changing file is begun again
SETTLING_SECONDS = 2.0
SETTLING_TIMES = 3  # that one is waited for
PIECES_AT_ONCE = 256  # of one file in the queue: more than all connections have under way, mostly
CHANGED = "changed each time it was read"


@dataclass(frozen=True, slots=True)
class Fetched:
    """A staged file: its key (none for an empty one), what it was, and how many bytes of it are
    there. `doubt` says what is wrong with it, or nothing."""

    key: bytes
    seen: Attributes
    size: int
    doubt: str = ""


class Fetcher:
    """Fetches files into `staging`. `count` is told of the bytes that come, in the event loop."""

    def __init__(self, pool: Pool, staging: Staging, count: Callable[[int], None]) -> None:
        self._pool = pool
        self._staging = staging
        self._count = count
        self._in_transit = 0

    @property
    def in_transit(self) -> int:
        """Bytes of the files being fetched that have not come yet."""
        return self._in_transit

    async def fetch(self, path: bytes, seen: Attributes) -> Fetched:
        """Have the regular file at the server's `path` here. Raises OSError when it cannot be read
        or is no regular file any more, TransportError, StoreError."""
        for pause in (*PAUSES, None):
            seen = await self._settled(path, seen)
            key = staged_key(self._pool.host_key, path, seen)
            file = _File(path, seen, key, strict=pause is not None)
            end = await self._bring(file)
            if end == seen.size and (file.after or await self._look(path)).is_as(seen):
                return Fetched(key, seen, end)
            if pause is not None:
                await asyncio.sleep(pause)
                seen = await self._look(path)
        return Fetched(key, seen, end, CHANGED)

    async def _look(self, path: bytes) -> Attributes:
        seen = await self._pool.do(lambda session: session.look(path))
        if not seen.is_file:
            raise FileNotFoundError(errno.ENOENT, "no regular file any more")
        return seen

    async def _settled(self, path: bytes, seen: Attributes) -> Attributes:
        for _ in range(SETTLING_TIMES):
            if not -SETTLING_SECONDS < time.time() - seen.mtime < SETTLING_SECONDS:
                break
            await asyncio.sleep(SETTLING_SECONDS)
            seen = await self._look(path)
        return seen

    async def _bring(self, file: _File) -> int:
        """Fetch what is missing; how far the file goes without a gap, 0 if it has changed."""
        size = file.seen.size
        lacking = await asyncio.to_thread(self._staging.lacking, file.key, size) if size else 0
        if not lacking:
            return size
        if size > PIECE and not self._staging.has_room_for(lacking):
            raise OSError(errno.ENOSPC, f"there is no room here for {lacking} bytes more")
        file.expected = lacking
        self._in_transit += file.expected
        try:
            if size <= PIECE:
                return await self._bring_small(file)
            await self._bring_pieces(file, self._staging.missing(file.key, size))
            return file.end
        finally:
            self._in_transit -= file.expected

    async def _bring_small(self, file: _File) -> int:
        data, after = await self._pool.do(
            lambda session: session.read_small(file.path, file.seen.size)
        )
        file.after = after
        if file.strict and not after.is_as(file.seen):
            return 0
        await self._came(file, 0, data)
        return len(data)

    async def _bring_pieces(self, file: _File, missing: Iterator[int]) -> None:
        """Fetch these pieces, as many at a time as are good; the first error ends it."""
        tasks: set[asyncio.Task[None]] = set()
        try:
            for number in missing:
                if len(tasks) >= PIECES_AT_ONCE:
                    done, tasks = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                    for task in done:
                        task.result()
                if file.end <= number * PIECE:
                    break
                tasks.add(asyncio.create_task(self._bring_piece(file, number)))
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _bring_piece(self, file: _File, number: int) -> None:
        offset = number * PIECE
        size = min(PIECE, file.seen.size - offset)

        async def read(session: SftpSession) -> bytes:
            return await session.read(file.path, file.seen, offset, size, strict=file.strict)

        try:
            data = await self._pool.do(read)
        except Changed:
            file.end = 0
            return
        await self._came(file, number, data)
        if len(data) < size:
            file.end = min(file.end, offset + len(data))

    async def _came(self, file: _File, number: int, data: bytes) -> None:
        if data:
            await asyncio.to_thread(self._staging.write, file.key, number, data)
            file.expected -= len(data)
            self._in_transit -= len(data)
            self._count(len(data))


class _File:
    """A file on its way. `end` is where it ended for those who read it, 0 if it has changed, which
    nobody looks at unless `strict`; `expected` how many bytes are still to come; `after` what it
    was after it was read, if that is known."""

    __slots__ = ("after", "end", "expected", "key", "path", "seen", "strict")

    def __init__(self, path: bytes, seen: Attributes, key: bytes, *, strict: bool) -> None:
        self.path = path
        self.seen = seen
        self.key = key
        self.strict = strict
        self.end = seen.size
        self.expected = 0
        self.after: Attributes | None = None
