"""What a user is told when LMDB fails."""

import errno
import os
from pathlib import Path

import pytest

from cas.errors import EXIT_DAMAGE, EXIT_FAILED
from indexes.failure import failure_of


@pytest.mark.parametrize(
    ("kind", "text", "said", "code"),
    [
        ("CorruptedError", "mdb_get: page", "the index is damaged: mdb_get: page", EXIT_DAMAGE),
        ("InvalidError", "not LMDB", "`cas repair --rebuild-index`", EXIT_DAMAGE),
        ("VersionMismatchError", "", "another version of LMDB", EXIT_FAILED),
        ("DiskError", "mdb_txn_commit", "the disk is full", EXIT_FAILED),
        ("Error", f"commit: {os.strerror(errno.EDQUOT)}", "the disk is full", EXIT_FAILED),
        ("Error", f"commit: {os.strerror(errno.EIO)}", "cannot be used: commit", EXIT_FAILED),
        ("MemoryError", "mmap", "ulimit -v", EXIT_FAILED),
        ("ReadersFullError", "", "too many processes", EXIT_FAILED),
        ("PanicError", "", "run it again", EXIT_FAILED),
        ("PermissionError", "Permission denied", "Permission denied", EXIT_FAILED),
    ],
)
def test_a_failure_says_where_and_what(
    tmp_path: Path, kind: str, text: str, said: str, code: int
) -> None:
    error = failure_of(kind, text, tmp_path)
    assert str(error).startswith(f"{tmp_path}: ")
    assert said in str(error)
    assert code == error.exit_code
