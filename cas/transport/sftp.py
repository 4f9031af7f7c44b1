"""An SFTP session on an SSH connection: what a server without an agent can be asked for.

The second module that knows asyncssh, since its SFTP client has errors and values of its own; the
connections are made by `ssh.SshDialer`. Protocol version 3, as OpenSSH speaks it: times are whole
seconds, device numbers and inode numbers are not told.

Names and paths are bytes. Nothing the server says is taken for granted: lengths are limited, and
what makes no sense ends the session. Every method raises OSError for what the server refuses (with
ENOENT and EACCES where it says so), and TransportError when the session is lost. None has a time
limit but `run`: whoever uses a session watches its `bytes_in` and closes it when it is silent,
which wakes whoever waits.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import stat
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar, cast

import asyncssh

from cas.errors import TransportError
from cas.transport.base import printable
from cas.transport.channel import Route
from cas.transport.longname import read_longname
from cas.transport.within import within

PIECE = 64 * 1024  # the most that one `read` is asked for: one request, one answer
NAMES_LIMIT = 2**20  # in one directory
TARGET_LIMIT = 65536
FILES_OPEN = 16  # that `read` keeps
CLOSING_SECONDS = 10.0

_Reader = asyncssh.SFTPClientFile
_Which = tuple[bytes, "Attributes", bool]  # see `SftpSession.read`
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Attributes:
    """What a server says of a name: `mode` with the type bits (0 if it does not say), `mtime` in
    seconds. Names of owners and `links` only where a directory's listing showed them."""

    mode: int
    size: int
    uid: int
    gid: int
    mtime: int
    user: bytes = b""
    group: bytes = b""
    links: int = 1

    @property
    def is_file(self) -> bool:
        """Whether it is a regular file."""
        return stat.S_ISREG(self.mode)

    @property
    def is_directory(self) -> bool:
        """Whether it is a directory."""
        return stat.S_ISDIR(self.mode)

    def is_as(self, other: Attributes) -> bool:
        """Whether a file that looked like the other may have the same content still."""
        mine = (stat.S_IFMT(self.mode), self.size, self.mtime)
        return mine == (stat.S_IFMT(other.mode), other.size, other.mtime)


@dataclass(frozen=True, slots=True)
class Listed:
    """A name in a directory, as the server gave it, and what it is."""

    name: bytes
    attributes: Attributes


class Changed(OSError):
    """A file is not what it was when it was looked at."""


@dataclass(slots=True, eq=False)
class _Kept:
    """A file that is open, or on the way to be, and how many read it."""

    opening: asyncio.Future[_Reader]
    users: int = 0


