"""What verifying a store comes to."""

from __future__ import annotations

from dataclasses import dataclass, field

from cas.entry import Problem
from cas.ids import Digest
from cas.interfaces import Location, PackRow, SnapshotRow

LISTED = 1000  # damages, and notes
NAMES_LISTED = 20  # of one snapshot


@dataclass(frozen=True, slots=True)
class Damage:
    """Bytes that are not what was stored: where, what is wrong, and how many chunks that are held
    by the index lie there."""

    where: str
    what: str
    chunks: int = 0


@dataclass(slots=True)
class PackCheck:
    """What the packs came to. `lost` are chunks that cannot be read where the index says, each with
    another place where it can be, if one is known; `renamed` are packs (number, row as it should
    be, the file's name) whose bytes no longer fit their name. `unindexed` counts whole records that
    the index does not know. `bytes` are those of the packs that were read."""

    packs: int = 0
    bytes: int = 0
    chunks: int = 0
    unindexed: int = 0
    damages: list[Damage] = field(default_factory=list)
    more_damages: int = 0
    lost: dict[Digest, Location | None] = field(default_factory=dict)
    renamed: list[tuple[int, PackRow, str]] = field(default_factory=list)

    def damage(self, where: str, what: str, chunks: int = 0) -> None:
        """Note damage; past `LISTED` it is only counted."""
        if len(self.damages) < LISTED:
            self.damages.append(Damage(where, what, chunks))
        else:
            self.more_damages += 1


@dataclass(slots=True)
class SnapshotCheck:
    """What a snapshot came to: `damaged` and `missing` files (content that is lost, content that
    never came), the names of some of them, and pages that cannot be read. `promised`: the index
    says that all of it is here."""

    row: SnapshotRow
    newest: bool
    files: int = 0
    damaged: int = 0
    missing: int = 0
    pages_lost: int = 0
    lost: bool = False  # the snapshot itself
    names: list[Problem] = field(default_factory=list)

    @property
    def whole(self) -> bool:
        """Whether all that it names is here."""
        return not (self.damaged or self.missing or self.pages_lost or self.lost)

    def note(self, path: bytes, reason: str) -> None:
        """List a name, while there are not too many."""
        if len(self.names) < NAMES_LISTED:
            self.names.append(Problem(path, reason))


@dataclass(slots=True)
class StoreReport:
    """All of it. `unlisted` are snapshot files that the index does not know."""

    packs: PackCheck
    snapshots: list[SnapshotCheck]
    unlisted: int = 0

    @property
    def damaged(self) -> bool:
        """Whether anything is not what it was, or not where it should be. What a snapshot that is
        not called complete lacks is known to be missing, and no damage any more."""
        return bool(self.packs.damages) or any(
            check.lost or check.damaged or (check.row.complete and not check.whole)
            for check in self.snapshots
        )

    @property
    def incomplete(self) -> bool:
        """Whether the newest snapshot of a tier lacks content."""
        return any(check.newest and not check.whole for check in self.snapshots)
