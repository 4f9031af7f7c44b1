"""Compares a restored tree with the entries it was made from.

Only reading, and nothing is followed out of the target: names are opened as a restore opens them
(`cas/restore/directories.py`). Names that the entries do not have are not looked for.
"""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial

from cas.entry import HOLE_DIGEST, IMPLIED, Entry, Kind, Problem, check_path
from cas.errors import CasError, RestoreError
from cas.interfaces import ContentSource
from cas.restore.compare import difference
from cas.restore.crew import Crew
from cas.restore.directories import Directories, open_target
from cas.restore.files import descriptor_path

BATCH_NAMES = 64
BATCH_SIZE = 8 * 2**20  # bytes of content
MOST_WORKERS = 4


@dataclass(frozen=True, slots=True)
class VerifyOptions:
    """`metadata`: compare mode, time and extended attributes too, and `owners` by number.
    `workers`: threads that hash, 0 for one per core. `progress(bytes, names)` is told what was
    compared, from several threads but one at a time."""

    metadata: bool = False
    owners: bool = False
    workers: int = 0
    progress: Callable[[int, int], None] | None = None


@dataclass(slots=True)
class VerifyReport:
    """What was compared (`names`, and `bytes` of their content), and what was found: names that
    are `missing`, `differing` in kind or content, in `metadata`, and those of which only the size
    could be compared, `unchecked`. Each list is in no particular order."""

    names: int = 0
    bytes: int = 0
    missing: list[Problem] = field(default_factory=list)
    differing: list[Problem] = field(default_factory=list)
    metadata: list[Problem] = field(default_factory=list)
    unchecked: list[Problem] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether all is there and as it was."""
        return not (self.missing or self.differing or self.metadata)


def verify_tree(
    entries: Iterable[Entry],
    target: str | bytes | os.PathLike[str] | os.PathLike[bytes],
    source: ContentSource | None = None,
    options: VerifyOptions | None = None,
) -> VerifyReport:
    """Compare every entry with its name below `target`.

    `source` gives the recipes of files whose digest is no hash of their bytes; without one, or when
    it lacks them, only their size is compared, and they are listed as unchecked. Raises
    RestoreError if there is no `target`, and whatever `entries` raises.
    """
    options = options or VerifyOptions()
    try:
        opened = open_target(os.fsencode(target))
    except OSError as error:
        where = os.fsdecode(target)
        raise RestoreError(f"cannot be read: {error.strerror}", where=where) from error
    verify = _Verify(Directories(opened), source, options)
    workers = options.workers or min(os.cpu_count() or 1, MOST_WORKERS)
    with Crew(workers) as crew:
        for batch in _batches(entries):
            crew.give(partial(verify.batch, batch))
        crew.drain()
    return verify.report


def _batches(entries: Iterable[Entry]) -> Iterable[list[Entry]]:
    batch: list[Entry] = []
    size = 0
    for entry in entries:
        batch.append(entry)
        size += entry.size
        if len(batch) >= BATCH_NAMES or size >= BATCH_SIZE:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


class _Verify:
    """One comparison, by several threads."""

    def __init__(
        self, directories: Directories, source: ContentSource | None, options: VerifyOptions
    ) -> None:
        self.report = VerifyReport()
        self._root = directories.root
        self._source = source
        self._options = options
        self._lock = threading.Lock()

    def batch(self, entries: list[Entry]) -> None:
        directories = Directories(self._root)
        for entry in entries:
            if entry.kind is Kind.FILE and entry.content is None:
                continue  # nothing was held, so nothing can have been restored
            self._entry(entry, directories)
            with self._lock:
                self.report.names += 1
                self.report.bytes += entry.size
                if self._options.progress is not None:
                    self._options.progress(entry.size, 1)

    def _entry(self, entry: Entry, directories: Directories) -> None:
        try:
            parent, _, name = check_path(entry.path).rpartition(b"/")
            there = directories.open(parent)
            differs = self._difference(there.fd, name, entry)
            if not differs and self._options.metadata:
                for what in _metadata(there.fd, name, entry, owners=self._options.owners):
                    self._add(self.report.metadata, entry, what)
        except FileNotFoundError:
            self._add(self.report.missing, entry, "it is missing")
            return
        except (CasError, OSError, ValueError) as error:
            differs = error.what if isinstance(error, CasError) else f"cannot be read: {error}"
        if differs:
            self._add(self.report.differing, entry, differs)

    def _difference(self, directory_fd: int, name: bytes, entry: Entry) -> str:
        if not entry.flags & HOLE_DIGEST:
            return difference(directory_fd, name, entry, None)
        if self._source is not None:
            try:
                return difference(directory_fd, name, entry, self._source)
            except CasError as error:
                reason = f"only its size was compared: {error.what}"
        else:
            reason = "only its size was compared: it has too many holes for a digest"
        self._add(self.report.unchecked, entry, reason)
        return difference(directory_fd, name, entry, None)

    def _add(self, problems: list[Problem], entry: Entry, reason: str) -> None:
        with self._lock:
            problems.append(Problem(entry.path, reason))


def _metadata(directory_fd: int, name: bytes, entry: Entry, *, owners: bool) -> Iterable[str]:
    """What differs of the metadata."""
    found = os.stat(name, dir_fd=directory_fd, follow_symlinks=False)
    mode = stat.S_IMODE(found.st_mode)
    if entry.kind is not Kind.SYMLINK and mode != entry.owner.mode:
        yield f"its mode is {mode:04o} instead of {entry.owner.mode:04o}"
    if found.st_mtime_ns != entry.mtime_ns and not entry.flags & IMPLIED:
        yield f"its time is {found.st_mtime_ns} ns instead of {entry.mtime_ns}"
    if owners and (found.st_uid, found.st_gid) != (entry.owner.uid, entry.owner.gid):
        yield (
            f"its owner is {found.st_uid}:{found.st_gid} "
            f"instead of {entry.owner.uid}:{entry.owner.gid}"
        )
    path = descriptor_path(directory_fd) + b"/" + name
    names = [os.fsencode(one) for one in os.listxattr(path, follow_symlinks=False)]
    here = {one: os.getxattr(path, one, follow_symlinks=False) for one in names}
    for one in sorted({name for name, _ in set(here.items()) ^ set(entry.xattrs)}):
        yield f"its attribute {os.fsdecode(one)} differs"
