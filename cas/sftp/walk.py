"""Walks roots over SFTP, in path order, with the rules of `cas.agent.walk`.

A listing costs several round trips, so directories are listed some way ahead of the walk, those
that come next first: what is still to come of the directories on the stack, the innermost first.

A root is what it resolves to over there (`~` is where a session begins), and its entries stand
under the path as it was named. Below a root nothing is followed. Of the kernel's own file systems,
which SFTP does not tell from others, /proc and /sys are listed but not entered, unless a root lies
in one.
"""

from __future__ import annotations

import errno
import posixpath
from collections.abc import Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Protocol

from cas.agent.roots import Root, entry_path
from cas.agent.walk import BATCH, Report, Rules, groups, merged
from cas.entry import NAME_LIMIT, PATH_LIMIT, Problem, path_order
from cas.errors import SourceError
from cas.ignore import Decision
from cas.transport.sftp import Attributes, Listed

AHEAD = 64  # directories that are listed before their turn
KERNELS = (b"/proc", b"/sys")
HINT = "log in as a user who may read it"

Item = tuple[bytes, Attributes]


class Server(Protocol):
    """What is asked of the server. The futures raise OSError for what it refuses, and CasError
    when it is given up."""

    def list(self, path: bytes, /) -> Future[list[Listed]]:
        """What is in a directory."""

    def look(self, path: bytes, /) -> Future[Attributes]:
        """What a path points to."""

    def real(self, path: bytes, /) -> Future[bytes]:
        """A path without symbolic links."""


@dataclass(frozen=True, slots=True)
class Place:
    """An admitted root, and where the server has it."""

    root: Root
    real: bytes

    def path_of(self, path: bytes) -> bytes:
        """The server's path of the entry path `path`, at or below the root."""
        below = path[len(self.root.path) :].lstrip(b"/")
        return self.real.rstrip(b"/") + b"/" + below if below else self.real

    def has(self, path: bytes) -> bool:
        """Whether it lies at or below the root."""
        mine = self.root.path
        return not mine or path == mine or path.startswith(mine + b"/")


class Places:
    """The admitted roots of a scan, in path order."""

    def __init__(self, places: Iterable[Place]) -> None:
        by_path = {place.root.path: place for place in places}
        self._by_path = {path: by_path[path] for path in sorted(by_path, key=path_order)}

    @property
    def roots(self) -> list[Root]:
        """Them as the agent's walk has them."""
        return [place.root for place in self._by_path.values()]

    def of(self, root: Root) -> Place:
        """Where a root is."""
        return self._by_path[root.path]

    def path_of(self, path: bytes) -> bytes:
        """The server's path of an entry path; below the innermost root that it lies in."""
        inner = [place for place in self._by_path.values() if place.has(path)]
        return inner[-1].path_of(path) if inner else b"/" + path


def admit(server: Server, roots: Iterable[bytes], report: Report) -> Places:
    """The roots that a tier names (absolute, or `~` first) and that are there; `report` is told of
    the others. Raises CasError when the server is given up."""
    found = (_admitted(server, root, report) for root in roots)
    return Places(place for place in found if place is not None)


def _admitted(server: Server, root: bytes, report: Report) -> Place | None:
    try:
        if root == b"~" or root.startswith(b"~/"):
            root = server.real(b".").result() + root[1:]
        path = entry_path(posixpath.normpath(root))
        real = server.real(b"/" + path).result()
        server.look(real).result()
    except SourceError as error:
        report(Problem(root.lstrip(b"/")[:PATH_LIMIT], error.what))
    except OSError as error:
        reason = f"cannot be reached: {error.strerror or error}"
        report(Problem(root.lstrip(b"/")[:PATH_LIMIT], reason))
    else:
        parts = path.split(b"/")
        above = tuple(b"/".join(parts[:count]) for count in range(1, len(parts)))
        return Place(Root(path, above), real)
    return None


def walk(
    server: Server, places: Places, rules: Rules, report: Report
) -> Generator[list[Item], None, None]:
    """Each name below and above the roots with what it is, in path order, once, some of them at a
    time. `report` is told of what cannot be looked at. Raises CasError when the server is given
    up."""
    seen: set[bytes] = set()
    for group in groups(places.roots):
        # The innermost comes first: what it says of a name counts.
        walks = [
            _Walk(server, places.of(root), rules, report).batches() for root in reversed(group)
        ]
        for batch in walks[0] if len(walks) == 1 else merged(walks):
            yield [item for item in batch if item[0] not in seen] if seen else batch
        seen.update(group[0].ancestors)


def problem_of(path: bytes, error: OSError) -> Problem:
    """The problem that `path` could not be read."""
    if error.errno in (errno.ENOENT, errno.ESTALE):
        return Problem(path, "was gone when its turn came", left_out=False)
    hint = HINT if error.errno in (errno.EACCES, errno.EPERM) else ""
    return Problem(path, f"cannot be read: {error.strerror or error}", hint)


@dataclass(slots=True)
class _Frame:
    """A directory on the stack: its names that are still to come, the next one last, and the
    listings of those that were begun, of all from `begun` on."""

    path: bytes
    decision: Decision
    names: list[Listed]
    begun: int
    ahead: dict[bytes, tuple[Decision, Future[list[Listed]] | None]] = field(default_factory=dict)


