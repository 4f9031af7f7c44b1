"""Ownership, mode, extended attributes and times, put back in the order in which they last.

chown clears the setuid bits and file capabilities, so it comes first. Attributes of the user
namespace need write permission that the mode may take away, so they come before chmod; access
control lists after it, since chmod rewrites their mask. The time is last.
"""

from __future__ import annotations

import errno
import functools
import grp
import os
import pwd
import stat
from typing import Any

from cas.entry import IMPLIED, Entry, Kind, Owner
from cas.restore.files import descriptor_path
from cas.restore.report import Tally

ACL = b"system.posix_acl_"
# Mode, ids of user and group, time in ns: what is set of a file or directory without attributes, as
# the native calls take it; None is left as it is.
Plain = tuple[int, tuple[int, int] | None, int | None]

SET_ID = stat.S_ISUID | stat.S_ISGID
NOT_GIVEN = "belongs to you now: only root can give files away"
COMMON = (errno.EOPNOTSUPP, errno.EPERM)  # would be so of very many files


class Metadata:
    """Puts metadata on what was made. Only root gives files away; for anybody else ownership that
    differs from their own is left out, the setuid and setgid bits of files with it, and that is
    noted. Attributes that cannot be set are listed; nothing here fails a file."""

    def __init__(self, tally: Tally, *, by_name: bool) -> None:
        self._tally = tally
        self._by_name = by_name
        self._uid, self._gid = os.geteuid(), os.getegid()

    def put(self, where: int | bytes, entry: Entry) -> None:
        """Put `entry`'s metadata on `where`: a descriptor, or a path that no symlink can turn
        elsewhere (`descriptor_path`). Raises OSError."""
        mode = self._mode(entry, given=self._chown(where, entry))
        lists = []
        for name, value in entry.xattrs:
            if name.startswith(ACL):
                lists.append((name, value))
            else:
                self._attribute(where, entry.path, name, value)
        os.chmod(where, mode)
        for name, value in lists:
            self._attribute(where, entry.path, name, value)
        if not entry.flags & IMPLIED:
            os.utime(where, ns=(entry.mtime_ns, entry.mtime_ns))

    def plain(self, entry: Entry) -> Plain:
        """What `put` would set, but for attributes. Once it is set, `tell` says what was not."""
        given = self._can_give(entry.owner)
        ids = self._ids(entry.owner) if self._uid == 0 else None
        time = None if entry.flags & IMPLIED else entry.mtime_ns
        return self._mode(entry, given=given), ids, time

    def tell(self, entry: Entry) -> None:
        """Note it if `plain` was not all that `entry` wants."""
        if not self._can_give(entry.owner):
            self._tally.note(entry.path, NOT_GIVEN)

    def put_symlink(self, directory_fd: int, name: bytes, entry: Entry) -> None:
        """Put `entry`'s metadata on the symlink `name` itself; it has no mode. Raises OSError."""
        self._chown(name, entry, dir_fd=directory_fd, follow_symlinks=False)
        path = descriptor_path(directory_fd) + b"/" + name
        for attribute, value in entry.xattrs:
            self._attribute(path, entry.path, attribute, value, follow_symlinks=False)
        times = (entry.mtime_ns, entry.mtime_ns)
        os.utime(name, ns=times, dir_fd=directory_fd, follow_symlinks=False)

    def _chown(self, where: int | bytes, entry: Entry, **how: Any) -> bool:
        """Whether the owner is the entry's now."""
        owner = entry.owner
        if self._uid != 0:
            self.tell(entry)
            return self._can_give(owner)
        try:
            os.chown(where, *self._ids(owner), **how)
        except OSError as error:  # in a user namespace root has only some of the ids
            self._tally.note(entry.path, f"its owner could not be set: {error.strerror}")
            return False
        return True

    def _can_give(self, owner: Owner) -> bool:
        return self._uid == 0 or (owner.uid, owner.gid) == (self._uid, self._gid)

    def _mode(self, entry: Entry, *, given: bool) -> int:
        """Without setuid and setgid where the file is not its owner's: it would run as another."""
        if given or entry.kind is Kind.DIRECTORY:
            return entry.owner.mode
        return entry.owner.mode & ~SET_ID

    def _ids(self, owner: Owner) -> tuple[int, int]:
        if not self._by_name:
            return owner.uid, owner.gid
        return _uid(owner.user, owner.uid), _gid(owner.group, owner.gid)

    def _attribute(
        self, where: int | bytes, path: bytes, name: bytes, value: bytes, **how: bool
    ) -> None:
        try:
            os.setxattr(where, name, value, **how)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            text = f"its attribute {os.fsdecode(name)} could not be set: {reason}"
            if getattr(error, "errno", None) in COMMON:
                self._tally.note(path, text)
            else:
                self._tally.doubt(path, text)


@functools.lru_cache(maxsize=1024)
def _uid(name: bytes, number: int) -> int:
    try:
        return pwd.getpwnam(os.fsdecode(name)).pw_uid if name else number
    except (KeyError, ValueError):
        return number


@functools.lru_cache(maxsize=1024)
def _gid(name: bytes, number: int) -> int:
    try:
        return grp.getgrnam(os.fsdecode(name)).gr_gid if name else number
    except (KeyError, ValueError):
        return number
