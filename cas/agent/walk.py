"""Walks roots in path order (`cas.entry`), one `stat` for each name and nothing opened but
directories.

The walk keeps a stack of directories, each with the names it still has to give out, so the depth
of a tree is limited by the length of a path only. A directory's names are looked at together, in
one call; what that says is good for `FRESH_SECONDS`, and names whose turn comes later (a long way
was gone below one before them, or large files were read) are looked at again, each by itself. So
are those of a very large directory, which costs the memory of its names only. Names are given out
in batches: a scan in which nothing changed does little else than this walk, and handing up each by
itself takes as long as looking at it.

- The directories above a root are listed too, so that a restore can make them as they were.
- Roots may lie within each other: their walks are merged, and each name comes once. A name is in
  when the rules of any root that it lies in let it in.
- Mount points are crossed: a tier is what its user sees. The kernel's own file systems (proc,
  sysfs ...) are listed as directories but not entered, unless the root itself lies in one.
- What cannot be read is reported, and the walk goes on.
"""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from heapq import merge
from itertools import chain, islice
from typing import Protocol, TypeAlias, TypeVar, cast

from cas._native import Scout, Status, look
from cas.agent.mounts import Mounts
from cas.agent.reasons import unreadable
from cas.agent.roots import Found, Opener, Root, RootGuard, check_searched
from cas.entry import NAME_LIMIT, PATH_LIMIT, Problem, path_order
from cas.errors import SourceError
from cas.ignore import Decision

Item: TypeAlias = tuple[bytes, Status]
Named = TypeVar("Named", bound="tuple[bytes, object]")
Report: TypeAlias = Callable[[Problem], None]

BATCH = 256  # names, at least, that are given out at once
LOOKED_AT_ONCE = 4096  # names of one directory, which is a megabyte of statuses
FRESH_SECONDS = 1.0


class Rules(Protocol):
    """A tier's exclude and include rules (`cas.ignore.Matcher`); paths relative to the root."""

    def directory(self, path: bytes, /) -> Decision:
        """What becomes of the directory `path`."""

    def excludes_file(self, path: bytes, /) -> bool:
        """Whether `path`, which is no directory, is left out."""


@dataclass(slots=True)
class _Frame:
    """A directory on the stack. `items` are its names, of which those from `at` on are still to
    come; `stops` are the places of those that need more than to be given out, the next one last;
    `prefix` is what their paths begin with; `looked` is when they were looked at."""

    path: bytes
    prefix: bytes
    decision: Decision
    device: int
    items: list[Found]
    stops: list[int]
    looked: float
    at: int = 0
    is_late: bool = False

    def stop_everywhere(self) -> None:
        """Have each name looked at by itself from here on."""
        self.stops = list(range(len(self.items) - 1, self.at - 1, -1))


def admit_roots(guard: RootGuard, roots: Iterable[bytes], report: Report) -> list[Root]:
    """`roots` (absolute paths) in path order, each once; `report` is told of those that are
    missing or not allowed."""
    admitted = [_admit(guard, root, report) for root in roots]
    by_path = {root.path: root for root in admitted if root is not None}
    return [by_path[path] for path in sorted(by_path, key=path_order)]


def _admit(guard: RootGuard, root: bytes, report: Report) -> Root | None:
    try:
        return guard.admit(root)
    except SourceError as error:
        report(Problem(root.lstrip(b"/")[:PATH_LIMIT], error.what, error.advice))
        return None


def paths_above(roots: Sequence[Root]) -> frozenset[bytes]:
    """The directories that are listed only because an admitted root lies in them."""
    return frozenset(path for group in groups(roots) for path in group[0].ancestors)


def walk(
    guard: RootGuard, roots: Sequence[Root], rules: Rules, mounts: Mounts, report: Report
) -> Generator[list[Item], None, None]:
    """Each name below and above admitted `roots` with its status, in path order, once, some of
    them at a time. `report` is told of what cannot be looked at."""
    seen: set[bytes] = set()
    for group in groups(roots):
        # The innermost comes first: what it says of a name counts.
        walks = [_Walk(guard, root, rules, mounts, report).batches() for root in reversed(group)]
        for batch in walks[0] if len(walks) == 1 else merged(walks):
            yield [item for item in batch if item[0] not in seen] if seen else batch
        seen.update(group[0].ancestors)


def groups(roots: Iterable[Root]) -> Iterator[list[Root]]:
    """`roots`, which are in path order, as groups: one with all that lie within it."""
    group: list[Root] = []
    for root in roots:
        if group and not _is_within(root.path, group[0].path):
            yield group
            group = []
        group.append(root)
    if group:
        yield group


def _is_within(path: bytes, outer: bytes) -> bool:
    return not outer or path == outer or path.startswith(outer + b"/")


def merged(walks: list[Iterator[list[Named]]]) -> Iterator[list[Named]]:
    """Walks that are each in path order as one, in which each name comes once: as the first of
    them has it."""
    streams = [chain.from_iterable(batches) for batches in walks]
    items = _once(merge(*streams, key=lambda item: path_order(item[0])))
    while batch := list(islice(items, BATCH)):
        yield batch


def _once(items: Iterable[Named]) -> Iterator[Named]:
    last = None
    for item in items:
        if item[0] != last:
            yield item
        last = item[0]


