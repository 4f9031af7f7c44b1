"""Where the redundancy lies: directories, archives, kinds of files, single files.

The `repeated` bytes of a file came before, in an earlier tier or earlier in its own, and add up:
over all files they are what is unpacked less what is distinct. `shared` are those that another tier
has too, whichever is the first, so that a pair of files has them twice.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from itertools import islice

from cas.redundancy.count import Count
from cas.redundancy.kinds import NONE, kind_of

KINDS_LIMIT = 10_000  # kept apart; what comes after has the kind of what has no extension
DOMINANT = 0.9  # a directory is not named if one name in it has this much of what it has


@dataclass(slots=True)
class Place:
    """Bytes of some files; `name` is a path or a kind. `tier` is a number, `partners` a set."""

    tier: int
    name: bytes
    files: int = 0
    unpacked: int = 0
    repeated: int = 0
    shared: int = 0
    partners: int = 0

    def add(self, other: Place) -> None:
        """Count what is in `other` too."""
        self.files += other.files
        self.unpacked += other.unpacked
        self.repeated += other.repeated
        self.shared += other.shared
        self.partners |= other.partners


@dataclass(frozen=True, slots=True)
class Places:
    """The places with the most, those first: `directories` (with all below them), `archives` that
    were taken apart and `kinds` by what is repeated, `files` that are no archives by what is
    shared. What has none of it is not among them."""

    directories: list[Place]
    archives: list[Place]
    kinds: list[Place]
    files: list[Place]


def find_places(counted: Count, *, most: int) -> Places:
    """Up to `most` places of each sort."""
    directories, archives, files = _Top(most), _Top(most), _Top(most)
    kinds: dict[bytes, Place] = {}
    row, paths = 0, iter(counted.paths)
    for tier, totals in enumerate(counted.tiers):
        tree = _Tree(tier, directories)
        for path in islice(paths, totals.files):
            place = Place(tier, path, 1, counted.unpacked[row], counted.repeated[row],
                          counted.shared[row], counted.partners[row])  # fmt: skip
            if counted.archives[row]:
                archives.offer(place.repeated, place)
            else:
                files.offer(place.shared, place)
            kind = kind_of(path)
            if kind not in kinds and len(kinds) >= KINDS_LIMIT:
                kind = NONE
            kinds.setdefault(kind, Place(-1, kind)).add(place)
            tree.add(place)
            row += 1
        tree.end()
    by_kind = _Top(most)
    for place in kinds.values():
        by_kind.offer(place.repeated, place)
    return Places(directories.places(), archives.places(), by_kind.places(), files.places())


@dataclass(slots=True)
class _Top:
    """Keeps the places with the most."""

    most: int
    _kept: list[tuple[int, int, Place]] = field(default_factory=list)
    _offered: int = 0

    def offer(self, size: int, place: Place) -> None:
        """Take `place` if it has any and is one of those with the most; of equals the first."""
        if not size or not self.most:
            return
        self._offered += 1
        item = (size, -self._offered, place)
        if len(self._kept) < self.most:
            heapq.heappush(self._kept, item)
        elif item[:2] > self._kept[0][:2]:
            heapq.heapreplace(self._kept, item)

    def places(self) -> list[Place]:
        """Those with the most first."""
        return [place for *_, place in sorted(self._kept, key=lambda item: item[:2], reverse=True)]


class _Tree:
    """Adds up directories of files that come in path order; only those that lead to the last one
    are in memory."""

    def __init__(self, tier: int, top: _Top) -> None:
        self._tier = tier
        self._top = top
        self._open: list[tuple[Place, list[int]]] = []  # and the most that one name in it has

    def add(self, file: Place) -> None:
        """The next file."""
        parts = file.name.split(b"/")[:-1]
        while self._open and not self._holds(parts):
            self._close()
        for depth in range(len(self._open), len(parts)):
            self._open.append((Place(self._tier, b"/".join(parts[: depth + 1])), [0]))
        if self._open:
            directory, most = self._open[-1]
            directory.add(file)
            most[0] = max(most[0], file.repeated)

    def end(self) -> None:
        """There are no more."""
        while self._open:
            self._close()

    def _holds(self, parts: list[bytes]) -> bool:
        depth = len(self._open)
        return b"/".join(parts[:depth]) == self._open[-1][0].name and depth <= len(parts)

    def _close(self) -> None:
        place, below = self._open.pop()
        if below[0] < DOMINANT * place.repeated:
            self._top.offer(place.repeated, place)
        if self._open:
            parent, most = self._open[-1]
            parent.add(place)
            most[0] = max(most[0], place.repeated)
