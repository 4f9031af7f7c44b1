"""Walks roots in path order (`cas.entry`), one `stat` for each name and nothing opened but
directories.

The walk keeps a stack of directories, each with the names it still has to look at, so the depth
of a tree is limited by the length of a path only. Names are looked at one by one, as late as
possible: a directory of a million names costs the memory of their names.

- The directories above a root are listed too, so that a restore can make them as they were.
- Roots may lie within each other: their walks are merged, and each name comes once. A name is in
  when the rules of any root that it lies in let it in.
- Mount points are crossed: a tier is what its user sees. The kernel's own file systems (proc,
  sysfs ...) are listed as directories but not entered, unless the root itself lies in one.
- What cannot be read is reported, and the walk goes on.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from heapq import merge
from typing import Protocol, TypeAlias

from cas.agent.mounts import Mounts
from cas.agent.reasons import unreadable
from cas.agent.roots import Opener, Root, RootGuard
from cas.entry import NAME_LIMIT, PATH_LIMIT, Problem, path_order
from cas.errors import SourceError
from cas.ignore import Decision

Item: TypeAlias = tuple[bytes, os.stat_result]
Report: TypeAlias = Callable[[Problem], None]

_ENCODING = sys.getfilesystemencoding()
_ERRORS = sys.getfilesystemencodeerrors()


class Rules(Protocol):
    """A tier's exclude and include rules (`cas.ignore.Matcher`); paths relative to the root."""

    def directory(self, path: bytes, /) -> Decision:
        """What becomes of the directory `path`."""

    def excludes_file(self, path: bytes, /) -> bool:
        """Whether `path`, which is no directory, is left out."""


@dataclass(slots=True)
class _Frame:
    """A directory on the stack: what its names begin with, those still to come, last first."""

    path: bytes
    prefix: bytes
    names: list[bytes]
    decision: Decision
    device: int


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
    return frozenset(path for group in _groups(roots) for path in group[0].ancestors)


def walk(
    guard: RootGuard, roots: Sequence[Root], rules: Rules, mounts: Mounts, report: Report
) -> Generator[Item, None, None]:
    """Each name below and above admitted `roots` with its status, in path order, once. `report` is
    told of what cannot be looked at."""
    seen: set[bytes] = set()
    for group in _groups(roots):
        # The innermost comes first: what it says of a name counts.
        streams = [_Walk(guard, root, rules, mounts, report).items() for root in reversed(group)]
        items = streams[0] if len(streams) == 1 else _merged(streams)
        for item in items:
            if item[0] not in seen:
                yield item
        seen.update(group[0].ancestors)


def _groups(roots: Iterable[Root]) -> Iterator[list[Root]]:
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


def _merged(streams: list[Iterator[Item]]) -> Iterator[Item]:
    last = None
    for item in merge(*streams, key=lambda item: path_order(item[0])):
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

    def items(self) -> Iterator[Item]:
        """What is above the root, the root, and what is below it."""
        with self._opener:
            for path in (*self._root.ancestors, self._root.path):
                status = self._look(path)
                if status is not None and path:
                    yield path, status
            if status is not None and stat.S_ISDIR(status.st_mode):
                yield from self._below(status)

    def _look(self, path: bytes) -> os.stat_result | None:
        try:
            return self._opener.stat(path)
        except OSError as error:
            self._report(unreadable(path, error))
            return None

    def _below(self, status: os.stat_result) -> Iterator[Item]:
        stack = self._enter(self._root.path, status, self._rules.directory(b""))
        while stack:
            frame = stack[-1]
            yield from self._names(frame, stack)
            if stack[-1] is frame:
                stack.pop()
                if self._waiting and self._waiting[-1][0] == frame.path:
                    self._waiting.pop()

    def _names(self, frame: _Frame, stack: list[_Frame]) -> Iterator[Item]:
        """The names of `frame` up to a directory to enter, which goes on the stack, or its end."""
        names, prefix, start = frame.names, frame.prefix, self._start
        if not names:
            return
        everything = frame.decision is Decision.ENTER_ALL
        try:
            fd = self._opener.directory(frame.path)
        except OSError as error:
            self._report(unreadable(frame.path, error))
            return
        while names:
            name = names.pop()
            path = prefix + name
            try:
                status = os.stat(name, dir_fd=fd, follow_symlinks=False)
            except OSError as error:
                self._report(unreadable(path, error))
                continue
            if stat.S_ISDIR(status.st_mode):
                yield from self._directory(path, status, frame, stack)
                if stack[-1] is not frame:
                    return
            elif everything or not self._rules.excludes_file(path[start:]):
                if self._waiting:
                    yield from self._let_in()
                yield path, status

    def _directory(
        self, path: bytes, status: os.stat_result, above: _Frame, stack: list[_Frame]
    ) -> Iterator[Item]:
        decision = above.decision
        if decision is not Decision.ENTER_ALL:
            decision = self._rules.directory(path[self._start :])
        if decision is Decision.SKIP:
            return
        self._waiting.append((path, status))
        if decision is not Decision.PASS:
            yield from self._let_in()
        if status.st_dev == above.device or not self._mounts.is_pseudo(status.st_dev):
            stack += self._enter(path, status, decision)

    def _let_in(self) -> Iterator[Item]:
        waiting, self._waiting = self._waiting, []
        yield from waiting

    def _enter(self, path: bytes, status: os.stat_result, decision: Decision) -> list[_Frame]:
        """The frame of a directory, or nothing when it cannot be listed."""
        try:
            listed = self._opener.names(path, status)
        except OSError as error:
            self._report(unreadable(path, error, status.st_uid))
            listed = []
        prefix = path + b"/" if path else b""
        names = [name.encode(_ENCODING, _ERRORS) for name in listed]
        names.sort(reverse=True)
        if names and len(prefix) + NAME_LIMIT > PATH_LIMIT:
            names = self._fitting(prefix, names, PATH_LIMIT - len(prefix))
        elif max(map(len, names), default=0) > NAME_LIMIT:
            names = self._fitting(prefix, names, NAME_LIMIT)
        return [_Frame(path, prefix, names, decision, status.st_dev)]

    def _fitting(self, prefix: bytes, names: list[bytes], limit: int) -> list[bytes]:
        for name in names:
            if len(name) > limit:
                self._report(Problem((prefix + name)[:PATH_LIMIT], "the path is too long"))
        return [name for name in names if len(name) <= limit]