class _Walk:
    """The walk of one root."""

    def __init__(
        self, guard: RootGuard, root: Root, rules: Rules, mounts: Mounts, report: Report
    ) -> None:
        self._root = root
        self._rules = rules
        self._mounts = mounts
        self._report = report
        self._opener = Opener(guard)
        self._start = len(root.path) + 1 if root.path else 0  # of the path that rules see
        self._waiting: list[Item] = []  # directories that go in only with something below them
        self._found: list[Item] = []
        self._stack: list[_Frame] = []
        self._scout: Scout | None = None

    def batches(self) -> Iterator[list[Item]]:
        """What is above the root, the root, and what is below it."""
        with self._opener:
            for path in (*self._root.ancestors, self._root.path):
                status = self._look(path)
                if status is not None and path:
                    self._found.append((path, status))
            if status is not None and stat.S_ISDIR(status.st_mode):
                yield from self._below(status)
            yield self._found

    def _look(self, path: bytes) -> Status | None:
        try:
            return self._opener.look(path)
        except OSError as error:
            self._report(unreadable(path, error))
            return None

    def _below(self, status: Status) -> Iterator[list[Item]]:
        decision = self._rules.directory(b"")
        if decision is Decision.ENTER_ALL:
            self._scout = self._opener.scout(self._root.path, LOOKED_AT_ONCE)
        try:
            self._enter(self._root.path, status, decision)
            yield from self._stacked()
        finally:
            if self._scout is not None:
                self._scout.close()

    def _stacked(self) -> Iterator[list[Item]]:
        while self._stack:
            frame = self._stack[-1]
            self._go_on(frame)
            if len(self._found) >= BATCH:
                found, self._found = self._found, []
                yield found
            if frame.at == len(frame.items) and self._stack[-1] is frame:
                self._leave(frame)

    def _go_on(self, frame: _Frame) -> None:
        """Take names of `frame` until there is a directory to enter, which goes on the stack, or
        enough for a batch, or no more."""
        if not frame.is_late and time.monotonic() - frame.looked > FRESH_SECONDS:
            frame.is_late = True
            frame.stop_everywhere()
        items, found = frame.items, self._found
        while frame.at < len(items) and len(found) < BATCH:
            stop = frame.stops[-1] if frame.stops else len(items)
            if frame.at < stop:
                found += cast("list[Item]", items[frame.at : stop])
                frame.at = stop
                continue
            frame.stops.pop()
            frame.at += 1
            if self._stop_at(frame, *items[stop]):
                return

    def _stop_at(self, frame: _Frame, path: bytes, what: Status | int | None) -> bool:
        """Take one name; whether it is a directory to be gone through now."""
        if frame.is_late or what is None:
            what = self._look_late(frame, path[len(frame.prefix) :])
        if isinstance(what, int):
            self._report(unreadable(path, OSError(what, os.strerror(what))))
        elif stat.S_ISDIR(what.st_mode):
            return self._directory(path, what, frame)
        elif frame.decision is Decision.ENTER_ALL or not self._excludes(path):
            self._let_in()
            self._found.append((path, what))
        return False

    def _excludes(self, path: bytes) -> bool:
        return self._rules.excludes_file(path[self._start :])

    def _look_late(self, frame: _Frame, name: bytes) -> Status | int:
        try:
            return look(self._opener.directory(frame.path), name)
        except OSError as error:
            return error.errno or errno.EIO

    def _directory(self, path: bytes, status: Status, above: _Frame) -> bool:
        """Let a directory in, or wait with it; whether it is to be gone through now."""
        decision = above.decision
        if decision is not Decision.ENTER_ALL:
            decision = self._rules.directory(path[self._start :])
            if decision is Decision.SKIP:
                return False
        self._waiting.append((path, status))
        if decision is not Decision.PASS:
            self._let_in()
        if status.st_dev != above.device and self._mounts.is_pseudo(status.st_dev):
            return False
        self._enter(path, status, decision)
        return True

    def _let_in(self) -> None:
        if self._waiting:
            self._found += self._waiting
            self._waiting.clear()

    def _enter(self, path: bytes, status: Status, decision: Decision) -> None:
        """Put a directory on the stack, with no names when it cannot be listed."""
        prefix = path + b"/" if path else b""
        looked = time.monotonic()
        try:
            ahead = self._scout.take(path, prefix) if self._scout is not None else None
            if ahead is None:
                found, stops = self._opener.look_into(path, status, LOOKED_AT_ONCE, prefix)
            else:
                (found, stops), age = ahead
                looked -= age
                check_searched(found, stops, status)
        except OSError as error:
            self._report(unreadable(path, error, status.st_uid))
            found, stops = [], []
        may_be_long = len(prefix) + NAME_LIMIT > PATH_LIMIT
        if may_be_long:
            found = self._fitting(found)
        stops.reverse()
        frame = _Frame(path, prefix, decision, status.st_dev, found, stops, looked)
        if may_be_long or decision is not Decision.ENTER_ALL:
            frame.stop_everywhere()
        self._stack.append(frame)

    def _leave(self, frame: _Frame) -> None:
        """Take a directory off the stack; one that still waits had nothing to go in with."""
        self._stack.pop()
        self._opener.forget(frame.path)
        if self._waiting and self._waiting[-1][0] == frame.path:
            self._waiting.pop()

    def _fitting(self, found: list[Found]) -> list[Found]:
        for path, _ in found:
            if len(path) > PATH_LIMIT:
                self._report(Problem(path[:PATH_LIMIT], "the path is too long"))
        return [item for item in found if len(item[0]) <= PATH_LIMIT]
