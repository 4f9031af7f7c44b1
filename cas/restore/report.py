"""What a restore is told, and what it tells."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import Enum

from cas.entry import Problem
from cas.errors import CasError, DamageError, NotHeldError


class Existing(Enum):
    """What becomes of a name that exists in the target already. Directories are always gone into,
    and never replaced by anything else."""

    REFUSE = "refuse"  # it stays; listed
    KEEP_IDENTICAL = "keep identical"  # it stays; listed unless it has the same content
    OVERWRITE = "overwrite"  # it is replaced, in one step


@dataclass(frozen=True, slots=True)
class RestoreOptions:
    """`by_name`: owners by user and group name where this machine knows them, else by number.
    `sync`: all of it is durable on return. `workers`: threads that write files, 0 for one per core.
    `progress(bytes, files)` is told what was added, from several threads but one at a time."""

    existing: Existing = Existing.REFUSE
    by_name: bool = False
    sync: bool = False
    workers: int = 0
    progress: Callable[[int, int], None] | None = None


@dataclass(slots=True)
class RestoreReport:
    """What was restored, by kind; `links` are further names of a file, `kept` what was there and
    the same. `missing` and `damaged` count the problems of content not held, and of damage found.
    """

    files: int = 0
    bytes: int = 0
    directories: int = 0
    symlinks: int = 0
    specials: int = 0
    links: int = 0
    kept: int = 0
    missing: int = 0
    damaged: int = 0
    problems: list[Problem] = field(default_factory=list)


class Tally:
    """Fills a report from several threads."""

    def __init__(self, progress: Callable[[int, int], None] | None) -> None:
        self.report = RestoreReport()
        self._progress = progress
        self._lock = threading.Lock()
        self._notes: dict[tuple[str, str], tuple[bytes, int]] = {}

    def count(self, **what: int) -> None:
        """Add to the report's numbers of these names."""
        with self._lock:
            for name, more in what.items():
                setattr(self.report, name, getattr(self.report, name) + more)

    def progress(self, size: int, files: int) -> None:
        """Tell of `size` more bytes and `files` more files."""
        if self._progress is not None:
            with self._lock:
                self._progress(size, files)

    def failed(self, path: bytes, error: Exception, before: str = "") -> None:
        """`path` was left out because of `error`; `before` goes before the reason."""
        problem = problem_of(path, error)
        problem = replace(problem, reason=before + problem.reason)
        with self._lock:
            self.report.problems.append(problem)
            self.report.missing += isinstance(error, NotHeldError)
            self.report.damaged += isinstance(error, DamageError)

    def doubt(self, path: bytes, reason: str, hint: str = "") -> None:
        """`path` was restored, with this against it."""
        with self._lock:
            self.report.problems.append(Problem(path, reason, hint, left_out=False))

    def note(self, path: bytes, reason: str, hint: str = "") -> None:
        """Like `doubt`, for what may be so of very many: said once, with their number."""
        with self._lock:
            first, count = self._notes.get((reason, hint), (path, 0))
            self._notes[reason, hint] = (first, count + 1)

    def finish(self) -> RestoreReport:
        """The report, with the notes among its problems."""
        for (reason, hint), (path, count) in self._notes.items():
            more = f" (and {count - 1} more)" if count > 1 else ""
            self.report.problems.append(Problem(path, reason + more, hint, left_out=False))
        self._notes.clear()
        return self.report


def problem_of(path: bytes, error: Exception) -> Problem:
    """What `error` means for `path`."""
    if isinstance(error, CasError):
        reason = f"{error.what} ({error.where})" if error.where else error.what
        return Problem(path, reason, error.advice)
    if isinstance(error, OSError) and error.strerror:
        return Problem(path, error.strerror)
    return Problem(path, f"cannot be made here: {error}")
