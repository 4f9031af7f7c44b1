"""Where an agent lets further lanes in (`cas/agent/attach.py` is the other side).

An agent whose client comes back with another token (it was killed, say) is told to end by the one
that takes its place.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import socket
from collections.abc import Callable
from pathlib import Path

from cas.agent.attach import ADMITTED, END, HANDSHAKE_SECONDS, joining, socket_path
from cas.errors import SourceError

BACKLOG = 32
NO_ROOM = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
REST_SECONDS = 0.5  # after that

Admit = Callable[[int, int, socket.socket], None]


class Door:
    """Listens for one agent. `admit(read_fd, write_fd, connection)` is given each lane that comes
    in, and owns all three; the other process lives until `connection` is closed. `end` is called
    when another agent takes this one's place."""

    def __init__(self, name: str, admit: Admit, end: Callable[[], None]) -> None:
        self._password = joining(name)
        self._admit = admit
        self._end = end
        self._path = socket_path(name, create=True)
        self._loop = asyncio.get_running_loop()
        self._coming: set[socket.socket] = set()
        self._socket = _listen(self._path)
        self._inode = self._path.stat().st_ino
        self._resting: asyncio.TimerHandle | None = None
        self._listen()

    def close(self) -> None:
        """Let nobody in any more; nothing is left behind."""
        if self._resting is not None:
            self._resting.cancel()
        self._loop.remove_reader(self._socket)
        self._socket.close()
        for connection in list(self._coming):
            self._drop(connection)
        with contextlib.suppress(OSError):
            if self._path.stat().st_ino == self._inode:  # else it is another agent's by now
                self._path.unlink()
                self._path.parent.rmdir()

    def _accept(self) -> None:
        try:
            connection, _ = self._socket.accept()
        except OSError as error:
            if error.errno in NO_ROOM:  # whoever knocks goes on knocking
                self._loop.remove_reader(self._socket)
                self._resting = self._loop.call_later(REST_SECONDS, self._listen)
            return
        connection.setblocking(False)
        self._coming.add(connection)
        self._loop.add_reader(connection, self._hear, connection)
        self._loop.call_later(HANDSHAKE_SECONDS, self._drop, connection)

    def _listen(self) -> None:
        self._loop.add_reader(self._socket, self._accept)

    def _hear(self, connection: socket.socket) -> None:
        descriptors: list[int] = []
        try:
            said, descriptors, _, _ = socket.recv_fds(connection, 64, 2)
        except OSError:
            said = b""
        if said == self._password and len(descriptors) == 2:
            self._release(connection)
            with contextlib.suppress(OSError):
                connection.send(ADMITTED)
            self._admit(descriptors[0], descriptors[1], connection)
            return
        for descriptor in descriptors:
            os.close(descriptor)
        self._drop(connection)
        if said == END:
            self._end()

    def _release(self, connection: socket.socket) -> None:
        self._coming.discard(connection)
        self._loop.remove_reader(connection)

    def _drop(self, connection: socket.socket) -> None:
        if connection in self._coming:
            self._release(connection)
            connection.close()


def _end_former(path: Path) -> None:
    """Tell an agent that still listens for the same client to end."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(1.0)
        with contextlib.suppress(OSError):
            connection.connect(os.fspath(path))
            connection.send(END)


def _listen(path: Path) -> socket.socket:
    """A listening socket that appears at `path` whole, in place of a former agent's: that is told
    to end once ours is in the directory, which it would remove if it were empty."""
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    temporary = path.with_suffix(f".{os.getpid()}")
    try:
        temporary.unlink(missing_ok=True)
        listening.bind(os.fspath(temporary))
        listening.listen(BACKLOG)
        listening.setblocking(False)
        _end_former(path)
        temporary.rename(path)
    except OSError as error:
        listening.close()
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise SourceError(
            f"the agent cannot listen for more lanes: {error.strerror or error}",
            where=os.fspath(path),
        ) from error
    return listening