class _Walk:
    """The walk of one root."""

    def __init__(self, server: Server, place: Place, rules: Rules, report: Report) -> None:
        self._server = server
        self._place = place
        self._rules = rules
        self._report = report
        root = place.root.path
        self._start = len(root) + 1 if root else 0  # of the path that rules see
        self._in_kernel = any(_is_within(place.real, kernel) for kernel in KERNELS)
        self._waiting: list[Item] = []  # directories that go in only with something below them
        self._found: list[Item] = []
        self._stack: list[_Frame] = []
        self._listings: set[Future[list[Listed]]] = set()  # begun, and their turn has not come

    def batches(self) -> Iterator[list[Item]]:
        """What is above the root, the root, and what is below it. No listing shows the first two,
        so who owns them is called as the root's own listing calls him, or that of its directory."""
        root = self._place.root
        looks = [(path, self._server.look(b"/" + path)) for path in (*root.ancestors, root.path)]
        attributes = None
        for path, look in looks:
            try:
                attributes = look.result()
            except OSError as error:
                self._report(problem_of(path, error))
                attributes = None
            if attributes is not None and path:
                self._found.append((path, attributes))
        if attributes is not None:
            directory = self._place.real
            if not attributes.is_directory:
                directory = posixpath.dirname(directory)
            try:
                listing = self._server.list(directory)
                self._name_owners(listing)
                if attributes.is_directory:
                    yield from self._below(listing)
            finally:
                for begun in self._listings:
                    begun.cancel()
        yield self._found

    def _name_owners(self, listing: Future[list[Listed]]) -> None:
        with suppress(OSError):
            shown = [listed.attributes for listed in listing.result()]
            users = {one.uid: one.user for one in shown if one.user}
            groups = {one.gid: one.group for one in shown if one.group}
            self._found = [
                (path, replace(a, user=users.get(a.uid, b""), group=groups.get(a.gid, b"")))
                for path, a in self._found
            ]

    def _below(self, listing: Future[list[Listed]]) -> Iterator[list[Item]]:
        self._enter(self._place.root.path, self._rules.directory(b""), listing)
        while self._stack:
            frame = self._stack[-1]
            if len(self._found) >= BATCH:
                found, self._found = self._found, []
                yield found
            if frame.names:
                self._take(frame, frame.names.pop())
            else:
                self._leave(frame)

    def _take(self, frame: _Frame, listed: Listed) -> None:
        path = _joined(frame.path, listed.name)
        if listed.attributes.is_directory:
            self._directory(path, listed, frame)
        elif frame.decision is Decision.ENTER_ALL or not self._excludes(path):
            self._let_in()
            self._found.append((path, listed.attributes))

    def _excludes(self, path: bytes) -> bool:
        return self._rules.excludes_file(path[self._start :])

    def _directory(self, path: bytes, listed: Listed, above: _Frame) -> None:
        """Let a directory in, or wait with it; and enter it, if it is to be gone through."""
        begun = above.ahead.pop(listed.name) if listed.name in above.ahead else None
        decision, listing = begun or self._begin(above, listed)
        if decision is Decision.SKIP:
            return
        self._waiting.append((path, listed.attributes))
        if decision is not Decision.PASS:
            self._let_in()
        if listing is not None:
            self._enter(path, decision, listing)
        elif self._waiting and self._waiting[-1][0] == path:
            self._waiting.pop()

    def _begin(self, above: _Frame, listed: Listed) -> tuple[Decision, Future[list[Listed]] | None]:
        """What becomes of a directory, and its listing unless it is not entered."""
        path = _joined(above.path, listed.name)
        decision = above.decision
        if decision is not Decision.ENTER_ALL:
            decision = self._rules.directory(path[self._start :])
        is_kernel = not self._in_kernel and self._place.path_of(path) in KERNELS
        if decision is Decision.SKIP or is_kernel:
            return decision, None
        return decision, self._list(path)

    def _list(self, path: bytes) -> Future[list[Listed]]:
        listing = self._server.list(self._place.path_of(path))
        self._listings.add(listing)
        return listing

    def _let_in(self) -> None:
        if self._waiting:
            self._found += self._waiting
            self._waiting.clear()

    def _enter(self, path: bytes, decision: Decision, listing: Future[list[Listed]]) -> None:
        """Put a directory on the stack, with no names when it cannot be listed."""
        self._look_ahead()
        try:
            names = self._sound(path, listing.result())
        except OSError as error:
            self._report(problem_of(path, error))
            names = []
        self._listings.discard(listing)
        self._stack.append(_Frame(path, decision, names, len(names)))
        self._look_ahead()

    def _look_ahead(self) -> None:
        """Begin listings of directories whose turn will come, as many as are good."""
        for frame in reversed(self._stack):
            frame.begun = min(frame.begun, len(frame.names))
            while frame.begun and len(self._listings) < AHEAD:
                frame.begun -= 1
                listed = frame.names[frame.begun]
                if listed.attributes.is_directory:
                    frame.ahead[listed.name] = self._begin(frame, listed)

    def _leave(self, frame: _Frame) -> None:
        """Take a directory off the stack; one that still waits had nothing to go in with."""
        self._stack.pop()
        if self._waiting and self._waiting[-1][0] == frame.path:
            self._waiting.pop()

    def _sound(self, path: bytes, listed: Sequence[Listed]) -> list[Listed]:
        """The names that can be used, each once, in backward order."""
        by_name: dict[bytes, Listed] = {}
        for one in listed:
            name = one.name
            if name in (b".", b".."):
                continue
            if not name or name in by_name or b"/" in name or b"\0" in name:
                self._report(Problem(path, f"the server gives a name that is none: {name!r:.300}"))
            elif len(name) > NAME_LIMIT or len(path) + 1 + len(name) > PATH_LIMIT:
                self._report(Problem(_joined(path, name)[:PATH_LIMIT], "the path is too long"))
            else:
                by_name[name] = one
        return [by_name[name] for name in sorted(by_name, reverse=True)]


def _joined(path: bytes, name: bytes) -> bytes:
    return path + b"/" + name if path else name


def _is_within(path: bytes, outer: bytes) -> bool:
    return path == outer or path.startswith(outer + b"/")
