"""The one way a file is committed: temporary name, write, fsync, rename, fsync the directory.

Whoever sees the final name sees all of the file, after a kill or a power loss too. The order is
that of restic's `local` backend; the last step is the one that is easily forgotten (a rename lives
in the directory, and is durable only with it).
"""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Callable
from typing import BinaryIO

TEMPORARY_PREFIX = b".cas-"  # what is left of a killed run begins with this, and may be deleted
NEW_FILE = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC

StrPath = str | bytes | os.PathLike[str] | os.PathLike[bytes]


class PendingFile:
    """A file under a temporary name beside its place to be: write to `file`, then `commit` or
    `discard`. Several can be written before the first is committed."""

    def __init__(self, directory: StrPath, *, mode: int = 0o666) -> None:
        self._directory = os.fsencode(directory)
        name = TEMPORARY_PREFIX + secrets.token_hex(8).encode()
        self._path = os.path.join(self._directory, name)
        self.file: BinaryIO = os.fdopen(os.open(self._path, NEW_FILE, mode), "w+b")

    def finish(self) -> None:
        """Flush, fsync and close; nothing can be written after it. Calling it again is harmless."""
        if not self.file.closed:
            self.file.flush()
            os.fsync(self.file.fileno())
            self.file.close()

    def commit(self, name: bytes) -> None:
        """Take the final `name`, replacing what had it. Durable once the directory is synced."""
        self.finish()
        os.rename(self._path, os.path.join(self._directory, name))

    def discard(self) -> None:
        """Remove what was written; harmless after `commit`."""
        with contextlib.suppress(OSError):  # what could not be flushed is not wanted
            self.file.close()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._path)


def commit_file(path: StrPath, writer: Callable[[BinaryIO], object], *, mode: int = 0o666) -> None:
    """Write `path` by `writer`, replacing an old one; durable on return. After any exception the
    old one is untouched. `mode` is subject to the umask."""
    directory, name = os.path.split(os.path.abspath(os.fsencode(path)))
    pending = PendingFile(directory, mode=mode)
    try:
        writer(pending.file)
        pending.commit(name)
    finally:
        pending.discard()
    sync_directory(directory)


def commit_bytes(path: StrPath, data: bytes, *, mode: int = 0o666) -> None:
    """`commit_file` of `data`."""
    commit_file(path, lambda file: file.write(data), mode=mode)


def sync_directory(path: StrPath) -> None:
    """Make the names in the directory `path` durable."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
