"""Where the agent may look: every open goes through here, from a root downwards.

A *root* is a path that a tier names. What a root is reached through, and the root itself, may be
symbolic links: the user named what lies there, so they are followed, and the entries stand under
the path as it was named (as rsync does with implied directories). Below a root nothing is
followed. So each path has two halves: the longest named one above it, resolved once when it was
admitted, and the rest, opened name by name with O_NOFOLLOW from an open directory. That also
copes with paths longer than PATH_MAX, and with a directory that is swapped for a link meanwhile.

An agent that is limited to some directories (`cas serve --root`) holds those open from the start.
A resolved root must lie within one of them and is opened from it downwards without following
anything, so that a link made later leads nowhere.

Paths here are entry paths: absolute, without the leading slash; b"" is the file system's root.
"""

from __future__ import annotations

import errno
import os
import stat
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import TypeAlias, TypeVar

from cas._native import Scout, Status, look, look_at_open, look_into
from cas.errors import SourceError

_PLACE_ONLY: int = getattr(os, "O_PATH", os.O_RDONLY)  # Linux: needs no right to read
_DIRECTORY = os.O_DIRECTORY | os.O_NOFOLLOW | _PLACE_ONLY
_LISTED = os.O_NOFOLLOW
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY
_NO_ATIME: int = getattr(os, "O_NOATIME", 0)
_SEARCHED_BY_ALL = stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH
_OPEN_DIRECTORIES = 64  # of one opener; deeper trees cost reopening, not descriptors

Found: TypeAlias = tuple[bytes, "Status | int | None"]  # a path; what it is, or an errno
Opened = TypeVar("Opened")


@dataclass(frozen=True, slots=True)
class Root:
    """An admitted root, and the directories above it that may be listed, outermost first."""

    path: bytes
    ancestors: tuple[bytes, ...]


class RootGuard:
    """Admits roots; safe to use from several threads. `allowed` are absolute directories, None
    allows everything. Raises SourceError for one that cannot be opened."""

    def __init__(self, allowed: Sequence[bytes] | None = None) -> None:
        self._allowed: dict[bytes, int] = {}
        self._places: dict[bytes, bytes] = {}
        for directory in (b"/",) if allowed is None else allowed:
            real = _resolved(entry_path(directory))
            try:
                self._allowed[real] = os.open(b"/" + real, _DIRECTORY)
            except OSError as error:
                raise _refusal(directory, error) from error

    def admit(self, root: bytes) -> Root:
        """Let a tier's root be read. Raises SourceError when it is not there or not allowed."""
        path = entry_path(root)
        self._admit(path)
        ancestors = []
        parts = path.split(b"/")
        for count in range(1, len(parts)):
            above = b"/".join(parts[:count])
            try:
                self._admit(above)
            except SourceError:
                continue  # outside what is allowed: the list begins further down
            ancestors.append(above)
        return Root(path, tuple(ancestors))

    def _admit(self, path: bytes) -> None:
        real = _resolved(path)
        if self._above(real) is None:
            raise SourceError(
                "outside the directories that the agent may read",
                where=_shown(path),
                advice="start the agent with --root for it",
            )
        self._places[path] = real

    def place(self, path: bytes) -> bytes | None:
        """The resolved path behind an admitted one, None for any other."""
        return self._places.get(path)

    def _above(self, real: bytes) -> bytes | None:
        """The allowed directory that the resolved path `real` is, or lies in."""
        while real not in self._allowed:
            if not real:
                return None
            real = real.rpartition(b"/")[0]
        return real

    def open_real(self, real: bytes) -> int:
        """A descriptor of the directory at a resolved path; the caller closes it. Raises OSError,
        also when a link has come into the path since."""
        allowed = self._above(real)
        if allowed is None:
            raise PermissionError(_shown(real))
        fd = os.open(b".", _DIRECTORY, dir_fd=self._allowed[allowed])
        below = real[len(allowed) :].lstrip(b"/")
        for name in below.split(b"/") if below else ():
            try:
                inner = os.open(name, _DIRECTORY, dir_fd=fd)
            finally:
                os.close(fd)
            fd = inner
        return fd

    def opener(self) -> Opener:
        """What opens files below the admitted roots, for one thread."""
        return Opener(self)

    def close(self) -> None:
        """Close the allowed directories."""
        while self._allowed:
            os.close(self._allowed.popitem()[1])


