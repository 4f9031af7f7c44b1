"""A server's answers for threads: what the scan asks, put to the pool of connections."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Future

from cas.ids import Digest
from cas.sftp import commands
from cas.sftp.fetch import Fetched, Fetcher
from cas.sftp.pool import Pool
from cas.sftp.staging import Staging
from cas.transport.sftp import Attributes, Listed

PROBE_SECONDS = 30.0
COMMAND_SECONDS = 60.0  # and for each byte that is hashed:
SUMS_SPEED = 10 * 2**20  # bytes a second, of a slow disk that others use too


class Remote:
    """See `cas.sftp.walk.Server` for the first three. For any thread but the event loop's."""

    def __init__(self, pool: Pool, loop: asyncio.AbstractEventLoop) -> None:
        self._pool = pool
        self._loop = loop
        self._runs_commands: bool | None = None

    def list(self, path: bytes) -> Future[list[Listed]]:
        """What is in a directory."""
        return self._pool.ask(lambda session: session.list(path))

    def look(self, path: bytes) -> Future[Attributes]:
        """What a path points to."""
        return self._pool.ask(lambda session: session.look(path, follow=True))

    def real(self, path: bytes) -> Future[bytes]:
        """A path without symbolic links."""
        return self._pool.ask(lambda session: session.real(path))

    def target(self, path: bytes) -> Future[bytes]:
        """Where a symbolic link points to."""
        return self._pool.ask(lambda session: session.target(path))

    def fetcher(self, staging: Staging, count: Callable[[int], None]) -> Fetcher:
        """See `Fetcher`; for `fetch`."""
        return Fetcher(self._pool, staging, count)

    def fetch(self, fetcher: Fetcher, path: bytes, seen: Attributes) -> Future[Fetched]:
        """See `Fetcher.fetch`."""
        return asyncio.run_coroutine_threadsafe(fetcher.fetch(path, seen), self._loop)

    def sums(self, files: Sequence[tuple[bytes, int]]) -> dict[bytes, Digest]:
        """The SHA-256 of as many of these files (path, size) as the far end tells; of none where
        it runs no commands. Waits. Raises TransportError."""
        size = sum(size for _, size in files)
        said = self._told(commands.SUMS, [path for path, _ in files], size / SUMS_SPEED)
        return commands.read_sums(said)

    def stats(self, paths: Sequence[bytes]) -> dict[bytes, commands.Stat]:
        """What `stat` says of as many of these paths as the far end tells, as for `sums`."""
        return commands.read_stats(self._told(commands.STATS, paths, 0.0))

    def _told(self, command: str, paths: Sequence[bytes], seconds: float) -> bytes:
        if not paths or not self._may_run():
            return b""
        data = commands.names_for(paths)
        limit = len(data) + commands.LINE_SIZE * len(paths)
        return self._run(command, data, limit, COMMAND_SECONDS + seconds)

    def _may_run(self) -> bool:
        if self._runs_commands is None:
            command, expected = commands.probe()
            said = self._run(command, b"", len(expected) + 1, PROBE_SECONDS)
            self._runs_commands = said == expected
        return self._runs_commands

    def _run(self, command: str, data: bytes, limit: int, seconds: float) -> bytes:
        """What a command writes; nothing where it cannot be run."""
        asking = self._pool.ask(
            lambda session: session.run(command, data, limit, seconds), is_long=True
        )
        try:
            return asking.result()
        except OSError:
            return b""