class SftpSession:
    """An open session; any number of tasks may use it at a time."""

    def __init__(
        self, route: Route, connection: asyncssh.SSHClientConnection, client: asyncssh.SFTPClient
    ) -> None:
        self._route = route
        self._connection = connection
        self._client = client
        self._files: OrderedDict[_Which, _Kept] = OrderedDict()
        key = connection.get_server_host_key()
        self.host_key = b"" if key is None else key.public_data

    @property
    def bytes_in(self) -> int:
        """See `Transport.bytes_in`."""
        return self._route.bytes_in

    @property
    def bytes_out(self) -> int:
        """See `Transport.bytes_out`."""
        return self._route.bytes_out

    async def real(self, path: bytes) -> bytes:
        """`path` without symbolic links and dots; `.` is where the session begins."""
        found = await _asked(self._client.realpath(path))
        if not found.startswith(b"/") or b"\0" in found:
            raise TransportError("the server gives a path that is none")
        return found

    async def look(self, path: bytes, *, follow: bool = False) -> Attributes:
        """What `path` is; what it points to with `follow`."""
        asking = self._client.stat(path) if follow else self._client.lstat(path)
        return _attributes(await _asked(asking))

    async def target(self, path: bytes) -> bytes:
        """Where a symbolic link points to."""
        found = await _asked(self._client.readlink(path))
        if len(found) > TARGET_LIMIT:
            raise OSError(errno.ENAMETOOLONG, "a symbolic link whose target is too long")
        return found

    async def list(self, path: bytes) -> list[Listed]:
        """What is in the directory `path`, in no order; `.` and `..` too, if it has them."""
        with _explained():
            found: list[Listed] = []
            async for entry in self._client.scandir(path):
                found.append(_listed(entry))
                if len(found) > NAMES_LIMIT:
                    raise OSError(errno.EFBIG, f"more than {NAMES_LIMIT} names")
        return found

    async def read(
        self, path: bytes, seen: Attributes, offset: int, size: int, *, strict: bool
    ) -> bytes:
        """Up to `size` (at most PIECE) bytes of a file, fewer at its end only. It stays open for
        the next `read` of it. With `strict`, raises Changed unless it is as it was `seen` when it
        is opened."""
        async with self._opened((path, seen, strict)) as file:
            data = await self._some(file, offset, size)
            return data + await self._rest(file, offset, size, data)

    async def read_small(self, path: bytes, size: int) -> tuple[bytes, Attributes]:
        """Up to `size` (at most PIECE) bytes of a file, and what it is after they were read."""
        file = await self._open(path)
        try:
            # Requests about one file are answered in the order in which they are sent.
            reading = asyncio.ensure_future(self._some(file, 0, size))
            looking = asyncio.ensure_future(_asked(file.stat()))
            data, after = await asyncio.gather(reading, looking)
            if rest := await self._rest(file, 0, size, data):
                data, after = data + rest, await _asked(file.stat())
            return data, _attributes(after)
        finally:
            self._closing(file)

    async def run(self, command: str, data: bytes, limit: int, seconds: float) -> bytes:
        """What a command at the far end writes to standard output, of which `limit` bytes are
        read; `data` is its standard input. Raises OSError also where commands are not allowed."""
        try:
            return await within(self._run(command, data, limit), seconds)
        except asyncio.TimeoutError:
            raise OSError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT)) from None
        except asyncssh.ChannelOpenError as error:
            raise OSError(errno.EACCES, printable(str(error))) from error

    async def close(self) -> None:
        """End the session; never hangs, raises nothing."""
        for kept in self._files.values():
            kept.opening.cancel()
        self._files.clear()
        await self._route.close()

    async def _run(self, command: str, data: bytes, limit: int) -> bytes:
        with _explained():
            process = await self._connection.create_process(
                command, encoding=None, stderr=asyncssh.DEVNULL, request_pty=False
            )
            try:
                with contextlib.suppress(BrokenPipeError):  # it has ended, and wants no input
                    process.stdin.write(data)
                    process.stdin.write_eof()
                said = bytearray()
                while len(said) < limit and (more := await process.stdout.read(PIECE)):
                    said += more
            finally:
                process.close()
        return bytes(said[:limit])

    async def _open(self, path: bytes) -> _Reader:
        # With blocks of 0 bytes a `read` is one request. Of several, put together by the library,
        # one could find an end where another finds more, and zeros would stand between.
        opening = self._client.open(path, "rb", encoding=None, block_size=0)
        return await _asked(opening)

    @contextlib.asynccontextmanager
    async def _opened(self, which: _Which) -> AsyncIterator[_Reader]:
        """The file, open for `read` as long as the block goes on, and mostly for longer."""
        kept = self._files.get(which)
        if kept is None:
            kept = self._files[which] = _Kept(asyncio.ensure_future(self._open_as(*which)))
            kept.opening.add_done_callback(_ignored)
        self._files.move_to_end(which)
        kept.users += 1
        try:
            yield await asyncio.shield(kept.opening)
        finally:
            kept.users -= 1
            self._tidy()

    async def _open_as(self, path: bytes, seen: Attributes, strict: bool) -> _Reader:
        file = await self._open(path)
        if strict and not _attributes(await _asked(file.stat())).is_as(seen):
            self._closing(file)
            raise Changed(errno.ESTALE, "changed while it was read")
        return file

    def _tidy(self) -> None:
        """Close what nobody reads: what could not be opened, and the oldest of too many."""
        idle = [(which, kept) for which, kept in self._files.items() if not kept.users]
        for which, kept in idle:
            is_open = kept.opening.done() and not _failed(kept.opening)
            if is_open and len(self._files) > FILES_OPEN:
                self._closing(kept.opening.result())
                del self._files[which]
            elif not is_open and kept.opening.done():
                del self._files[which]

    def _closing(self, file: _Reader) -> None:
        asyncio.ensure_future(_closed(file)).add_done_callback(_ignored)

    async def _rest(self, file: _Reader, offset: int, size: int, data: bytes) -> bytes:
        """What follows `data`, which was read at `offset`, up to `size`: some servers give a part
        at a time."""
        rest = b""
        done = len(data)
        while 0 < done < size and (more := await self._some(file, offset + done, size - done)):
            rest += more
            done += len(more)
        return rest

    async def _some(self, file: _Reader, offset: int, size: int) -> bytes:
        data = await _asked(file.read(size, offset))
        if len(data) > size:
            raise TransportError("the server sends more than it was asked for")
        return cast(bytes, data)


