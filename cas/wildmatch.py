r"""gitignore patterns as regular expressions over the bytes of a path.

The language is that of git's wildmatch.c with WM_PATHNAME, byte by byte: `?` is one byte and `*`
any number, neither ever a slash; `[a-c]`, `[!a]`, `[[:digit:]]` one byte; `\x` is x itself; a
segment that is `**` stands for any number of directories. Other runs of `*` are one `*`, as
gitignore(5) says. A pattern that git takes and that can never match anything (`[` without `]`,
a `\` at the end) raises FormatError instead: silence would hide a slip of the pen.

    pattern --parse_segments--> globs, one per segment --path_regex, reach_regex--> regex text

The expressions cannot run away, whatever the pattern and the name: what stands between two stars
is searched for at its first place only, `(?:(?!piece)[^/])*piece`, which has one way to match.
That suffices, since a later place leaves less for the rest. Only what follows the last star is
tied to the end. The same holds for the segments between two `**`.

All are written for `fullmatch` with re.DOTALL.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import TypeAlias, TypeVar

from cas.errors import FormatError, LimitError

_T = TypeVar("_T")

STAR = -1
Glob: TypeAlias = tuple[int | frozenset[int], ...]  # a byte, a set of bytes, or STAR

MAX_SEGMENTS = 64  # the expression of reach_regex nests once for each

DOUBLE_STAR: Glob = (STAR, STAR)  # the segment `**`; within other segments stars never touch
_ANY = frozenset(range(256)) - {ord("/")}
_CLASSES = {
    b"alnum": (string.ascii_letters + string.digits).encode(),
    b"alpha": string.ascii_letters.encode(),
    b"blank": b" \t",
    b"cntrl": bytes([*range(32), 127]),
    b"digit": string.digits.encode(),
    b"graph": bytes(range(33, 127)),
    b"lower": string.ascii_lowercase.encode(),
    b"print": bytes(range(32, 127)),
    b"punct": string.punctuation.encode(),
    b"space": b" \t\n\r",  # as in git, which leaves out \v and \f
    b"upper": string.ascii_uppercase.encode(),
    b"xdigit": string.hexdigits.encode(),
}
_CLASS = re.compile(rb"\[:([^\]]*):\]")
_RANGE = re.compile(rb"-[^\]]", re.DOTALL)


def parse_segments(pattern: bytes) -> tuple[Glob, ...]:
    """The globs of `pattern`, which has no leading and no trailing slash.

    Raises FormatError for what can never match a path, LimitError over MAX_SEGMENTS.
    """
    segments = pattern.split(b"/")
    if len(segments) > MAX_SEGMENTS:
        raise LimitError(f"more than {MAX_SEGMENTS} names between slashes")
    return tuple(parse_glob(segment) for segment in segments)


def parse_glob(segment: bytes) -> Glob:
    """The glob of one path segment; raises FormatError for what can never match a name."""
    if segment in (b"", b".", b".."):
        raise FormatError(
            f"no path has the part {segment.decode()!r} between slashes",
            advice="rules are relative to each path of the tier: /build, docs/*.o, **/tmp",
        )
    if segment == b"**":
        return DOUBLE_STAR
    glob: list[int | frozenset[int]] = []
    at = 0
    while at < len(segment):
        part, at = _parse_part(segment, at)
        if part != STAR or glob[-1:] != [STAR]:
            glob.append(part)
    return tuple(glob)


def _parse_part(segment: bytes, at: int) -> tuple[int | frozenset[int], int]:
    """What stands at `at` and where the next part begins."""
    byte = segment[at : at + 1]
    if byte == b"*":
        return STAR, at + 1
    if byte == b"?":
        return _ANY, at + 1
    if byte == b"[":
        try:
            return _parse_bracket(segment, at + 1)
        except IndexError:
            raise FormatError("a [ without its ]", advice=r"\[ is the bracket itself") from None
    if byte == b"\\":
        if at + 1 == len(segment):
            raise FormatError(r"a \ with nothing after it", advice=r"\\ is the backslash itself")
        return segment[at + 1], at + 2
    return segment[at], at + 1


def _parse_bracket(segment: bytes, at: int) -> tuple[frozenset[int], int]:
    """The set whose `[` is just before `at`, and where the next part begins."""
    negated = segment[at] in b"!^"
    start = at = at + negated
    chosen: set[int] = set()
    low: int | None = None  # what a `-` that follows makes a range from
    while segment[at] != ord("]") or at == start:
        named = _CLASS.match(segment, at)
        if named:
            chosen.update(_class_bytes(named[1]))
            low, at = None, named.end()
        elif low is not None and _RANGE.match(segment, at):
            high, at = _bracket_byte(segment, at + 1)
            chosen.update(range(low, high + 1))
            low = None
        else:
            low, at = _bracket_byte(segment, at)
            chosen.add(low)
    return (_ANY - chosen if negated else _ANY & chosen), at + 1


def _bracket_byte(segment: bytes, at: int) -> tuple[int, int]:
    escaped = segment[at] == ord("\\")
    return segment[at + escaped], at + escaped + 1


def _class_bytes(name: bytes) -> bytes:
    if name not in _CLASSES:
        raise FormatError(
            f"no class of characters is called [:{name.decode(errors='replace')}:]",
            advice="there are " + ", ".join(known.decode() for known in _CLASSES),
        )
    return _CLASSES[name]


def literal_of(glob: Glob) -> bytes | None:
    """The one name that `glob` matches, or None when it has a wildcard."""
    literal = [part for part in glob if isinstance(part, int) and part != STAR]
    return bytes(literal) if len(literal) == len(glob) else None


def suffix_of(glob: Glob) -> bytes | None:
    """The s for which `glob` is a star and then s itself, or None when it is no such glob."""
    return literal_of(glob[1:]) if glob[0] == STAR else None


def glob_regex(glob: Glob) -> bytes:
    """What matches the names that `glob` does (not for DOUBLE_STAR)."""
    first, *rest = _split(glob, STAR)
    pieces = [b"".join(map(_part_regex, piece)) for piece in rest]
    regex = b"".join(map(_part_regex, first))
    for piece in pieces[:-1]:
        regex += _first_place(piece, b"[^/]")
    return regex + b"[^/]*" + pieces[-1] if pieces else regex


def path_regex(segments: Sequence[Glob]) -> bytes:
    """What matches the relative paths that the pattern of `segments` does."""
    first, *rest = ([glob_regex(glob) for glob in run] for run in _split(segments, DOUBLE_STAR))
    if not rest:
        return b"/".join(first)
    regex = b"".join(segment + b"/" for segment in first)
    for run in rest[:-1]:
        regex += _first_place(b"".join(segment + b"/" for segment in run), b"[^/]+/")
    return regex + (b"(?:[^/]+/)*" + b"/".join(rest[-1]) if rest[-1] else b".+")


def reach_regex(segments: Sequence[Glob]) -> bytes:
    """What matches `/` + directory when some path below that directory could match `segments`."""
    first, *rest = _split(segments, DOUBLE_STAR)
    regex = b"(?:/.*)?" if rest else b""
    for glob in reversed(first if rest else first[:-1]):
        regex = b"(?:/" + glob_regex(glob) + regex + b")?"
    return regex


def _first_place(piece: bytes, step: bytes) -> bytes:
    return b"(?:(?!" + piece + b")" + step + b")*" + piece if piece else b""


def _split(parts: Iterable[_T], at: _T) -> list[list[_T]]:
    runs: list[list[_T]] = [[]]
    for part in parts:
        if part == at:
            runs.append([])
        else:
            runs[-1].append(part)
    return runs


def _part_regex(part: int | frozenset[int]) -> bytes:
    if isinstance(part, int):
        return re.escape(bytes([part]))
    return b"[^/]" if part == _ANY else _set_regex(part)


def _set_regex(chosen: frozenset[int]) -> bytes:
    if not chosen:
        return b"(?!)"
    runs = groupby(enumerate(sorted(chosen)), key=lambda place: place[1] - place[0])
    spans = ([byte for _, byte in run] for _, run in runs)
    return b"[" + b"".join(b"\\x%02x-\\x%02x" % (span[0], span[-1]) for span in spans) + b"]"
