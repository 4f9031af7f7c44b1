"""What a running sync tells other commands, and the one thing that they may tell it: its limit.

```
STORE/now.json     {"run", "pid", "process", "host", "started_ms", "updated_ms", ...}
STORE/limit.json   {"run", "limit"}
```

Both are replaced as a whole, so a reader sees one state or the other. They are not flushed to the
disk: neither means anything once the process is gone. Who reads `now.json` believes it only as long
as that process lives: on this host, by its pid and the time at which that was started, so that a
number given anew does not count; for another host, for a minute after the last change.

An order of `cas limit` names the run that it is for. It holds until that run ends, whatever was
said before.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from cas.errors import UsageError
from cas.pull.timetable import NO_LIMIT, Timetable, parse_timetable
from cas.store.durable import TEMPORARY_PREFIX
from cas.store.layout import Layout

RECORD_LIMIT = 4 * 2**20
ORDER_LIMIT = 64 * 1024
FRESH_MS = 60_000


@dataclass(frozen=True, slots=True)
class Running:
    """A sync that is running. Times in ms since 1970; `fields` is what its record says, to be
    checked before use."""

    run: str
    pid: int
    host: str
    started_ms: int
    updated_ms: int
    fields: Mapping[str, object]


class Record:
    """What this process tells of its run, as long as it runs."""

    def __init__(self, layout: Layout, run: bytes, started_ms: int) -> None:
        self._path = layout.now
        self._order = layout.limit
        self._fixed: dict[str, object] = {
            "run": run.hex(),
            "pid": os.getpid(),
            "process": _started(os.getpid()),
            "host": socket.gethostname(),
            "started_ms": started_ms,
        }

    def write(self, fields: Mapping[str, object]) -> None:
        """Tell this from now on; raises OSError, and what was told before stands then."""
        _replace(self._path, {**self._fixed, "updated_ms": _now_ms(), **fields})

    def remove(self) -> None:
        """The run is over, and what was asked of it."""
        for path in (self._path, self._order):
            with contextlib.suppress(OSError):
                path.unlink()


class Limit:
    """The limit of one run: what its command line said, until `cas limit` says something else."""

    def __init__(
        self, timetable: Timetable = NO_LIMIT, layout: Layout | None = None, run: bytes = b""
    ) -> None:
        self._timetable = timetable
        self._path = layout.limit if layout is not None else None
        self._run = run.hex()
        self._seen: tuple[int, int, int] | None = None

    def rate_at(self, when: datetime) -> int | None:
        """Bytes a second at a local time, None without a limit. Looks for orders."""
        self._look()
        return self._timetable.rate_at(when)

    def rate_now(self) -> int | None:
        """The limit at this moment."""
        return self.rate_at(datetime.now())  # noqa: DTZ005  # by the clocks of this place

    @property
    def text(self) -> str:
        """How the limit that holds was written."""
        return self._timetable.text

    def _look(self) -> None:
        if self._path is None:
            return
        try:
            status = self._path.stat()
        except OSError:
            return
        seen = (status.st_ino, status.st_mtime_ns, status.st_size)
        if seen != self._seen:
            self._seen = seen
            order = _load(self._path, ORDER_LIMIT)
            if order.get("run") == self._run:
                with contextlib.suppress(UsageError):  # of another version, or by hand
                    self._timetable = parse_timetable(str(order.get("limit")))


def running(layout: Layout) -> Running | None:
    """The sync that is writing to this store now, if there is one."""
    fields = _load(layout.now, RECORD_LIMIT)
    run, host = fields.get("run"), fields.get("host")
    pid, started, updated = (fields.get(key) for key in ("pid", "started_ms", "updated_ms"))
    if not (isinstance(run, str) and isinstance(host, str) and isinstance(pid, int)):
        return None
    if not (isinstance(started, int) and isinstance(updated, int)):
        return None
    found = Running(run, pid, host, started, updated, fields)
    return found if _lives(found) else None


def ask_limit(layout: Layout, run: Running, timetable: Timetable) -> None:
    """Ask a running sync to keep to another limit; it looks once a second. Raises OSError."""
    _replace(layout.limit, {"run": run.run, "limit": timetable.text})


def _lives(found: Running) -> bool:
    if found.host != socket.gethostname():
        return abs(_now_ms() - found.updated_ms) <= FRESH_MS
    try:
        os.kill(found.pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:  # another user's
        pass
    return found.fields.get("process") == _started(found.pid)


def _started(pid: int) -> str:
    """When a process was started, in its system's own words; "" where that is not told."""
    try:
        status = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return ""
    # proc(5): the name, in parentheses, may hold anything; the time is the 20th field after it.
    return status.rpartition(b")")[2].split()[19].decode("ascii")


def _replace(path: Path, fields: Mapping[str, object]) -> None:
    pending = path.with_name(f"{TEMPORARY_PREFIX.decode()}{path.name}")
    pending.write_text(json.dumps(fields, separators=(",", ":")) + "\n", encoding="ascii")
    pending.replace(path)


def _load(path: Path, limit: int) -> dict[str, object]:
    """The object in a file, {} if there is none."""
    try:
        with path.open("rb") as file:
            found = json.loads(file.read(limit))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
