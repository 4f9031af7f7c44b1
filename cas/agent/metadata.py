"""What an entry says besides its content: owner, time, extended attributes; and its identity."""

from __future__ import annotations

import errno
import grp
import os
import pwd
import stat
import struct
import sys
from collections.abc import Callable
from functools import lru_cache
from typing import TypeAlias

from cas._native import Status
from cas.agent.reasons import REFUSED
from cas.agent.roots import Opener
from cas.entry import TYPES, Owner
from cas.errors import LimitError
from cas.page import OWNER_LIMIT, XATTRS_LIMIT
from cas.wire import I64_MAX, I64_MIN

Xattrs: TypeAlias = tuple[tuple[bytes, bytes], ...]

KINDS = {bits: kind for kind, bits in TYPES.items()}

_NONE_HERE = (errno.ENOTSUP, errno.ENODATA, errno.ENOSYS, *REFUSED)
_DESCRIPTORS = b"/proc/self/fd" if os.path.isdir("/proc/self/fd") else b""

_LINK = struct.Struct("<QQ").pack


def owner_of(status: Status) -> Owner:
    """Mode and ownership, with names where this machine knows them."""
    return _owner(stat.S_IMODE(status.st_mode), status.st_uid, status.st_gid)


@lru_cache(maxsize=4096)
def _owner(mode: int, uid: int, gid: int) -> Owner:
    return Owner(mode, uid, gid, _user_name(uid), _group_name(gid))


@lru_cache(maxsize=4096)
def _user_name(uid: int) -> bytes:
    return _name(lambda: pwd.getpwuid(uid).pw_name)


@lru_cache(maxsize=4096)
def _group_name(gid: int) -> bytes:
    return _name(lambda: grp.getgrgid(gid).gr_name)


def _name(lookup: Callable[[], str]) -> bytes:
    try:
        name = os.fsencode(lookup())
    except (KeyError, OSError):
        return b""
    return name if len(name) <= OWNER_LIMIT else b""


def time_of(status: Status) -> int:
    """The time of modification in ns, as near as a page can hold it (1677 to 2262)."""
    return min(max(status.st_mtime_ns, I64_MIN), I64_MAX)


def is_linked(status: Status) -> bool:
    """Whether it may have another name."""
    return status.st_nlink > 1 and not stat.S_ISDIR(status.st_mode)


def link_id(status: Status) -> bytes:
    """What all names of one inode have in common."""
    return _LINK(status.st_dev, status.st_ino)


def xattrs_of(opener: Opener, path: bytes) -> Xattrs:
    """The extended attributes of `path` itself, whatever it is, without opening it. Raises
    OSError, LimitError."""
    if not _DESCRIPTORS:
        return read_xattrs(b"/" + path)
    fd, name = opener.locate(path)
    return read_xattrs(b"%b/%d/%b" % (_DESCRIPTORS, fd, name))


def read_xattrs(target: int | bytes) -> Xattrs:
    """All extended attributes that may be read (ACLs, capabilities and overlay marks are among
    them), sorted by name; of a descriptor or a path that is not followed. Raises OSError, and
    LimitError when they are larger than a page takes."""
    if sys.platform != "linux":
        return ()
    follow = isinstance(target, int)
    try:
        names = os.listxattr(target, follow_symlinks=follow)
    except OSError as error:
        if error.errno in _NONE_HERE:
            return ()
        raise
    if not names:
        return ()
    pairs = ((name, _value(target, name)) for name in sorted(map(os.fsencode, names)))
    found = tuple((name, value) for name, value in pairs if value is not None)
    if sum(len(name) + len(value) for name, value in found) > XATTRS_LIMIT:
        raise LimitError(f"more than {XATTRS_LIMIT} bytes of extended attributes")
    return found


def _value(target: int | bytes, name: bytes) -> bytes | None:
    """The value of an extended attribute, None when it is gone or not for us."""
    try:
        return os.getxattr(target, name, follow_symlinks=isinstance(target, int))
    except OSError as error:
        if error.errno in _NONE_HERE:
            return None
        raise
