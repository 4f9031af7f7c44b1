"""How a further lane gets to a running agent: by a socket in a directory only its user may enter.

`cas serve --attach KEY-TOKEN`, started by another login of the same client, connects to the socket
and hands its standard input and output over (SCM_RIGHTS, unix(7)); from then on the agent itself
reads and writes them, and this process only waits until the agent lets go. Nothing is copied.

The key names the client and source, the token this run of it. The directory is where the system has
temporary files: $XDG_RUNTIME_DIR goes when the login that it was made for ends. Little is imported
here, since every lane starts with it.
"""

from __future__ import annotations

import contextlib
import os
import re
import socket
import stat
import tempfile
from pathlib import Path

from cas.errors import SourceError

NAME = re.compile(r"[0-9a-f]{16}-[0-9a-f]{32}\Z")
KEY_DIGITS = 16
JOIN, END = b"JOIN", b"END "
ADMITTED = b"+"
HANDSHAKE_SECONDS = 10.0
NO_AGENT = "no agent waits here for another lane"
UID_MAP = Path("/proc/self/uid_map")


def is_name(name: str) -> bool:
    """Whether this can be what a client calls its agent: key, "-", token, in hex."""
    return NAME.match(name) is not None


def socket_path(name: str, *, create: bool = False) -> Path:
    """Where the agent of this name listens; raises SourceError when no such place is private."""
    return _directory(create=create) / f"{name[:KEY_DIGITS]}.sock"


def joining(name: str) -> bytes:
    """What a lane of the agent of this name says first."""
    return JOIN + name[KEY_DIGITS + 1 :].encode("ascii")


def attach(name: str) -> None:
    """Hand our standard input and output to the agent of this name, and wait until it lets go.
    Raises SourceError when there is none."""
    try:
        path = socket_path(name)
    except SourceError as error:  # the directory goes with the last agent
        raise SourceError(NO_AGENT, where=error.where, advice=error.what) from error
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(HANDSHAKE_SECONDS)
        try:
            connection.connect(os.fspath(path))
            socket.send_fds(connection, [joining(name)], [0, 1])
            answer = connection.recv(1)
        except OSError:
            answer = b""
        if answer != ADMITTED:
            raise SourceError(
                NO_AGENT,
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
        with contextlib.suppress(OSError):  # what is there, if anything is, is looked at now
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
