"""The two files of an LMDB environment, made safe before LMDB maps them into memory.

A page of a map that has no block on the disk is a SIGBUS when it is touched. Nothing here opens
the lock file of an environment that is open in this process: closing it again would drop LMDB's
locks (fcntl(2), "Record locks").
"""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from pathlib import Path

from cas.errors import StoreError

DATA = "data.mdb"
LOCK = "lock.mdb"
SUFFERED = {errno.EACCES, errno.EPERM, errno.EROFS, errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS}
LOCK_SIZE = 16384  # more than `env.READERS` places of 64 bytes; LMDB uses what there is

Claim = tuple[int, int, int]  # process, device, inode

_claimed: set[Claim] = set()


def is_there(path: Path) -> bool:
    """Whether an environment in `path` has ever been written to."""
    with suppress(OSError):
        return (path / DATA).stat().st_size > 0
    return False


def claim(path: Path) -> Claim:
    """The right of this process to open `path`, until `release`; raises StoreError when taken."""
    found = path.stat()
    wanted = (os.getpid(), found.st_dev, found.st_ino)
    if wanted in _claimed:
        raise StoreError("the index is open in this process already", where=str(path))
    _claimed.add(wanted)
    return wanted


def release(claimed: Claim) -> None:
    """Give a claim back."""
    _claimed.discard(claimed)


def reserve_lock(path: Path) -> None:
    """Give a lock file that is yet to be made its blocks; raises OSError on a full disk."""
    lock = path / LOCK
    with suppress(FileNotFoundError):
        if lock.stat().st_size:
            return
    _allocate(lock, 0, LOCK_SIZE)


def extend(data: Path, size: int) -> None:
    """Make `data` at least `size` bytes long, with zeros; never shorter, whoever writes to it."""
    _allocate(data, size - 1, 1)


def _allocate(path: Path, offset: int, size: int) -> None:
    """Give a file blocks, where it can be written and its file system does such a thing."""
    try:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.posix_fallocate(fd, offset, size)
        finally:
            os.close(fd)
    except OSError as error:
        if error.errno not in SUFFERED:
            raise


def sync_directory(path: Path) -> None:
    """Make the names in a directory durable."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