class Opener:
    """Opens what lies below admitted roots, for one thread; keeps the last directories open."""

    def __init__(self, guard: RootGuard) -> None:
        self._guard = guard
        self._open: OrderedDict[bytes, int] = OrderedDict()

    def directory(self, path: bytes) -> int:
        """A descriptor of the directory `path`, good until the next call, that names can be
        looked up in but not more. Raises OSError."""
        fd = self._open.get(path)
        if fd is not None:
            self._open.move_to_end(path)
            return fd
        fd, at, names = self._nearest(path)
        for name in names:
            at = at + b"/" + name if at else name
            fd = self._keep(at, os.open(name, _DIRECTORY, dir_fd=fd))
        return fd

    def _nearest(self, path: bytes) -> tuple[int, bytes, list[bytes]]:
        """The nearest directory at or above `path` that is open or admitted, and what follows."""
        names: list[bytes] = []
        while True:
            fd = self._open.get(path)
            if fd is None:
                real = self._guard.place(path)
                if real is not None:
                    fd = self._keep(path, self._guard.open_real(real))
            if fd is not None:
                return fd, path, names[::-1]
            if not path:
                raise PermissionError("not below an admitted root")
            path, _, name = path.rpartition(b"/")
            names.append(name)

    def _keep(self, path: bytes, fd: int) -> int:
        self._open[path] = fd
        if len(self._open) > _OPEN_DIRECTORIES:
            os.close(self._open.popitem(last=False)[1])
        return fd

    def locate(self, path: bytes) -> tuple[int, bytes]:
        """A directory's descriptor and a name in it that `path` is, never to be followed; both
        good until the next call. Raises OSError."""
        real = self._guard.place(path)
        if real is None:
            parent, _, name = path.rpartition(b"/")
            return self.directory(parent), name
        try:
            return self.directory(path), b"."
        except NotADirectoryError:
            parent, _, name = real.rpartition(b"/")
        key = b"/" + parent  # no entry path begins with a slash
        fd = self._open.get(key)
        return (self._keep(key, self._guard.open_real(parent)) if fd is None else fd), name

    def look(self, path: bytes) -> Status:
        """What `path` itself is. Raises OSError."""
        return look(*self.locate(path))

    def look_into(
        self, path: bytes, status: Status, most: int, prefix: bytes
    ) -> tuple[list[Found], list[int]]:
        """See `_native.look_into`, of the directory `path`. Raises OSError, also when none of its
        names may be looked at."""
        if path in self._open or self._guard.place(path) is not None:
            place, name = self.directory(path), b"."
        else:
            above, _, name = path.rpartition(b"/")
            place = self.directory(above)
        found, stops = _quietly(
            _LISTED, status, lambda flags: look_into(place, name, flags, most, prefix)
        )
        check_searched(found, stops, status)
        return found, stops

    def scout(self, path: bytes, most: int) -> Scout | None:
        """Who lists the directory `path` and those below it ahead of `look_into`, if it can be."""
        try:
            return Scout(self.directory(path), path, _LISTED, _NO_ATIME, os.geteuid(), most)
        except OSError:
            return None

    def forget(self, path: bytes) -> None:
        """Close the directory `path`, if it is open: it is not needed any more."""
        fd = self._open.pop(path, None)
        if fd is not None:
            os.close(fd)

    def regular_file(self, path: bytes) -> tuple[int, Status]:
        """The regular file `path`, opened to be read, and its status; the caller closes it.

        Looks before it opens, since opening a FIFO or a device may already do something. Raises
        OSError; FileNotFoundError also when it is there but no regular file."""
        fd, name = self.locate(path)
        _check_regular(status := look(fd, name))
        opened = _quietly(_FILE, status, lambda flags: os.open(name, flags, dir_fd=fd))
        try:
            _check_regular(status := look_at_open(opened))
        except BaseException:
            os.close(opened)
            raise
        return opened, status

    def close(self) -> None:
        """Close all directories."""
        while self._open:
            os.close(self._open.popitem()[1])

    def __enter__(self) -> Opener:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def entry_path(path: bytes) -> bytes:
    """The entry path of the absolute `path`; raises SourceError when it is not absolute, or goes
    up (what `..` means depends on links)."""
    parts = [part for part in path.split(b"/") if part not in (b"", b".")]
    if not path.startswith(b"/") or b".." in parts or b"\0" in path:
        raise SourceError("not an absolute path", where=_shown(path))
    return b"/".join(parts)


def _resolved(path: bytes) -> bytes:
    try:
        return os.path.realpath(b"/" + path, strict=True).lstrip(b"/")
    except OSError as error:
        raise _refusal(path, error) from error


def _refusal(path: bytes, error: OSError) -> SourceError:
    reason = os.strerror(error.errno) if error.errno else str(error)
    return SourceError(f"cannot be reached: {reason}", where=_shown(path))


def _shown(path: bytes) -> str:
    return path.decode("utf-8", "backslashreplace")


def _quietly(flags: int, status: Status, open_: Callable[[int], Opened]) -> Opened:
    """Open without leaving a trace in the access time, which only the owner (or root) may do."""
    if _NO_ATIME and os.geteuid() in (0, status.st_uid):
        try:
            return open_(flags | _NO_ATIME)
        except PermissionError:
            pass  # root of a user namespace that has no say over this owner
    return open_(flags)


def _check_regular(status: Status) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise FileNotFoundError(errno.ENOENT, "no regular file any more")


def check_searched(found: list[Found], stops: list[int], status: Status) -> None:
    """Raise if every name of the directory with this status is refused: then it is the directory
    that may not be searched."""
    if not stops or status.st_mode & _SEARCHED_BY_ALL == _SEARCHED_BY_ALL:
        return
    if all(what == errno.EACCES for _, what in found):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
