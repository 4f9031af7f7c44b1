"""A scan over SFTP: gives the same pages as `cas.agent.scan`, as far as SFTP shows what is there.

A file's content is known without fetching where the store has it: at the same path with the same
size and time, or (where the far end runs `sha256sum`) anywhere. What is not known is fetched whole,
staged, and read here as the agent reads it there: taken apart, chunked, hashed. So a file has the
same chunks and recipes, whichever way it came.

SFTP does not show which names are one inode, the numbers of devices, extended attributes, holes, or
parts of a second.
"""

from __future__ import annotations

import stat
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace

from cas.agent.metadata import KINDS
from cas.agent.notes import ScanNotes
from cas.agent.pages import ScannedPage, make_page
from cas.agent.spool import Spool
from cas.agent.walk import Rules, paths_above
from cas.entry import DEVICES, IMPLIED, UNREADABLE, Entry, Kind, Owner, Problem
from cas.page import OWNER_LIMIT, Paginator
from cas.recipe import SIZE_LIMIT
from cas.sftp.contents import Contents
from cas.sftp.guesses import Guesses
from cas.sftp.here import NS, Here
from cas.sftp.known import Known, Wanted
from cas.sftp.remote import Remote
from cas.sftp.shelf import Shelf
from cas.sftp.walk import Item, Places, admit, problem_of, walk
from cas.transport.sftp import Attributes

NAMES_AHEAD = 2048  # of which what is known is found out before their turn


@dataclass(slots=True, eq=False)
class _Coming:
    """A name whose turn will come, and what it needs: a file's content, a link's target."""

    path: bytes
    seen: Attributes
    file: Wanted | None = None
    target: Future[bytes] | None = None


class SftpScanner(ScanNotes):
    """One scan of `roots` (absolute, or `~` first) for the tier `tier`; see `Scanning`. Without a
    `shelf` to stage files on, it only counts."""

    def __init__(
        self,
        roots: Sequence[bytes],
        rules: Rules,
        spool: Spool,
        tier: str,
        *,
        remote: Remote,
        here: Here,
        shelf: Shelf | None,
    ) -> None:
        super().__init__()
        self._roots = roots
        self._rules = rules
        self._spool = spool
        self._remote = remote
        self._known = Known(remote, here, spool)
        self._contents = (
            Guesses(spool)
            if shelf is None
            else Contents(
                remote, shelf, spool, tier,
                report=self.report, count=self._count, check=self.check,
            )
        )  # fmt: skip

    def __iter__(self) -> Iterator[ScannedPage]:
        try:
            places = admit(self._remote, self._roots, self.report)
            above = paths_above(places.roots)
            names = _Ahead(self._walked(places), self._known, self._contents)
            paginator = Paginator()
            entries: list[Entry] = []
            for coming in names:
                self.check()
                is_above = coming.path in above
                if entries and is_above is not (entries[-1].path in above):
                    yield from self._page(entries)
                    entries, paginator = [], Paginator()
                self.progress.path = coming.path
                self.progress.names += 1
                entry = self._entry(coming, names)
                if entry is None:
                    continue
                entries.append(_implied(entry) if is_above else entry)
                if paginator.ends_after(entries[-1]):
                    yield from self._page(entries)
                    entries = []
            if entries:
                yield from self._page(entries)
            self._contents.end()
        finally:
            self._contents.close()

    def _page(self, entries: list[Entry]) -> Iterator[ScannedPage]:
        page = make_page(entries)
        self._spool.put(page.id, page.encoded)
        yield page
        self._contents.told()

    def _walked(self, places: Places) -> Iterator[list[_Coming]]:
        for batch in walk(self._remote, places, self._rules, self.report):
            yield [self._named(item, places) for item in batch]

    def _named(self, item: Item, places: Places) -> _Coming:
        path, seen = item
        coming = _Coming(path, seen)
        if seen.is_file and seen.size <= SIZE_LIMIT:
            coming.file = Wanted(path, places.path_of(path), seen)
        elif stat.S_ISLNK(seen.mode):
            coming.target = self._remote.target(places.path_of(path))
        return coming

    def _entry(self, coming: _Coming, names: _Ahead) -> Entry | None:
        path, seen = coming.path, coming.seen
        kind = KINDS.get(stat.S_IFMT(seen.mode))
        if kind is None or kind in DEVICES:
            what = "of a kind that is not known here" if kind is None else "a device: no numbers"
            self.report(Problem(path, f"{what}, as SFTP tells it"))
            return None
        try:
            if kind is Kind.FILE:
                return self._file(coming, names)
            target = coming.target.result() if coming.target is not None else b""
        except OSError as error:
            problem = problem_of(path, error)
            self.report(problem)
            if kind is not Kind.FILE or not problem.left_out:
                return None
            return Entry(path, kind, _owner(seen), seen.mtime * NS, seen.size, flags=UNREADABLE)
        return Entry(path, kind, _owner(seen), seen.mtime * NS, target=target)

    def _file(self, coming: _Coming, names: _Ahead) -> Entry | None:
        file = coming.file
        if file is None:
            self.report(Problem(coming.path, f"larger than {SIZE_LIMIT} bytes"))
            return None
        if file.content is None:
            self.progress.files_read += 1
        names.begin()
        got = self._contents.finish(file, names.begin)
        # Who owns it is what the listing says: there it has names.
        owner = replace(_owner(coming.seen), mode=stat.S_IMODE(got.seen.mode))
        return Entry(
            coming.path, Kind.FILE, owner, got.seen.mtime * NS, got.content.size, got.content,
            link=file.link, flags=got.flags,
        )  # fmt: skip

    def _count(self, size: int) -> None:
        self.progress.read += size


class _Ahead:
    """The walk's names, in order; what they need is asked for before their turn."""

    def __init__(
        self, batches: Iterator[list[_Coming]], known: Known, contents: Contents | Guesses
    ) -> None:
        self._batches = batches
        self._known = known
        self._contents = contents
        self._held: deque[_Coming] = deque()
        self._to_begin: deque[Wanted] = deque()
        self._is_over = False

    def __iter__(self) -> Iterator[_Coming]:
        while self._fill() or self._held:
            yield self._held.popleft()

    def _fill(self) -> bool:
        """Have more names held, unless there are enough of them; whether there are any more."""
        while not self._is_over and len(self._held) < NAMES_AHEAD:
            batch = next(self._batches, None)
            if batch is None:
                self._is_over = True
                break
            files = [one.file for one in batch if one.file is not None]
            self._known.decide(files)
            self._to_begin += [file for file in files if file.content is None]
            self._held += batch
            self.begin()
        return bool(self._held)

    def begin(self) -> None:
        """Have files fetched whose turn will come, as many as are good."""
        while self._to_begin and self._contents.begin(self._to_begin[0]):
            self._to_begin.popleft()


def _owner(seen: Attributes) -> Owner:
    user = seen.user if len(seen.user) <= OWNER_LIMIT else b""
    group = seen.group if len(seen.group) <= OWNER_LIMIT else b""
    return Owner(stat.S_IMODE(seen.mode), seen.uid, seen.gid, user, group)


def _implied(entry: Entry) -> Entry:
    """The entry of a directory that is there for the sake of a root below it."""
    if entry.kind is not Kind.DIRECTORY:
        return entry
    return replace(entry, mtime_ns=0, flags=entry.flags | IMPLIED)
