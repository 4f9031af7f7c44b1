"""What counting comes to: sums by sets of tiers, and what each file has in common with others."""

from __future__ import annotations

from array import array
from collections import defaultdict
from dataclasses import dataclass, field

from cas.redundancy.paths import Paths

FILE, ARCHIVE, REST = 0, 1, 2  # what a row is of


@dataclass(slots=True)
class Sum:
    """Distinct chunks, and those of them that are not held (if that was asked)."""

    bytes: int = 0
    chunks: int = 0
    missing: int = 0
    missing_chunks: int = 0


@dataclass(slots=True)
class TierCount:
    """What a tier has, duplicates included: `logical` as the source counts it, `unpacked` the bytes
    of its chunks, which is what lies in archives instead of the archives, and no holes."""

    name: str
    files: int = 0  # with any content
    rows: int = 0  # of them, or of their members, in a `Count`
    logical: int = 0
    unpacked: int = 0
    chunks: int = 0
    unknown: int = 0  # files whose recipes are not here: each counts as one chunk


@dataclass(slots=True)
class Count:
    """What was counted. `groups` are sums by set of tiers (bit n is tier n) and label.

    The others have a row for each file, numbered from 0 through all tiers in path order: `unpacked`
    bytes of its chunks, of those `repeated` that came before (in an earlier tier, or earlier in
    this one, or in the file), of those `shared` that another tier has too, wherever it stands;
    `partners` is the set of tiers that it shares with, its own among them. `sorts` says what a row
    is of: a FILE, or an ARCHIVE that was taken apart. Where it was looked into archives, their
    members are the files, `ARCHIVE!/MEMBER`, and before them stands the REST of the archive,
    `ARCHIVE!/`, which is no member's.
    """

    tiers: list[TierCount] = field(default_factory=list)
    groups: defaultdict[tuple[int, int], Sum] = field(default_factory=lambda: defaultdict(Sum))
    unpacked: array[int] = field(default_factory=lambda: array("Q"))
    repeated: array[int] = field(default_factory=lambda: array("Q"))
    shared: array[int] = field(default_factory=lambda: array("Q"))
    partners: list[int] = field(default_factory=list)
    sorts: bytearray = field(default_factory=bytearray)
    paths: Paths = field(default_factory=Paths)

    def by_set(self) -> dict[int, Sum]:
        """The sums by set of tiers alone."""
        sums: dict[int, Sum] = {}
        for (tiers, _), group in self.groups.items():
            total = sums.setdefault(tiers, Sum())
            total.bytes += group.bytes
            total.chunks += group.chunks
            total.missing += group.missing
            total.missing_chunks += group.missing_chunks
        return sums

    def add_row(self, path: bytes, sort: int, unpacked: int) -> None:
        """The row of the next file of the last tier."""
        self.unpacked.append(unpacked)
        self.sorts.append(sort)
        self.paths.add(path)
