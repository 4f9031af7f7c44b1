"""Where further lanes come in: a socket in a directory that only its user may enter.

`cas serve --attach KEY-TOKEN`, started by another login of the same client, connects here and hands
its standard input and output over (SCM_RIGHTS, unix(7)); from then on the agent itself reads and
writes them, and the other process only waits until the agent lets go. Nothing is copied.

The key names the client and source, the token this run of it. An agent whose client comes back with
another token (it was killed, say) is told to end by the one that takes its place.

The directory is where the system has temporary files: $XDG_RUNTIME_DIR goes when the login that it
was made for ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import socket
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path

from cas.errors import SourceError

NAME = re.compile(r"[0-9a-f]{16}-[0-9a-f]{32}\Z")
KEY_DIGITS = 16
JOIN, END = b"JOIN", b"END "
ADMITTED = b"+"
HANDSHAKE_SECONDS = 10.0
BACKLOG = 32
UID_MAP = Path("/proc/self/uid_map")

Admit = Callable[[int, int, socket.socket], None]


def is_name(name: str) -> bool:
    """Whether this can be what a client calls its agent: key, "-", token, in hex."""
    return NAME.match(name) is not None


class Door:
    """Listens for one agent. `admit(read_fd, write_fd, connection)` is given each lane that comes
    in, and owns all three; the other process lives until `connection` is closed. `end` is called
    when another agent takes this one's place."""

    def __init__(self, name: str, admit: Admit, end: Callable[[], None]) -> None:
        key, self._token = name[:KEY_DIGITS], name[KEY_DIGITS + 1 :]
        self._admit = admit
        self._end = end
        self._path = _directory(create=True) / f"{key}.sock"
        self._loop = asyncio.get_running_loop()
        self._coming: set[socket.socket] = set()
        _end_former(self._path)
        self._socket = _listen(self._path)
        self._inode = self._path.stat().st_ino
        self._loop.add_reader(self._socket, self._accept)

    def close(self) -> None:
        """Let nobody in any more; nothing is left behind."""
        self._loop.remove_reader(self._socket)
        self._socket.close()
        for connection in list(self._coming):
            self._drop(connection)
        with contextlib.suppress(OSError):
            if self._path.stat().st_ino == self._inode:  # else it is another agent's by now
                self._path.unlink()
                self._path.parent.rmdir()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            connection, _ = self._socket.accept()
            connection.setblocking(False)
            self._coming.add(connection)
            self._loop.add_reader(connection, self._hear, connection)
            self._loop.call_later(HANDSHAKE_SECONDS, self._drop, connection)

    def _hear(self, connection: socket.socket) -> None:
        descriptors: list[int] = []
        try:
            said, descriptors, _, _ = socket.recv_fds(connection, 64, 2)
        except OSError:
            said = b""
        if said == JOIN + self._token.encode() and len(descriptors) == 2:
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


def attach(name: str) -> None:
    """Hand our standard input and output to the agent of this name, and wait until it lets go.
    Raises SourceError when there is none."""
    path = _directory(create=False) / f"{name[:KEY_DIGITS]}.sock"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(HANDSHAKE_SECONDS)
        try:
            connection.connect(os.fspath(path))
            message = JOIN + name[KEY_DIGITS + 1 :].encode()
            socket.send_fds(connection, [message], [0, 1])
            answer = connection.recv(1)
        except OSError:
            answer = b""
        if answer != ADMITTED:
            raise SourceError(
                "no agent waits here for another lane",
                where=os.fspath(path),
                advice="it has ended, or this is not the machine that it runs on",
            )
        connection.settimeout(None)
        _let_go_of_streams()
        with contextlib.suppress(OSError):
            connection.recv(1)


def _let_go_of_streams() -> None:
    """The agent has them; while we had them too, the far end would not see that it closed them."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1):
        os.dup2(nothing, descriptor)
    os.close(nothing)


def _directory(*, create: bool) -> Path:
    path = Path(tempfile.gettempdir()) / f"cas-{_outer_uid()}"
    if create:
        with contextlib.suppress(FileExistsError):
            path.mkdir(mode=0o700)
    with contextlib.suppress(OSError):
        found = path.lstat()
        if stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o77:
            return path
    raise SourceError(
        "there is no private directory for the agent's socket",
        where=os.fspath(path),
        advice="it must be a directory of the agent's user, with mode 0700",
    )


def _outer_uid() -> int:
    """Our user id outside of a user namespace (`podman unshare`), if we are in one."""
    uid = os.getuid()
    with contextlib.suppress(OSError, ValueError):
        for line in UID_MAP.read_text("ascii").splitlines():
            inside, outside, count = map(int, line.split())
            if inside <= uid < inside + count:
                return outside + uid - inside
    return uid


def _end_former(path: Path) -> None:
    """Tell an agent that still listens for the same client to end."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(1.0)
        with contextlib.suppress(OSError):
            connection.connect(os.fspath(path))
            connection.send(END)


def _listen(path: Path) -> socket.socket:
    """A listening socket that appears at `path` whole, in place of whatever was there."""
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    temporary = path.with_suffix(f".{os.getpid()}")
    try:
        temporary.unlink(missing_ok=True)
        listening.bind(os.fspath(temporary))
        listening.listen(BACKLOG)
        listening.setblocking(False)
        temporary.rename(path)
    except OSError as error:
        listening.close()
        raise SourceError(
            f"the agent cannot listen for more lanes: {error.strerror}", where=os.fspath(path)
        ) from error
    return listening
