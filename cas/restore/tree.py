"""Restores entries below a directory.

One thread goes through the entries: it makes directories, finds out where each file's content is
stored, and hands files out by frames (`order.py`); a few threads make them, each reading its frame
once from front to back. A file too large for that is handed out at once, and its maker has more
threads read for it (`cas/rebuild/scatter.py`).

Some things must wait. Further names of a file (hardlinks) are made when its first one is there.
Directories get their metadata last, the deepest first: making a name in one changes its time, and
its mode may forbid making any. Until then they are private to us.

Entries of several tiers may follow one another; each is in path order by itself, so a path that is
not after the one before it begins the next tier. A name that an earlier tier brought is kept.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from errno import EMLINK, ENOSYS, EOPNOTSUPP, EPERM, EXDEV
from functools import partial

from cas.descriptor import Descriptor
from cas.entry import Entry, Kind, check_path, path_order
from cas.errors import CasError, RestoreError
from cas.interfaces import ContentSource, Location, Read
from cas.rebuild.write import LARGE
from cas.restore.crew import Crew
from cas.restore.directories import Directories, FileSystems, open_target
from cas.restore.finish import batches_by_depth, finish_directories
from cas.restore.gather import Batch, Gatherer, Item, is_gathered, open_most
from cas.restore.metadata import Metadata
from cas.restore.names import FirstName, Means, Names, Work
from cas.restore.order import in_order
from cas.restore.report import RestoreOptions, RestoreReport, Tally

WINDOW_NAMES = 16384  # files that are put in order
WINDOW_SIZE = 2**30  # bytes of them
FIRST_WINDOW = 16  # times less for the first window, so that all threads are soon at work
VAST = 256 * 2**20  # bytes, from which a file is made by itself
KEPT_MEMORY = 31 * 2**20  # it does not go by larger ones
BATCH_NAMES = 64  # those without content
MOST_WORKERS = 4
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
    is there. Raises RestoreError if `target` cannot be had, or not all of it is durable that should
    be, and whatever `entries` raises.
    """
    options = options or RestoreOptions()
    _keep_memory()
    try:
        os.makedirs(target, exist_ok=True)
        opened = open_target(os.fsencode(target))
    except OSError as error:
        where = os.fsdecode(target)
        raise RestoreError(f"cannot be restored to: {error.strerror}", where=where) from error
    met = FileSystems() if options.sync else None
    report = _Restore(source, opened, met, options).run(entries)
    if met is not None:
        _sync(met, os.fsdecode(target))
    return report


def _keep_memory() -> None:
    """Have the C library keep what a segment leaves for those that follow, which the kernel would
    clear each time: it goes by the largest block given back (mallopt(3), M_MMAP_THRESHOLD)."""
    bytearray(KEPT_MEMORY)


def _sync(met: FileSystems, where: str) -> None:
    try:
        met.sync()
    except OSError as error:
        what = f"what was restored could not be brought to the disk: {error.strerror}"
        raise RestoreError(what, where=where) from error


