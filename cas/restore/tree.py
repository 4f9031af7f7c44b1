"""Restores entries below a directory.

One thread goes through the entries: it makes directories, opens the parent of every name, and hands
names out in batches; a few threads make files. Entries come in path order, which is nearly the
order in which their chunks lie in frames, so neighbouring batches read the same frames. A large
file's chunks are read by one more thread while its worker hashes and writes.

Some things must wait. Further names of a file (hardlinks) are made when its first one is there.
Directories get their metadata last, the deepest first: making a name in one changes its time, and
its mode may forbid making any. Until then they are private to us.

Entries of several tiers may follow one another; each is in path order by itself, so a path that is
not after the one before it begins the next tier. A name that an earlier tier brought is kept.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from errno import EMLINK, ENOSYS, EOPNOTSUPP, EPERM, EXDEV

from cas.entry import Entry, Kind, check_path, path_order
from cas.errors import CasError, RestoreError
from cas.interfaces import ContentSource
from cas.restore.crew import Crew
from cas.restore.directories import Directories
from cas.restore.metadata import Metadata
from cas.restore.names import FirstName, Names, Work
from cas.restore.report import RestoreOptions, RestoreReport, Tally

BATCH_NAMES = 32
BATCH_SIZE = 4 * 2**20  # bytes of content
MOST_WORKERS = 8
NO_LINK = (EMLINK, EXDEV, EPERM, EOPNOTSUPP, ENOSYS)
FAILURES = (CasError, OSError, ValueError, OverflowError)  # what a name may fail with

LinkKey = tuple[object, ...]


def restore_entries(
    entries: Iterable[Entry],
    source: ContentSource,
    target: str | bytes | os.PathLike[str] | os.PathLike[bytes],
    options: RestoreOptions | None = None,
) -> RestoreReport:
    """Make every entry below the directory `target`, which is made if it is missing.

    Each has its full path below `target`; see `cas/restore/select.py` for parts of a tier, and for
    shorter paths. What could not be restored, or not wholly, is in the report's problems; the rest
    is there. Raises RestoreError if `target` cannot be had, and whatever `entries` raises.
    """
    options = options or RestoreOptions()
    try:
        os.makedirs(target, exist_ok=True)
        directories = Directories(os.fsencode(target))
    except OSError as error:
        where = os.fsdecode(target)
        raise RestoreError(f"cannot be restored to: {error.strerror}", where=where) from error
    report = _Restore(source, directories, options).run(entries)
    if options.sync:
        os.sync()
    return report


class _Restore:
    """One restore."""

    def __init__(
        self, source: ContentSource, directories: Directories, options: RestoreOptions
    ) -> None:
        workers = options.workers or min(os.cpu_count() or 1, MOST_WORKERS)
        self._directories = directories
        self._tally = Tally(options.progress)
        self._metadata = Metadata(self._tally, by_name=options.by_name)
        self._crew: Crew[list[Work]] = Crew(workers, self._make_all)
        self._readers = ThreadPoolExecutor(workers, "read-ahead")
        self._names = Names(source, options.existing, self._metadata, self._tally, self._crew.stop)
        self._batch: list[Work] = []
        self._batch_size = 0
        self._last: tuple[bytes, ...] = ()
        self._again = False
        self._first_names: dict[LinkKey, FirstName] = {}
        self._links: list[tuple[FirstName, Entry]] = []
        self._finished_last: dict[bytes, Entry] = {}

    def run(self, entries: Iterable[Entry]) -> RestoreReport:
        with self._readers, self._crew:
            for entry in self._readable(entries):
                self._try(entry.path, self._take, entry)
            self._catch_up()
            for path in sorted(self._finished_last, key=path_order, reverse=True):
                self._try(path, self._finish_directory, path)
        return self._tally.finish()

    def _readable(self, entries: Iterable[Entry]) -> Iterator[Entry]:
        """The entries up to one that the store cannot give; that is listed as what follows the
        last one, and what was taken is still finished."""
        try:
            yield from entries
        except CasError as error:
            self._tally.failed(b"/".join(self._last), error, "what follows it is left out: ")

    def _try(self, path: bytes, do: Callable[..., None], *arguments: object) -> None:
        try:
            do(*arguments)
        except FAILURES as error:
            self._tally.failed(path, error)

    def _take(self, entry: Entry) -> None:
        order = path_order(check_path(entry.path))
        if order <= self._last:
            self._catch_up()
            self._again = True
        self._last = order
        if entry.kind is Kind.DIRECTORY:
            self._directory(entry)
            return
        first = self._first_name(entry)
        if first is not None and first.path != entry.path:
            self._links.append((first, entry))
        else:
            self._hand_out(self._work(entry, first))

    def _directory(self, entry: Entry) -> None:
        if self._directories.make(entry.path):
            self._tally.count(directories=1)
        self._finished_last.setdefault(entry.path, entry)

    def _first_name(self, entry: Entry) -> FirstName | None:
        """What is known of the file that `entry` is a name of; None if it has but one. Inode
        numbers of different hosts, or times, may be equal by chance: all must be the same."""
        if not entry.link:
            return None
        key = (entry.link, entry.kind, entry.content, entry.target, entry.owner, entry.mtime_ns)
        return self._first_names.setdefault(key, FirstName(entry.path))

    def _work(self, entry: Entry, first: FirstName | None) -> Work:
        parent, _, name = entry.path.rpartition(b"/")
        directory = self._directories.open(parent, create=True)
        return Work(directory, name, entry, self._again, first)

    def _hand_out(self, work: Work) -> None:
        self._batch.append(work)
        self._batch_size += work.entry.size
        if len(self._batch) >= BATCH_NAMES or self._batch_size >= BATCH_SIZE:
            self._flush()

    def _flush(self) -> None:
        if self._batch:
            batch, self._batch, self._batch_size = self._batch, [], 0
            self._crew.give(batch)

    def _make_all(self, batch: list[Work]) -> None:
        for work in batch:
            self._try(work.entry.path, self._names.make, work, self._readers)

    def _catch_up(self) -> None:
        """Make all that was taken so far, but for what directories get last."""
        self._flush()
        self._crew.drain()
        links, self._links = self._links, []
        for first, entry in links:
            self._try(entry.path, self._link, first, entry)

    def _link(self, first: FirstName, entry: Entry) -> None:
        """Make a further name of a file; where that cannot be, a file of its own, of which the
        names that follow are links."""
        work = self._work(entry, first)
        if first.inode is not None:
            try:
                parent = first.path.rpartition(b"/")[0]
                self._names.link(work, self._directories.open(parent), first.inode)
                return
            except OSError as error:
                if error.errno not in NO_LINK:
                    raise
                reason = f"it is a copy, not a hard link: {error.strerror}"
                self._tally.note(work.entry.path, reason)
        self._names.make(work)

    def _finish_directory(self, path: bytes) -> None:
        self._metadata.put(self._directories.open(path).fd, self._finished_last[path])