async def open_session(
    route: Route, connection: asyncssh.SSHClientConnection, name: str, seconds: float
) -> SftpSession:
    """Start SFTP on a connection. Raises TransportError when the server does not offer it."""
    starting = connection.start_sftp_client(path_encoding=None)
    try:
        client = await within(starting, seconds)
    except asyncio.TimeoutError:
        what = f"SFTP was not started within {seconds:.0f} s"
        raise TransportError(what, where=name) from None
    except (asyncssh.Error, OSError, ValueError) as error:
        what = f"the host does not offer SFTP: {printable(str(error))}"
        raise TransportError(what, where=name) from error
    return SftpSession(route, connection, client)


async def _closed(file: _Reader) -> None:
    with contextlib.suppress(asyncssh.Error, OSError, asyncio.TimeoutError):
        await within(file.close(), CLOSING_SECONDS)


def _ignored(done: asyncio.Future[Any]) -> None:
    if not done.cancelled():
        done.exception()


def _failed(done: asyncio.Future[Any]) -> bool:
    return done.cancelled() or done.exception() is not None


async def _asked(answer: Awaitable[T]) -> T:
    with _explained():
        return await answer


@contextlib.contextmanager
def _explained() -> Iterator[None]:
    """Turns what asyncssh raises into what this module promises."""
    try:
        yield
    except (asyncssh.SFTPNoSuchFile, asyncssh.SFTPNoSuchPath) as error:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT)) from error
    except asyncssh.SFTPPermissionDenied as error:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES)) from error
    except (asyncssh.SFTPNoConnection, asyncssh.SFTPConnectionLost) as error:
        raise TransportError("the connection was lost") from error
    except asyncssh.SFTPBadMessage as error:
        raise TransportError(f"not SFTP: {printable(error.reason)}") from error
    except asyncssh.SFTPError as error:
        raise OSError(errno.EIO, printable(error.reason)[:200]) from error
    except asyncssh.ChannelOpenError:
        raise
    except (asyncssh.Error, ConnectionError, EOFError) as error:
        raise TransportError(f"the connection was lost: {printable(str(error))}") from error
    except (ValueError, IndexError) as error:  # a packet that cannot be taken apart
        raise TransportError(f"not SFTP: {printable(str(error))}") from error


def _attributes(told: asyncssh.SFTPAttrs, line: bytes = b"") -> Attributes:
    mode, size = told.permissions or 0, told.size
    if size is None:
        mode, size = 0, 0
    uid, gid = told.uid or 0, told.gid or 0
    more = read_longname(line, uid, gid, size)
    return Attributes(mode, size, uid, gid, told.mtime or 0, more.user, more.group, more.links)


def _listed(entry: asyncssh.SFTPName) -> Listed:
    name, line = entry.filename, entry.longname
    if not isinstance(name, bytes):
        raise TransportError("the server gives a name that is none")
    return Listed(name, _attributes(entry.attrs, line if isinstance(line, bytes) else b""))