class _Restore:
    """One restore."""

    def __init__(
        self,
        source: ContentSource,
        target: Descriptor,
        met: FileSystems | None,
        options: RestoreOptions,
    ) -> None:
        workers = options.workers or min(os.cpu_count() or 1, MOST_WORKERS)
        self._source = source
        self._target = target
        self._met = met
        if met is not None:
            met.meet(target)
        self._tally = Tally(options.progress)
        self._metadata = Metadata(self._tally, by_name=options.by_name)
        self._readers = ThreadPoolExecutor(1 if workers <= 2 else 2, "read")
        self._crew = Crew(workers)
        self._names = Names(source, options.existing, self._metadata, self._tally, self._crew.stop)
        self._threads = threading.local()
        self._gatherer = Gatherer(self._names, self._tally)
        self._open_most = open_most()
        self._window: list[Entry] = []
        self._window_size = 0
        self._divisor = FIRST_WINDOW
        self._scattered = 0  # files that may be open, since all was done
        self._large = threading.Lock()
        self._last: tuple[bytes, ...] = ()
        self._again = False
        self._first_names: dict[LinkKey, FirstName] = {}
        self._links: list[tuple[FirstName, Entry]] = []
        self._finished_last: dict[bytes, Entry] = {}

    def run(self, entries: Iterable[Entry]) -> RestoreReport:
        with closing(self._gatherer), self._readers, self._crew:
            for entry in self._readable(entries):
                self._try(entry.path, self._take, entry)
            self._catch_up()
            self._finish()
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
        elif entry.size >= VAST or (entry.size >= LARGE and not is_gathered(entry)):
            self._crew.give(partial(self._make_large, self._work(entry)))
        else:
            self._window.append(entry)
            self._window_size += entry.size
            self._hand_out_if_full()

    def _directory(self, entry: Entry) -> None:
        if self._means().directories.make(entry.path):
            self._tally.count(directories=1)
        self._finished_last.setdefault(entry.path, entry)

    def _first_name(self, entry: Entry) -> FirstName | None:
        """What is known of the file that `entry` is a name of; None if it has but one. Inode
        numbers of different hosts, or times, may be equal by chance: all must be the same."""
        if not entry.link:
            return None
        key = (entry.link, entry.kind, entry.content, entry.target, entry.owner, entry.mtime_ns)
        return self._first_names.setdefault(key, FirstName(entry.path))

    def _work(self, entry: Entry, first: Location | None = None) -> Work:
        return Work(entry, self._again, self._first_name(entry), first)

    def _hand_out_if_full(self) -> None:
        names, size = WINDOW_NAMES // self._divisor, WINDOW_SIZE // self._divisor
        if len(self._window) >= names or self._window_size >= size:
            self._hand_out()
            self._divisor = max(1, self._divisor // 2)

    def _hand_out(self) -> None:
        """Hand out the window: what has its content in frames as one task for each frame, the rest
        in tasks of some names."""
        window, self._window, self._window_size = self._window, [], 0
        batch = Batch(self._source)
        others = []
        for one in in_order(window, self._source):
            work = self._work(one.entry, one.first)
            if batch.scattered >= self._open_most:
                self._give(batch)
                batch = Batch(self._source)
            if one.first is None and one.entry.size >= LARGE:
                self._crew.give(partial(self._make_large, work))
            elif one.first is None:
                others.append(work)
            elif is_gathered(one.entry):
                self._try(one.entry.path, batch.add_runs, work, one.recipe)
            else:
                batch.add_single(work, one.first)
        self._give(batch)
        for at in range(0, len(others), BATCH_NAMES):
            self._crew.give(partial(self._make, others[at : at + BATCH_NAMES]))

    def _give(self, batch: Batch) -> None:
        # Files of several frames are open until their last frame was read.
        if self._scattered + batch.scattered > self._open_most:
            self._crew.drain()
            self._scattered = 0
        self._scattered += batch.scattered
        for start, items in batch.frames():
            self._crew.give(partial(self._gather, start, items))

    def _gather(self, start: Location, items: list[Item]) -> None:
        with self._source.scan(start) as read:
            self._gatherer.make(items, read, self._means(read))

    def _make(self, works: list[Work]) -> None:
        """Make names one by one."""
        means = self._means()
        for work in works:
            self._try(work.entry.path, self._names.make, work, means)

    def _make_large(self, work: Work) -> None:
        # One at a time: its readers keep all cores busy, and the next one begins in the frame
        # where it ended.
        with self._large:
            self._make([work])

    def _means(self, read: Read | None = None) -> Means:
        directories: Directories | None = getattr(self._threads, "directories", None)
        if directories is None:
            directories = self._threads.directories = Directories(self._target, self._met)
        return Means(directories, read or self._source.read, self._readers)

    def _catch_up(self) -> None:
        """Make all that was taken so far, but for what directories get last."""
        self._hand_out()
        self._crew.drain()
        links, self._links = self._links, []
        for first, entry in links:
            self._try(entry.path, self._link, first, entry)

    def _link(self, first: FirstName, entry: Entry) -> None:
        """Make a further name of a file; where that cannot be, a file of its own, of which the
        names that follow are links."""
        work = Work(entry, self._again, first)
        if first.inode is not None:
            try:
                self._names.link(work, self._means(), first.path, first.inode)
                return
            except OSError as error:
                if error.errno not in NO_LINK:
                    raise
                reason = f"it is a copy, not a hard link: {error.strerror}"
                self._tally.note(entry.path, reason)
        self._names.make(work, self._means())

    def _finish(self) -> None:
        """Give directories their metadata."""
        for batches in batches_by_depth(self._finished_last.values()):
            for batch in batches:
                self._crew.give(partial(self._finish_some, batch))
            self._crew.drain()

    def _finish_some(self, batch: list[Entry]) -> None:
        finish_directories(batch, self._means().directories, self._metadata, self._finish_one)

    def _finish_one(self, entry: Entry) -> None:
        self._try(entry.path, self._put, entry)

    def _put(self, entry: Entry) -> None:
        descriptor = self._means().directories.open(entry.path)
        self._metadata.put(descriptor.fd, entry)
