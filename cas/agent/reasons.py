"""Why something could not be read, in words, and what would help."""

from __future__ import annotations

import errno
import os

from cas.entry import Problem

REFUSED = (errno.EACCES, errno.EPERM)
_GONE = (errno.ENOENT, errno.ESTALE)
# Rootless stores: ~/.local/share/containers/storage/{overlay,vfs}/..., wherever they are put.
_CONTAINER_STORE = b"/containers/storage/"
_UNSHARE = "run the agent under `podman unshare`"
_RIGHTS = "run the agent as a user who may read it"


def unreadable(path: bytes, error: OSError, owner_uid: int | None = None) -> Problem:
    """The problem that `path`, which belongs to `owner_uid` where known, could not be read."""
    if error.errno in _GONE:
        return Problem(path, "was gone when its turn came", left_out=False)
    reason = os.strerror(error.errno) if error.errno else str(error)
    return Problem(path, f"cannot be read: {reason}", _hint(path, error, owner_uid))


def _hint(path: bytes, error: OSError, owner_uid: int | None) -> str:
    if error.errno not in REFUSED:
        return ""
    # A rootless store's files belong to subordinate ids, which only its owner's user namespace
    # may read; outside it they look like any other user's.
    if _CONTAINER_STORE in b"/" + path + b"/" and owner_uid != os.geteuid():
        return _UNSHARE
    return _RIGHTS
