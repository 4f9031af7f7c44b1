"""Where the redundancy lies: directories, archives, kinds of files, single files.

The `repeated` bytes of a file came before, in an earlier tier or earlier in its own, and add up:
over all files they are what is unpacked less what is distinct. `shared` are those that another tier
has too, whichever is the first, so that a pair of files has them twice.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from itertools import islice

from cas.redundancy.kinds import NONE, kind_of
from cas.redundancy.tally import ARCHIVE, FILE, REST, Count

KINDS_LIMIT = 10_000  # kept apart; what comes after has the kind of what has no extension
INSIDE = b"!/"
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
    were taken apart and `kinds` by what is repeated; `files` that are no archives by what is shared
    and came first there, so that each stands here once. What has none of it is not among them."""

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
        tree = _Tree(tier, directories, archives)
        for path in islice(paths, totals.rows):
            sort = counted.sorts[row]
            place = Place(tier, path, int(sort != REST), counted.unpacked[row],
                          counted.repeated[row], counted.shared[row],
                          counted.partners[row])  # fmt: skip
            if sort == ARCHIVE:
                archives.offer(place.repeated, place)
            elif sort == FILE:
                files.offer(place.shared - place.repeated, place)
            kind = kind_of(path.removesuffix(INSIDE) if sort == REST else path)
            if kind not in kinds:
                kind = kind if len(kinds) < KINDS_LIMIT else NONE
                kinds.setdefault(kind, Place(-1, kind))
            kinds[kind].add(place)
            tree.add(place, begins_archive=sort == REST)
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
        if size <= 0 or not self.most:
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


@dataclass(slots=True)
class _Directory:
    """A directory, or an archive that it was looked into; `most` is what one name in it has."""

    place: Place
    is_archive: bool = False
    most: int = 0


class _Tree:
    """Adds up directories of files that come in path order; only those that lead to the last one
    are in memory."""

    def __init__(self, tier: int, directories: _Top, archives: _Top) -> None:
        self._tier = tier
        self._directories = directories
        self._archives = archives
        self._open: list[_Directory] = []

    def add(self, file: Place, *, begins_archive: bool) -> None:
        """The next file; or what of an archive is no member's, which stands before those."""
        name = file.name.rpartition(b"/")[0]
        if not self._open or name != self._open[-1].place.name:
            self._enter(name.split(b"/") if name else [])
        if self._open:
            directory = self._open[-1]
            directory.is_archive |= begins_archive
            directory.place.add(file)
            directory.most = max(directory.most, file.repeated)

    def end(self) -> None:
        """There are no more."""
        while self._open:
            self._close()

    def _enter(self, parts: list[bytes]) -> None:
        """Leave and begin directories until that of these parts is the last."""
        while self._open and not self._holds(parts):
            self._close()
        for depth in range(len(self._open), len(parts)):
            self._open.append(_Directory(Place(self._tier, b"/".join(parts[: depth + 1]))))

    def _holds(self, parts: list[bytes]) -> bool:
        depth = len(self._open)
        return b"/".join(parts[:depth]) == self._open[-1].place.name and depth <= len(parts)

    def _close(self) -> None:
        directory = self._open.pop()
        place = directory.place
        if self._open:
            parent = self._open[-1]
            parent.place.add(place)
            parent.most = max(parent.most, place.repeated)
        if directory.is_archive:
            place.name = place.name.removesuffix(INSIDE[:1])
            self._archives.offer(place.repeated, place)
        elif directory.most < DOMINANT * place.repeated:
            self._directories.offer(place.repeated, place)
