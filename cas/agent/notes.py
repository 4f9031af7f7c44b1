"""What a scan takes down on its way, wherever it reads: how far it is, what was wrong, and whether
it is to stop."""

from __future__ import annotations

from dataclasses import dataclass
from threading import Event

from cas.entry import Problem
from cas.errors import SourceError
from cas.snapshot import PROBLEMS_LIMIT


@dataclass(slots=True)
class ScanProgress:
    """How far a scan is: names listed, files and bytes read, and where it is now."""

    names: int = 0
    files_read: int = 0
    read: int = 0
    path: bytes = b""


class ScanNotes:
    """The notes of one scan. `progress` may be looked at, and `stop` be called, in any thread."""

    def __init__(self) -> None:
        self.progress = ScanProgress()
        self._problems: list[Problem] = []
        self._unlisted = 0
        self._stopped = Event()

    @property
    def problems(self) -> list[Problem]:
        """What was left out so far, or taken with a doubt."""
        if not self._unlisted:
            return self._problems
        return [*self._problems, Problem(b"", f"{self._unlisted} more problems, not listed")]

    def stop(self) -> None:
        """Make the iteration end with an error as soon as it can."""
        self._stopped.set()

    def check(self) -> None:
        """Raise SourceError after `stop`."""
        if self._stopped.is_set():
            raise SourceError("the scan was stopped")

    def report(self, problem: Problem) -> None:
        """Take a problem down; past the limit it is only counted."""
        if len(self._problems) < PROBLEMS_LIMIT - 1:
            self._problems.append(problem)
        else:
            self._unlisted += 1
