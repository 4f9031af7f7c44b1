"""From a name and its status to its entry, reading as little as possible.

A regular file's content is taken from another name of the same inode, or from the cache, or read,
in this order. What goes wrong with a name is reported and costs that name only.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from dataclasses import dataclass

from cas._native import Status
from cas.agent.content import ContentReader, FileState
from cas.agent.memory import Memory, is_settled, recalled
from cas.agent.metadata import (
    KINDS,
    Xattrs,
    is_linked,
    link_id,
    owner_of,
    time_of,
    xattrs_of,
)
from cas.agent.mounts import Mounts
from cas.agent.reasons import unreadable
from cas.agent.roots import Opener
from cas.agent.walk import Item
from cas.entry import DEVICES, UNREADABLE, Entry, Kind, Problem
from cas.errors import LimitError
from cas.interfaces import CachedFile
from cas.page import TARGET_LIMIT
from cas.recipe import SIZE_LIMIT

_LINKS_LIMIT = 2**16  # inodes whose other names are waited for; past it, some are read again


@dataclass(frozen=True, slots=True)
class Made:
    """What became of a name. `status` goes with the entry, which is None for what is left out;
    `sound`: nothing was wrong with it, and any later change of it would show."""

    entry: Entry | None
    status: Status
    sound: bool


class EntryMaker:
    """Makes the entries of one scan. `clock` gives ns since 1970."""

    def __init__(
        self,
        opener: Opener,
        reader: ContentReader,
        memory: Memory,
        mounts: Mounts,
        report: Callable[[Problem], None],
        clock: Callable[[], int],
    ) -> None:
        self._opener = opener
        self._reader = reader
        self._memory = memory
        self._mounts = mounts
        self._report = report
        self._clock = clock
        self._rows: dict[bytes, CachedFile] = {}
        self._links: dict[bytes, tuple[bytes, FileState]] = {}

    def prepare(self, items: list[Item]) -> None:
        """Ask the cache for the files among `items`, which are to come next."""
        paths = [path for path, status in items if stat.S_ISREG(status.st_mode)]
        self._rows = self._memory.files(paths)

    def make(self, path: bytes, status: Status) -> Made:
        """The entry of a name."""
        self._sound = True
        try:
            entry, status = self._entry(path, status)
        except OSError as error:
            self._wrong(unreadable(path, error, status.st_uid))
            entry = None
        sound = self._sound and is_settled(status, self._clock())
        return Made(entry, status, sound)

    def _wrong(self, problem: Problem) -> None:
        self._sound = False
        self._report(problem)

    def _entry(self, path: bytes, status: Status) -> tuple[Entry | None, Status]:
        kind = KINDS.get(stat.S_IFMT(status.st_mode))
        if kind is Kind.FILE:
            return self._file(path, status)
        if kind is None:
            self._wrong(Problem(path, "of a kind that is not known here"))
            return None, status
        target = self._target(path) if kind is Kind.SYMLINK else b""
        if target is None:
            return None, status
        entry = Entry(
            path,
            kind,
            owner_of(status),
            time_of(status),
            target=target,
            device=_device(status) if kind in DEVICES else None,
            link=link_id(status) if is_linked(status) else b"",
            xattrs=self._xattrs(path),
        )
        return entry, status

    def _target(self, path: bytes) -> bytes | None:
        fd, name = self._opener.locate(path)
        target = os.readlink(name, dir_fd=fd)
        if len(target) > TARGET_LIMIT:
            self._wrong(Problem(path, "a symbolic link whose target is too long"))
            return None
        return target

    def _xattrs(self, path: bytes) -> Xattrs:
        try:
            return xattrs_of(self._opener, path)
        except (OSError, LimitError) as error:
            reason = f"without its extended attributes: {error}"
            self._wrong(Problem(path, reason, left_out=False))
            return ()

    def _file(self, path: bytes, status: Status) -> tuple[Entry | None, Status]:
        if status.st_size > SIZE_LIMIT:
            self._wrong(Problem(path, f"larger than {SIZE_LIMIT} bytes"))
            return None, status
        state = self._known(path, status)
        if state is None:
            try:
                state = self._read(path)
            except OSError as error:
                problem = unreadable(path, error, status.st_uid)
                self._wrong(problem)
                return self._without_content(path, status) if problem.left_out else None, status
        return _file_entry(path, state), state.status

    def _known(self, path: bytes, status: Status) -> FileState | None:
        """The state of a file that need not be read."""
        linked = self._links.get(link_id(status)) if is_linked(status) else None
        row = self._rows.pop(path, None)
        if linked is None and row is None:
            return None
        current = self._mounts.identity(status)
        if linked is not None and linked[0] == current:
            return linked[1]
        state = recalled(row, current, status) if row is not None else None
        if state is None or not self._memory.recall_recipes(state.content.parts):
            return None
        self._note_link(current, state)
        return state

    def _read(self, path: bytes) -> FileState:
        state = self._reader.read(path)
        if state.doubt:
            self._wrong(Problem(path, state.doubt, left_out=False))
            return state
        current = self._mounts.identity(state.status)
        self._note_link(current, state)
        if is_settled(state.status, self._clock()):
            self._memory.keep_file(path, current, state)
        return state

    def _note_link(self, current: bytes, state: FileState) -> None:
        if is_linked(state.status):
            if len(self._links) >= _LINKS_LIMIT:
                del self._links[next(iter(self._links))]
            self._links[link_id(state.status)] = current, state

    def _without_content(self, path: bytes, status: Status) -> Entry:
        return Entry(
            path,
            Kind.FILE,
            owner_of(status),
            time_of(status),
            status.st_size,
            link=link_id(status) if is_linked(status) else b"",
            xattrs=self._xattrs(path),
            flags=UNREADABLE,
        )


def _file_entry(path: bytes, state: FileState) -> Entry:
    status = state.status
    return Entry(
        path,
        Kind.FILE,
        owner_of(status),
        time_of(status),
        state.content.size,
        state.content,
        link=link_id(status) if is_linked(status) else b"",
        xattrs=state.xattrs,
        flags=state.flags,
    )


def _device(status: Status) -> tuple[int, int]:
    return os.major(status.st_rdev), os.minor(status.st_rdev)
