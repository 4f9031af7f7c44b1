"""An SFTP server that says what a test wants it to say, in bytes of the protocol.

It has one directory /top with some files. `answers` maps a request's type to what makes the reply
of the request; what it does not have is answered honestly.
"""

from __future__ import annotations

import asyncio
import struct
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import asyncssh

VERSION, STATUS, HANDLE, DATA, NAME, ATTRS = 2, 101, 102, 103, 104, 105
OPEN, CLOSE, READ, LSTAT, FSTAT, OPENDIR, READDIR = 3, 4, 5, 7, 8, 11, 12
REALPATH, STAT, READLINK = 16, 17, 19
EOF, NO_SUCH_FILE = 1, 2
DIRECTORY, FILE = 0o040755, 0o100644

LIMIT_SECONDS = 120.0  # for a start and an end that take a moment

Answer = Callable[[bytes], bytes]


def text(data: bytes) -> bytes:
    """A string as the protocol has it."""
    return struct.pack(">I", len(data)) + data


def attributes(mode: int, size: int = 0, mtime: int = 1000) -> bytes:
    """ATTRS of a name."""
    return struct.pack(">IQIIIII", 0xD, size, mode, mtime, mtime, 0, 0)[:24]


def name(called: bytes, what: bytes) -> bytes:
    """One name of a NAME reply."""
    return text(called) + text(b"") + what


def names(*listed: bytes) -> bytes:
    """A NAME reply without its number."""
    return struct.pack(">I", len(listed)) + b"".join(listed)


def status(code: int) -> bytes:
    """A STATUS reply without its number."""
    return struct.pack(">I", code) + text(b"") + text(b"")


@dataclass
class Strange:
    """The server's files and its strangeness. An answer is the reply's type and body, the request's
    number left out; the whole reply where that is longer than any packet may be."""

    files: dict[bytes, bytes] = field(default_factory=lambda: {b"a": b"x" * 1000})
    answers: Mapping[int, Answer] = field(default_factory=dict)
    hello: bytes = struct.pack(">BI", VERSION, 3)
    silent: bool = False
    requests: list[int] = field(default_factory=list)

    def reply(self, packet: bytes, listed: set[bytes]) -> bytes:
        """The packet that answers one."""
        kind, number, rest = packet[0], packet[1:5], packet[5:]
        self.requests.append(kind)
        answer = self.answers.get(kind)
        said = answer(rest) if answer is not None else self._honest(kind, rest, listed)
        return said[:1] + number + said[1:]

    def _honest(self, kind: int, rest: bytes, listed: set[bytes]) -> bytes:
        size = struct.unpack(">I", rest[:4])[0]
        path, more = rest[4 : 4 + size], rest[4 + size :]
        if kind == REALPATH:
            return bytes([NAME]) + names(name(path, attributes(DIRECTORY)))
        if kind in (LSTAT, STAT, FSTAT):
            return self._attributes(path)
        if kind in (OPEN, OPENDIR):
            return bytes([HANDLE]) + text(path)
        if kind == READ:
            offset, count = struct.unpack(">QI", more[:12])
            data = self._data(path)[offset : offset + count]
            return bytes([DATA]) + text(data) if data else bytes([STATUS]) + status(EOF)
        if kind == READDIR and path not in listed:
            listed.add(path)
            return bytes([NAME]) + names(
                *(name(n, attributes(FILE, len(data))) for n, data in self.files.items())
            )
        return bytes([STATUS]) + status(EOF if kind == READDIR else 0)

    def _attributes(self, path: bytes) -> bytes:
        if path in (b"/", b"/top"):
            return bytes([ATTRS]) + attributes(DIRECTORY)
        if path.rpartition(b"/")[2] in self.files:
            return bytes([ATTRS]) + attributes(FILE, len(self._data(path)))
        return bytes([STATUS]) + status(NO_SUCH_FILE)

    def _data(self, path: bytes) -> bytes:
        return self.files[path.rpartition(b"/")[2]]


class _Session(asyncssh.SSHServerSession[bytes]):
    """One session, fed by asyncssh."""

    def __init__(self, strange: Strange) -> None:
        self._strange = strange
        self._came = bytearray()
        self._listed: set[bytes] = set()
        self._greeted = False

    def connection_made(self, chan: asyncssh.SSHServerChannel[bytes]) -> None:
        self._channel = chan

    def subsystem_requested(self, subsystem: str) -> bool:
        return subsystem == "sftp"

    def data_received(self, data: bytes, _: object) -> None:
        self._came += data
        while len(self._came) >= 4 and len(self._came) >= 4 + (size := self._size()):
            packet = bytes(self._came[4 : 4 + size])
            del self._came[: 4 + size]
            if self._greeted:
                self._channel.write(text(self._strange.reply(packet, self._listed)))
            elif not self._strange.silent:
                self._channel.write(text(self._strange.hello))
            self._greeted = True

    def _size(self) -> int:
        return int.from_bytes(self._came[:4], "big")


class _Server(asyncssh.SSHServer):
    """Gives each session to a `Strange`."""

    def __init__(self, strange: Strange) -> None:
        self._strange = strange

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        self._connection = conn

    def session_requested(self) -> Any:
        return self._connection.create_server_channel(encoding=None), _Session(self._strange)


@contextmanager
def strange_server(strange: Strange, directory: Path) -> Iterator[Path]:
    """Serves on this machine; the ssh config that leads there, under the name `far`."""
    directory.mkdir(exist_ok=True)
    keys = {who: asyncssh.generate_private_key("ssh-ed25519") for who in ("host", "user")}
    keys["user"].write_private_key(directory / "user_key")
    (directory / "user_key").chmod(0o600)
    keys["user"].write_public_key(directory / "authorized")
    options: dict[str, Any] = {
        "server_host_keys": [keys["host"]],
        "authorized_client_keys": str(directory / "authorized"),
        "server_factory": lambda: _Server(strange),
    }
    ready: Future[tuple[int, Callable[[], None]]] = Future()
    thread = threading.Thread(target=lambda: asyncio.run(_serve(options, ready)))
    thread.start()
    port, stop = ready.result(LIMIT_SECONDS)
    public = keys["host"].export_public_key().decode()
    (directory / "known_hosts").write_text(f"[127.0.0.1]:{port} {public}")
    config = directory / "config"
    config.write_text(
        f"Host far\n HostName 127.0.0.1\n Port {port}\n User someone\n"
        f" IdentityFile {directory}/user_key\n IdentitiesOnly yes\n"
        f" UserKnownHostsFile {directory}/known_hosts\n GlobalKnownHostsFile /dev/null\n"
    )
    try:
        yield config
    finally:
        stop()
        thread.join(LIMIT_SECONDS)


async def _serve(options: dict[str, Any], ready: Future[tuple[int, Callable[[], None]]]) -> None:
    """Serve until what `ready` is told is called, from any thread."""
    loop, over = asyncio.get_running_loop(), asyncio.Event()
    server = await asyncssh.listen("127.0.0.1", 0, **options)

    def stop() -> None:
        loop.call_soon_threadsafe(over.set)

    ready.set_result((server.get_port(), stop))
    await over.wait()
    server.close()
    await server.wait_closed()
