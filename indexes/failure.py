"""What the user is told when LMDB fails, by the name of its error and its text.

LMDB reports a full disk in two ways: ENOSPC, and EIO when a write came out short. The second says
nothing of the reason, so the free space is asked for.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path

from cas.errors import DamageError, StoreError

REBUILD = "`cas repair --rebuild-index` makes it anew; nothing is lost"
# The last three are what LMDB says when the page that names the tables is not one: what else they
# could mean, `env.py` never does.
DAMAGED = {
    "CorruptedError",
    "PageNotFoundError",
    "InvalidError",
    "CursorFullError",
    "IncompatibleError",
    "BadTxnError",
    "BadDbiError",
}
ROOM_LEAST = 2**20  # less free space than one flush of a small transaction takes


def failure_of(kind: str, text: str, path: Path) -> StoreError:
    """The error to raise for LMDB's error class `kind` that says `text`."""
    where = str(path)
    if kind in DAMAGED:
        return DamageError(f"the index is damaged: {text}", where=where, advice=REBUILD)
    if kind == "VersionMismatchError" or "data format" in text:
        return StoreError(
            "the index was written by another version of LMDB", where=where, advice=REBUILD
        )
    if is_full(kind, text, path):
        return StoreError(
            "the disk is full",
            where=where,
            advice="make room and run it again; what was committed is safe",
        )
    if kind == "MemoryError":
        return StoreError(
            "there is no address space for the index", where=where, advice="raise `ulimit -v`"
        )
    if kind == "ReadersFullError":
        return StoreError(
            "too many processes read the index", where=where, advice="end some of them"
        )
    if kind == "PanicError":
        return StoreError(
            "the index cannot go on after a failed write", where=where, advice="run it again"
        )
    return StoreError(f"the index cannot be used: {text}", where=where)


def is_full(kind: str, text: str, path: Path) -> bool:
    """Whether LMDB failed because there is no room, on the disk or in a quota."""
    if kind == "DiskError" or any(os.strerror(n) in text for n in (errno.ENOSPC, errno.EDQUOT)):
        return True
    return os.strerror(errno.EIO) in text and free_space(path) < ROOM_LEAST


def free_space(path: Path) -> int:
    """Bytes that this user may still write to the file system of `path`."""
    found = os.statvfs(path)
    return found.f_bavail * found.f_frsize


def missing(path: Path) -> DamageError:
    """The error to raise where no index is, or one that was never finished."""
    return DamageError("the index is missing", where=str(path), advice=REBUILD)


def another_schema(path: Path, found: int, known: int) -> StoreError:
    """The error to raise for tables of version `found` where this code knows `known`."""
    if found > known:
        return StoreError(
            "the index was written by a newer cas",
            where=str(path),
            advice="use that one, or `cas repair --rebuild-index` with this one",
        )
    return StoreError("the index is of an older version", where=str(path), advice=REBUILD)


def is_curable(error: StoreError) -> bool:
    """Whether tables made anew would not have this failure."""
    return error.advice == REBUILD
