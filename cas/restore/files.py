"""A file that has no name until it is whole.

On Linux a file can be made without any name (`O_TMPFILE`) and linked into place when it is done:
the link fails if the name is taken, and a kill leaves nothing behind. Where the file system cannot
(NFS, FAT), or an old file is to be replaced, the file is written under a temporary name beside its
place, and then linked there (again refusing what exists) or renamed over the old one. Where there
are no hardlinks either, looking for the name and renaming is the best there is; a file that someone
makes between the two is then lost.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets

from cas.store.durable import NEW_FILE, TEMPORARY_PREFIX

CAN_LINK_UNNAMED = os.path.isdir("/proc/self/fd")
NO_UNNAMED = (errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL, errno.ENOSYS)
NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EXDEV)
UNNAMED_FILE = os.O_RDWR | os.O_TMPFILE | os.O_CLOEXEC
PRIVATE = 0o600


def temporary_name() -> bytes:
    """A name that nothing has."""
    return TEMPORARY_PREFIX + secrets.token_hex(8).encode()


def descriptor_path(fd: int) -> bytes:
    """A path that names what `fd` is open on, and nothing else (proc(5))."""
    return b"/proc/self/fd/%d" % fd


class NewFile:
    """An empty file in the directory `directory_fd`, open as `fd`. `place` it or not,
    then `close` it: what was not placed is gone."""

    __slots__ = ("_directory_fd", "_temporary", "fd")

    def __init__(self, directory_fd: int, *, replace: bool) -> None:
        """Raises OSError. `replace` says that `place` will be called so."""
        self._directory_fd = directory_fd
        self._temporary = b""
        if CAN_LINK_UNNAMED and not replace:
            try:
                self.fd = os.open(b".", UNNAMED_FILE, PRIVATE, dir_fd=directory_fd)
                return
            except OSError as error:
                if error.errno not in NO_UNNAMED:
                    raise
        self._temporary = temporary_name()
        self.fd = os.open(self._temporary, NEW_FILE, PRIVATE, dir_fd=directory_fd)

    def place(self, name: bytes, *, replace: bool) -> None:
        """Give it its name. Raises FileExistsError, unless it may `replace` a file; OSError."""
        there = self._directory_fd
        if not self._temporary:
            os.link(descriptor_path(self.fd), name, dst_dir_fd=there, follow_symlinks=True)
        elif replace:
            self._rename(name)
        else:
            try:
                os.link(self._temporary, name, src_dir_fd=there, dst_dir_fd=there,
                        follow_symlinks=False)  # fmt: skip
            except OSError as error:
                if error.errno not in NO_LINKS:
                    raise
                if exists(there, name):
                    raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST)) from error
                self._rename(name)

    def close(self) -> None:
        """Release the file, and remove its temporary name if it still has one."""
        os.close(self.fd)
        if self._temporary:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._temporary, dir_fd=self._directory_fd)

    def _rename(self, name: bytes) -> None:
        there = self._directory_fd
        os.rename(self._temporary, name, src_dir_fd=there, dst_dir_fd=there)
        self._temporary = b""


def exists(directory_fd: int, name: bytes) -> bool:
    """Whether the directory has `name`, be it a dangling symlink."""
    return status(directory_fd, name) is not None


def status(directory_fd: int, name: bytes) -> os.stat_result | None:
    """`lstat` of `name` in the directory, None where there is none."""
    try:
        return os.stat(name, dir_fd=directory_fd, follow_symlinks=False)
    except FileNotFoundError:
        return None
