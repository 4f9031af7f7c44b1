"""What lies in an archive, named on the command line as `TIER:ARCHIVE!/PATH`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cas.entry import Content, Entry, Kind, Owner, Problem
from cas.errors import NotHeldError, RestoreError, UsageError
from cas.store.store import Store
from cli import output
from cli.listing import entry_fields
from cli.options import Target

if TYPE_CHECKING:
    from cas.inside.look import InnerEntry
    from cas.inside.scratch import Scratch
    from cas.snapshot import Snapshot

SEPARATOR = b"!/"
UNKNOWN = -1


@dataclass(frozen=True, slots=True)
class Inside:
    """A path in an archive, empty for all that is in it."""

    archive: Entry
    content: Content
    path: bytes

    @property
    def name(self) -> bytes:
        """The archive's own."""
        return self.archive.path.rpartition(b"/")[2]

    def entries(self, store: Store) -> Iterator[Entry]:
        """What is at and below the path, in the archive's order, as if it lay in the tier. A size
        of -1 is one that only reading the file would tell."""
        from cas.inside.members import list_members, normal_path

        wanted = normal_path(self.path)
        below = (wanted + b"/", wanted + SEPARATOR)
        for entry in list_members(self.content, store.reader, name=self.name):
            path = normal_path(entry.path)
            if not wanted or path == wanted or path.startswith(below):
                yield self.shown(entry, path)

    def data(self, store: Store) -> Iterator[bytes]:
        """The file at the path, in pieces. Raises NotHeldError."""
        from cas.inside.members import open_member

        return open_member(self.content, self.path, store.reader, name=self.name)

    def shown(self, entry: InnerEntry, path: bytes) -> Entry:
        """A member at `path` as if it lay in the tier."""
        size = UNKNOWN if entry.size is None else entry.size
        owner = Owner(entry.mode, entry.uid, entry.gid)
        path = self.archive.path + SEPARATOR + path
        return Entry(
            path, entry.kind, owner, entry.mtime_ns, size, target=entry.target or entry.link
        )

    def restored(self, scratch: Scratch) -> tuple[list[Entry], list[Problem]]:
        """What is at and below the path as it is to be restored, a part of an archive under its own
        last name, and what is left out. Raises NotHeldError if there is nothing."""
        from cas.inside.entries import member_entries
        from cas.inside.members import split_path
        from cas.restore.select import without_prefix

        entries, problems = member_entries(self.content, self.path, scratch, name=self.name)
        if not entries and not problems:
            where = output.show_path(self.archive.path + SEPARATOR + self.path)
            raise NotHeldError("no such name in the archive", where=where)
        below = split_path(self.path)[1].rpartition(b"/")[0]
        return list(without_prefix(entries, below)), problems

    def fields(self, entry: Entry) -> dict[str, object]:
        """All of one of `entries`."""
        fields = entry_fields(entry)
        if entry.size == UNKNOWN:
            del fields["size"]
        if entry.target:
            fields |= output.name_fields("target", entry.target)
        return fields


def open_scratch(store: Store, directory: Path) -> Scratch:
    """Room below `directory`, which is made, for what is read out of archives."""
    from cas.inside.scratch import Scratch

    try:
        directory.mkdir(parents=True, exist_ok=True)
        return Scratch(store.reader, directory)
    except OSError as error:
        where = str(directory)
        raise RestoreError(f"cannot be restored to: {error.strerror}", where=where) from error


def find_inside(store: Store, snapshot: Snapshot, target: Target) -> Inside | None:
    """What `target` means in an archive of the tier, if it does: a name of the tier itself goes
    before. Raises UsageError where what should be an archive is none."""
    path = target.path + b"/"
    if SEPARATOR not in path or store.find(snapshot, target.path) is not None:
        return None
    at = path.find(SEPARATOR)
    while at >= 0:
        archive = store.find(snapshot, path[:at])
        if archive is not None and archive.kind is Kind.FILE:
            return _inside(store, archive, path[at + len(SEPARATOR) : -1], target.tier)
        at = path.find(SEPARATOR, at + 1)
    return None


def _inside(store: Store, archive: Entry, path: bytes, tier: str) -> Inside:
    from cas.rebuild.run import has_program

    where = f"{tier}:{output.show_path(archive.path)}"
    if archive.content is None:
        raise NotHeldError("its content could not be read at the source", where=where)
    if not has_program(archive.content, store.reader):
        raise UsageError("is no archive that was looked into", where=where)
    return Inside(archive, archive.content, path)
