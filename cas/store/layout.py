"""Where things lie in a store, its version, and the lock that one writer holds.

```
STORE/format       "cas store 1\\n"
STORE/lock         flocked by the one writer; readers need none
STORE/packs/       open-<pack id> while written, <SHA-256> once sealed
STORE/snapshots/   <SHA-256 of the file>
STORE/runs/        one JSON line file for each run
STORE/index/       LMDB; can be rebuilt from packs and snapshots
STORE/now.json     while a sync runs: how far it is; STORE/limit.json: what `cas limit` asks of it
```
"""

from __future__ import annotations

import fcntl
import os
import re
import socket
from pathlib import Path

from cas.errors import StoreError, StoreLocked, StoreMissing
from cas.store.durable import commit_bytes, sync_directory

FORMAT = b"cas store 1\n"
OPEN_PREFIX = "open-"
_PACK_NAME = re.compile(f"{OPEN_PREFIX}[0-9a-f]{{32}}|[0-9a-f]{{64}}")


def is_pack_name(name: str) -> bool:
    """Whether `name` in `packs/` is cas's; all others are none of its business."""
    return _PACK_NAME.fullmatch(name) is not None


class Layout:
    """The paths of one store."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.format = root / "format"
        self.lock = root / "lock"
        self.packs = root / "packs"
        self.snapshots = root / "snapshots"
        self.runs = root / "runs"
        self.index = root / "index"
        self.now = root / "now.json"
        self.limit = root / "limit.json"

    def create(self) -> None:
        """Make an empty store, or leave the one that is there; raises StoreError."""
        if self.format.exists():
            return
        try:
            for directory in (self.root, self.packs, self.snapshots, self.runs, self.index):
                directory.mkdir(parents=True, exist_ok=True)
            commit_bytes(self.format, FORMAT)
            sync_directory(self.root.parent)
        except OSError as error:
            raise StoreError(
                f"the store cannot be made: {error.strerror}", where=str(self.root)
            ) from error

    def check(self) -> None:
        """Raise StoreMissing unless a store is here, StoreError for a version not known."""
        try:
            found = self.format.read_bytes()[:100]
        except FileNotFoundError:
            raise StoreMissing(
                "there is no store here", where=str(self.root), advice="`cas sync` makes one"
            ) from None
        except OSError as error:
            raise StoreError(f"cannot be read: {error.strerror}", where=str(self.format)) from error
        if found != FORMAT:
            said = found.decode("utf-8", "replace").strip()
            raise StoreError(
                f"the store says {said!r}, this cas knows {FORMAT.decode().strip()!r}",
                where=str(self.root),
                advice="use the version of cas that wrote it, or a newer one",
            )


class WriterLock:
    """The exclusive right to write to a store, held until `release` or the process's end."""

    def __init__(self, layout: Layout) -> None:
        """Take the lock; raises StoreLocked at once when another process has it."""
        self._fd = os.open(layout.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(self._fd, 200, 0).decode("utf-8", "replace").strip()
            os.close(self._fd)
            raise StoreLocked(
                f"another cas is writing to it ({holder or 'unknown process'})",
                where=str(layout.root),
                advice="wait until it is done; reading commands work meanwhile",
            ) from None
        os.ftruncate(self._fd, 0)
        os.pwrite(self._fd, f"pid {os.getpid()} on {socket.gethostname()}\n".encode(), 0)

    def release(self) -> None:
        """Give the lock back."""
        os.ftruncate(self._fd, 0)
        os.close(self._fd)
