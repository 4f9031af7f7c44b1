"""What a search is for: names by pattern, sizes, kinds, digests.

A pattern without a slash is for last names. With one it is for paths: from the source's root where
it begins with a slash, else below any directory. What lies in an archive has two paths, the whole
one and that in its archive, and either will do.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from cas.entry import Entry, Kind
from cas.errors import FormatError, UsageError
from cas.wildmatch import parse_segments, path_regex

SEPARATOR = b"!/"
DECIMAL = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
BINARY = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}
_SIZE = re.compile("([+-]?)([0-9]{1,15})(|[kKMGT]|[KMGT]i)B?")

NameTest = Callable[[bytes], bool]


@dataclass(frozen=True, slots=True)
class Sizes:
    """Sizes from `least` to `most` bytes, both included; None where there is no end."""

    least: int | None = None
    most: int | None = None

    def has(self, size: int) -> bool:
        """Whether `size` is one of them; sizes that are not known, below 0, are not."""
        below = self.most is None or size <= self.most
        return size >= (self.least or 0) and below


@dataclass(frozen=True, slots=True)
class Wanted:
    """What an entry must be."""

    name: NameTest | None = None
    sizes: tuple[Sizes, ...] = ()
    kinds: frozenset[Kind] = frozenset()

    def has(self, entry: Entry) -> bool:
        """Whether `entry` is wanted, whatever it holds."""
        if self.kinds and entry.kind not in self.kinds:
            return False
        if self.sizes and not (
            entry.kind is Kind.FILE and all(sizes.has(entry.size) for sizes in self.sizes)
        ):
            return False
        return self.name is None or self.name(entry.path)


def by_glob(pattern: bytes, *, ignore_case: bool = False) -> NameTest:
    """A test of paths, without their leading slash, by a pattern as in .gitignore. Raises
    UsageError for one that can never match."""
    whole = pattern.strip(b"/")
    try:
        segments = parse_segments(whole)
    except FormatError as error:
        shown = pattern.decode("utf-8", "surrogateescape")
        raise UsageError(error.what, where=shown, advice=error.advice) from error
    matches = re.compile(path_regex(segments), _flags(ignore_case)).fullmatch
    if b"/" not in pattern:
        return lambda path: bool(matches(path.rpartition(b"/")[2]))
    if pattern.startswith(b"/"):
        return lambda path: bool(matches(path) or matches(path.rpartition(SEPARATOR)[2]))
    below = re.compile(b"(?:.*/)?" + path_regex(segments), _flags(ignore_case)).fullmatch
    return lambda path: bool(below(path))


def by_regex(pattern: bytes, *, ignore_case: bool = False) -> NameTest:
    """A test of paths, searched with a leading slash, by a regular expression of Python over bytes.
    Raises UsageError for one that is wrong."""
    try:
        search = re.compile(pattern, _flags(ignore_case)).search
    except re.error as error:
        shown = pattern.decode("utf-8", "surrogateescape")
        raise UsageError(f"not a regular expression: {error}", where=shown) from error
    return lambda path: bool(search(b"/" + path))


def _flags(ignore_case: bool) -> int:
    return re.DOTALL | (re.IGNORECASE if ignore_case else 0)


def parse_sizes(text: str) -> Sizes:
    """`+1M` for more than that, `-64Ki` for less, `0` for just that; k, M, G, T are decimal, Ki,
    Mi, Gi, Ti binary. Raises UsageError."""
    found = _SIZE.fullmatch(text)
    if found is None:
        raise UsageError("not a size", where=text, advice="write +1M, -64Ki, 4096")
    sign, digits, unit = found.groups()
    size = int(digits) * {**DECIMAL, **BINARY, "K": 10**3}[unit]
    if sign == "+":
        return Sizes(least=size + 1)
    return Sizes(most=size - 1) if sign else Sizes(size, size)
