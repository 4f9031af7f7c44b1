"""Directories below a target, opened without following symlinks.

A path is resolved one component at a time with `openat` and `O_NOFOLLOW`, so that no symlink on the
way, whoever made it and when, leads out of the target. Only the target itself, which the user
named, may be a symlink. Descriptors lately used are kept: entries in path order find theirs here.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections import OrderedDict

from cas._native import sync_file_system
from cas.descriptor import Descriptor
from cas.errors import RestoreError

KEPT = 64
OPEN = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
PRIVATE = 0o700  # of a new directory until it gets its own mode, after all that lies in it
IN_THE_WAY = "something that is no directory is in its way; it was not gone through"


def open_target(path: bytes) -> Descriptor:
    """The directory `path`, the one place where a symlink is followed. Raises OSError."""
    return Descriptor(os.open(path, OPEN))


class FileSystems:
    """Those that a target reaches into, each by a directory on it: others may be mounted below."""

    def __init__(self) -> None:
        self._met: dict[int, Descriptor] = {}

    def meet(self, directory: Descriptor) -> None:
        """Take note of the one that `directory` is on."""
        self._met.setdefault(os.fstat(directory.fd).st_dev, directory)

    def sync(self) -> None:
        """Wait until all that was written to them is on their disks, and nothing else. Raises
        OSError, also if something could not be written."""
        for directory in self._met.values():
            sync_file_system(directory.fd)


class Directories:
    """The directories of one target, for one thread; every thread has its own of these."""

    def __init__(self, root: Descriptor, met: FileSystems | None = None) -> None:
        """`root` is the target (`open_target`); `met` is told of directories that are opened."""
        self.root = root
        self._met = met
        self._open: OrderedDict[bytes, Descriptor] = OrderedDict()
        self._made: dict[tuple[int, int], bytes] = {}

    def open(self, path: bytes, *, create: bool = False) -> Descriptor:
        """The directory at `path` (empty: the target); with `create` it and those above it are made
        where they are missing. Raises OSError, RestoreError if it or one above is no directory."""
        if not path:
            return self.root
        descriptor = self._open.get(path)
        if descriptor is not None:
            self._open.move_to_end(path)
            return descriptor
        at = self._nearest(path)
        descriptor = self._open[at] if at else self.root
        for part in path[len(at) :].lstrip(b"/").split(b"/"):
            descriptor = _step(descriptor, part, create=create)
            at = at + b"/" + part if at else part
            self._keep(at, descriptor)
        return descriptor

    def make(self, path: bytes) -> bool:
        """Make the directory `path`, private to us until it gets its metadata; whether it is new.

        One that is there is opened, and made writable if it is ours and was not. Raises OSError,
        RestoreError also if it is one that was made under another name: on a file system without
        upper and lower case two directories would silently become one.
        """
        parent, _, name = path.rpartition(b"/")
        above = self.open(parent, create=True)
        new = True
        try:
            os.mkdir(name, PRIVATE, dir_fd=above.fd)
        except FileExistsError:
            new = False
        descriptor = _step(above, name, create=False)
        found = os.fstat(descriptor.fd)
        other = self._made.setdefault((found.st_dev, found.st_ino), path)
        if other != path:
            raise RestoreError("on this file system its name is the same as another's")
        if not new and found.st_uid == os.geteuid() and found.st_mode & PRIVATE != PRIVATE:
            os.fchmod(descriptor.fd, stat.S_IMODE(found.st_mode) | PRIVATE)
        self._keep(path, descriptor)
        return new

    def _nearest(self, path: bytes) -> bytes:
        """The longest path above `path` that is open."""
        while path:
            path = path.rpartition(b"/")[0]
            if path in self._open:
                return path
        return b""

    def _keep(self, path: bytes, descriptor: Descriptor) -> None:
        self._open[path] = descriptor
        if self._met is not None:
            self._met.meet(descriptor)
        if len(self._open) > KEPT:
            self._open.popitem(last=False)


def _step(above: Descriptor, name: bytes, *, create: bool) -> Descriptor:
    try:
        return Descriptor(os.open(name, OPEN | os.O_NOFOLLOW, dir_fd=above.fd))
    except NotADirectoryError:
        raise RestoreError(IN_THE_WAY) from None
    except FileNotFoundError:
        if not create:
            raise
    with contextlib.suppress(FileExistsError):  # made meanwhile, or a symlink: opening tells
        os.mkdir(name, dir_fd=above.fd)
    return _step(above, name, create=False)
