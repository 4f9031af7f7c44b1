"""A server in this process: over a directory, or with one file that changes as it is read."""

from __future__ import annotations

import asyncio
import errno
import os
import stat
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar, cast

from cas.transport.sftp import Attributes, Changed, Listed, SftpSession

T = TypeVar("T")
FILE = stat.S_IFREG | 0o644


def attributes_of(path: bytes, *, follow: bool = False) -> Attributes:
    """What stat(2) says, as a server tells it."""
    found = os.stat(path, follow_symlinks=follow)
    return Attributes(found.st_mode, found.st_size, found.st_uid, found.st_gid, int(found.st_mtime))


@dataclass
class Tree:
    """A `cas.sftp.walk.Server` over this machine's files. `listings` are those asked for;
    `names` are added to directories."""

    top: Path
    listings: list[bytes] = field(default_factory=list)
    names: dict[bytes, list[bytes]] = field(default_factory=dict)

    def list(self, path: bytes) -> Future[list[Listed]]:
        """See `Server.list`."""
        self.listings.append(path)

        def listed() -> list[Listed]:
            found = [Listed(n, attributes_of(path + b"/" + n)) for n in os.listdir(path)]
            more = self.names.get(path, [])
            return found[::-1] + [Listed(n, Attributes(FILE, 3, 0, 0, 5)) for n in more]

        return _answer(listed)

    def look(self, path: bytes) -> Future[Attributes]:
        """See `Server.look`."""
        return _answer(lambda: attributes_of(path, follow=True))

    def real(self, path: bytes) -> Future[bytes]:
        """See `Server.real`."""
        if path == b".":
            return _answer(lambda: os.fsencode(self.top))
        return _answer(lambda: os.path.realpath(path))


def _answer(work: Callable[[], T]) -> Future[T]:
    future: Future[T] = Future()
    try:
        future.set_result(work())
    except OSError as error:
        future.set_exception(error)
    return future


@dataclass
class OneFile:
    """A file at the far end. `on_read` is called before each read, with its offset."""

    data: bytes
    mtime: int = 1000
    on_read: Callable[[int], None] = lambda _: None
    reads: list[tuple[int, int]] = field(default_factory=list)
    is_file: bool = True

    @property
    def attributes(self) -> Attributes:
        """What it is now."""
        return Attributes(FILE if self.is_file else stat.S_IFIFO, len(self.data), 0, 0, self.mtime)


class FileSession:
    """A session of a server that has one file only."""

    def __init__(self, file: OneFile) -> None:
        self._file = file
        self._open: set[Attributes] = set()

    async def look(self, _path: bytes) -> Attributes:
        await asyncio.sleep(0)
        return self._file.attributes

    async def read(
        self, _path: bytes, seen: Attributes, offset: int, size: int, *, strict: bool
    ) -> bytes:
        if strict and seen not in self._open and not self._file.attributes.is_as(seen):
            raise Changed(errno.ESTALE, "changed")
        self._open.add(seen)
        return await self._some(offset, size)

    async def read_small(self, _path: bytes, size: int) -> tuple[bytes, Attributes]:
        return await self._some(0, size), self._file.attributes

    async def _some(self, offset: int, size: int) -> bytes:
        self._file.on_read(offset)
        self._file.reads.append((offset, size))
        await asyncio.sleep(0)
        return self._file.data[offset : offset + size]


class FilePool:
    """A pool with one session to such a server."""

    host_key = b"host"

    def __init__(self, file: OneFile) -> None:
        self._session = cast(SftpSession, FileSession(file))

    async def do(self, work: Callable[[SftpSession], Any]) -> Any:
        """See `Pool.do`."""
        return await work(self._session)
