"""Which paths of a tier are left out: its `exclude` and `include` rules, for the walker.

Both lists are read by the rules of gitignore(5), as git itself applies them to one `.gitignore`
at the tier's path: the last line that matches a path decides, `!` turns a line round, what
matches a directory holds for everything below it, and no `!` line reaches below such a directory.
A path is left out when `exclude` matches it and `include` does not. So what `include` names comes
in whatever `exclude` says, and below an excluded directory too, which git cannot do.

The walk goes from the top and asks for each directory once; the answer carries all that its
children need to know:

    ENTER      it goes in; ask about each child
    ENTER_ALL  it goes in with everything below: nothing more to ask
    PASS       it is left out, but some path below it may be included: look through it, ask about
               each child, and let it in itself only when one of those goes in
    SKIP       it is left out with everything below: nothing more to ask

Speed: neighbouring lines of one sense (without `!`) ask the same question, so that their order
does not matter; they become one run, of a set of names, a tuple of suffixes, and two expressions.
Most plans need one run, and a file costs about a microsecond.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TypeAlias

from cas.errors import FormatError, LimitError
from cas.wildmatch import (
    DOUBLE_STAR,
    STAR,
    Glob,
    glob_regex,
    literal_of,
    parse_segments,
    path_regex,
    reach_regex,
    suffix_of,
)

MAX_RULES_SIZE = 64 * 1024  # characters of one list; no .gitignore of a large project comes near
_MAX_KNOWN = 4096  # directories whose decision is remembered; a walk needs the ones it is in

_Test: TypeAlias = Callable[[bytes], object]


class Decision(enum.Enum):
    """What becomes of a directory and of what is below it (see the head of this file)."""

    ENTER = enum.auto()
    ENTER_ALL = enum.auto()
    PASS = enum.auto()
    SKIP = enum.auto()


@dataclass(frozen=True, slots=True)
class Rule:
    """One gitignore line: with one segment and not `anchored` it matches names at any depth."""

    segments: tuple[Glob, ...]
    anchored: bool
    negated: bool
    directories_only: bool


def parse_rule(line: str) -> Rule:
    """The rule that `line` is; raises FormatError for a line that could never match a path.

    That is stricter than git, which takes comments, empty lines and broken patterns in silence.
    """
    try:
        return _parse_rule(line)
    except FormatError as error:
        raise type(error)(error.what, where=repr(line), advice=error.advice) from None


def _parse_rule(line: str) -> Rule:
    if "\0" in line or "\n" in line:
        raise FormatError("a rule is one line without NUL", advice="? stands for any character")
    if line.startswith("#"):
        raise FormatError("a comment, not a rule", advice=r"\# is a name's own first #")
    text = _trimmed(line)
    pattern = text.removeprefix("!")
    body = pattern.removesuffix("/").encode("utf-8", "surrogateescape")
    if body in (b"", b"/"):
        raise FormatError("matches nothing", advice="* stands for everything")
    segments = parse_segments(body.removeprefix(b"/"))
    anchored = b"/" in body
    if len(segments) == 2 and segments[0] == DOUBLE_STAR:
        segments, anchored = segments[1:], False
    if segments == (DOUBLE_STAR,):
        segments, anchored = ((STAR,),), False
    return Rule(segments, anchored, pattern != text, pattern.endswith("/"))


def _trimmed(line: str) -> str:
    """`line` without the spaces at its end; one after a backslash stays."""
    text = line.rstrip(" ")
    escaped = (len(text) - len(text.rstrip("\\"))) % 2 == 1
    return text + " " if escaped and text != line else text


class Matcher:
    """The rules of a tier, for the walk of each of its paths.

    Paths are relative to the tier's path, without leading or trailing slash; b"" is the tier's
    path itself, which is always in. A name that is no directory (a symbolic link to one, a
    socket) is a file here. Raises FormatError for a line that is no rule, LimitError when a list
    is over MAX_RULES_SIZE.
    """

    __slots__ = ("_exclude", "_include", "_known", "_root")

    def __init__(self, exclude: Iterable[str] = (), include: Iterable[str] = ()) -> None:
        self._exclude = _compile(exclude)
        self._include = _compile(include)
        self._root = Decision.ENTER if self._exclude.reaches(b"") else Decision.ENTER_ALL
        self._known = {b"": self._root}

    def directory(self, path: bytes) -> Decision:
        """What becomes of the directory `path`, with the rules on those above it applied."""
        known = self._known.get(path)
        return self._resolve(path) if known is None else known

    def excludes_file(self, path: bytes) -> bool:
        """Whether the file `path` is left out, by itself or with a directory above it."""
        parent, _, name = path.rpartition(b"/")
        decision = self._known.get(parent) or self._resolve(parent)
        if decision is Decision.ENTER:
            return _matches(self._exclude.file_runs, path, name) and not _matches(
                self._include.file_runs, path, name
            )
        if decision is Decision.PASS:
            return not _matches(self._include.file_runs, path, name)
        return decision is Decision.SKIP

    def _resolve(self, path: bytes) -> Decision:
        """Decide about `path` and those above it, from the nearest known one down."""
        if len(self._known) >= _MAX_KNOWN:
            self._known = {b"": self._root}
        unknown = []
        while path not in self._known:
            unknown.append(path)
            path = path.rpartition(b"/")[0]
        decision = self._known[path]
        for below in reversed(unknown):
            decision = self._known[below] = self._below(decision, below)
        return decision

    def _below(self, above: Decision, path: bytes) -> Decision:
        """What becomes of directory `path` when `above` became of the one it is in."""
        if above in (Decision.ENTER_ALL, Decision.SKIP):
            return above
        name = path.rpartition(b"/")[2]
        if _matches(self._include.directory_runs, path, name):
            return Decision.ENTER_ALL
        if above is Decision.PASS or _matches(self._exclude.directory_runs, path, name):
            return Decision.PASS if self._include.reaches(path) else Decision.SKIP
        return Decision.ENTER if self._exclude.reaches(path) else Decision.ENTER_ALL


@dataclass(frozen=True, slots=True)
class _Run:
    """Rules of one sense that follow each other: any of them matching settles the question."""

    negated: bool
    names: frozenset[bytes]
    suffixes: tuple[bytes, ...]
    name_test: _Test | None
    paths: frozenset[bytes]
    path_test: _Test | None


@dataclass(frozen=True, slots=True)
class _Rules:
    """One list, compiled for either kind of path; runs stand last one first."""

    file_runs: tuple[_Run, ...]
    directory_runs: tuple[_Run, ...]
    anywhere: bool  # some rule matches names at any depth
    reach: _Test | None

    def reaches(self, directory: bytes) -> bool:
        """Whether any path below `directory` (b"" is the top) could match."""
        if self.anywhere:
            return True
        below = b"/" + directory if directory else b""
        return self.reach is not None and self.reach(below) is not None


def _matches(runs: tuple[_Run, ...], path: bytes, name: bytes) -> bool:
    """Whether the last rule that matches `path` is there and is no `!` rule."""
    for run in runs:
        if (
            name in run.names
            or name.endswith(run.suffixes)
            or path in run.paths
            or (run.name_test is not None and run.name_test(name))
            or (run.path_test is not None and run.path_test(path))
        ):
            return not run.negated
    return False


def _compile(lines: Iterable[str]) -> _Rules:
    texts = tuple(lines)
    if sum(map(len, texts)) > MAX_RULES_SIZE:
        raise LimitError(f"more than {MAX_RULES_SIZE} characters of rules")
    rules = [parse_rule(line) for line in texts]
    positive = [rule for rule in rules if not rule.negated]
    return _Rules(
        file_runs=_runs([rule for rule in rules if not rule.directories_only]),
        directory_runs=_runs(rules),
        anywhere=any(not rule.anchored for rule in positive),
        reach=_any_of(reach_regex(rule.segments) for rule in positive if rule.anchored),
    )


def _runs(rules: Sequence[Rule]) -> tuple[_Run, ...]:
    """The runs that `rules` fall into, last one first."""
    grouped = groupby(reversed(rules), key=lambda rule: rule.negated)
    runs = [_run(negated, list(group)) for negated, group in grouped]
    while runs and runs[-1].negated:  # nothing before it that it could take back
        runs.pop()
    return tuple(runs)


def _run(negated: bool, rules: list[Rule]) -> _Run:
    names, suffixes, globs = set(), [], []
    for rule in rules:
        if rule.anchored:
            continue
        glob = rule.segments[0]
        literal, suffix = literal_of(glob), suffix_of(glob)
        if literal is not None:
            names.add(literal)
        elif suffix is not None:
            suffixes.append(suffix)
        else:
            globs.append(glob_regex(glob))
    paths, path_globs = _split_paths([rule.segments for rule in rules if rule.anchored])
    return _Run(
        negated, frozenset(names), tuple(suffixes), _any_of(globs), paths, _any_of(path_globs)
    )


def _split_paths(patterns: list[tuple[Glob, ...]]) -> tuple[frozenset[bytes], list[bytes]]:
    """The patterns without a wildcard as paths, the others as expressions."""
    paths, regexes = set(), []
    for segments in patterns:
        literals = [literal_of(glob) for glob in segments]
        plain = [literal for literal in literals if literal is not None]
        if len(plain) == len(segments):
            paths.add(b"/".join(plain))
        else:
            regexes.append(path_regex(segments))
    return frozenset(paths), regexes


def _any_of(regexes: Iterable[bytes]) -> _Test | None:
    alternatives = list(regexes)
    return re.compile(b"|".join(alternatives), re.DOTALL).fullmatch if alternatives else None
