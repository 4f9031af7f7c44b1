"""What has changed between two snapshots: two streams of pages, merged.

A page that both snapshots have is the same in both, and since a path comes once in a snapshot, it
need not be read: so two scans of a large tier are compared at the price of what differs. A file
that is gone at one path and new at another with the same content has moved; to find those, the
digests of what is gone and of what is new are collected first, and only their common ones held on
to the second time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from itertools import zip_longest

from cas.entry import IMPLIED, Entry, Kind, path_order
from cas.ids import Digest
from cas.snapshot import Snapshot
from cas.store.store import Store


class What(Enum):
    """What has become of a name."""

    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed"  # its content, or what it is
    METADATA = "metadata"  # and nothing else
    MOVED = "moved"


@dataclass(frozen=True, slots=True)
class Change:
    """One name, `before` and `after` (None where it was not there). `fields` says what differs:
    `kind`, `content`, `target`, `device`, `mode`, `owner`, `mtime`, `xattrs`, `flags`."""

    what: What
    before: Entry | None
    after: Entry | None
    fields: tuple[str, ...] = ()

    @property
    def path(self) -> bytes:
        """Where it is now, or was."""
        entry = self.after or self.before
        assert entry is not None
        return entry.path


@dataclass(slots=True)
class _Moving:
    """Content that is gone at some paths and new at others."""

    removed: list[Entry] = field(default_factory=list)
    added: list[Entry] = field(default_factory=list)


def diff(store: Store, before: Snapshot, after: Snapshot, path: bytes = b"") -> Iterator[Change]:
    """What differs at and below `path`: in path order, and then what has moved. Raises
    NotHeldError, DamageError where a page cannot be read."""
    common = _moved_digests(store, before, after, path)
    moving: defaultdict[Digest, _Moving] = defaultdict(_Moving)
    for change in _changes(store, before, after, path):
        digest = _digest(change)
        if digest not in common or digest is None:
            yield change
        elif change.before is not None:
            moving[digest].removed.append(change.before)
        elif change.after is not None:
            moving[digest].added.append(change.after)
    for pairs in moving.values():
        yield from _paired(pairs)


def _moved_digests(store: Store, before: Snapshot, after: Snapshot, path: bytes) -> set[Digest]:
    removed: set[Digest] = set()
    added: set[Digest] = set()
    for change in _changes(store, before, after, path):
        digest = _digest(change)
        if digest is not None:
            (added if change.before is None else removed).add(digest)
    return removed & added


def _digest(change: Change) -> Digest | None:
    """The content of a file that is new or gone, if it has any."""
    if change.what not in (What.ADDED, What.REMOVED):
        return None
    entry = change.after or change.before
    content = entry.content if entry is not None else None
    return content.digest if content is not None and content.size else None


def _paired(moving: _Moving) -> Iterator[Change]:
    """Each gone name with a new one: of the same last name if there is one, else of any."""
    named: defaultdict[bytes, list[Entry]] = defaultdict(list)
    for new in reversed(moving.added):
        named[_name(new)].append(new)
    alone = []
    for gone in moving.removed:
        if alike := named.get(_name(gone)):
            yield _move(gone, alike.pop())
        else:
            alone.append(gone)
    left = sorted((new for some in named.values() for new in some), key=_order)
    for old, now in zip_longest(alone, left):
        if old is not None and now is not None:
            yield _move(old, now)
        else:
            yield Change(What.ADDED if old is None else What.REMOVED, old, now)


def _move(old: Entry, new: Entry) -> Change:
    return Change(What.MOVED, old, new, differing(old, new))


def _order(entry: Entry) -> tuple[bytes, ...]:
    return path_order(entry.path)


def _name(entry: Entry) -> bytes:
    return entry.path.rpartition(b"/")[2]


def _changes(store: Store, before: Snapshot, after: Snapshot, path: bytes) -> Iterator[Change]:
    same = {ref.id for ref in before.pages} & {ref.id for ref in after.pages}
    pairs = _merged(_entries(store, before, same, path), _entries(store, after, same, path))
    for old, new in pairs:
        if old is None or new is None:
            yield Change(What.ADDED if old is None else What.REMOVED, old, new)
        elif fields := differing(old, new):
            is_content = not {"kind", "content", "target", "device"}.isdisjoint(fields)
            yield Change(What.CHANGED if is_content else What.METADATA, old, new, fields)


def _entries(
    store: Store, snapshot: Snapshot, skipped: set[Digest], path: bytes
) -> Iterator[Entry]:
    for ref in snapshot.pages:
        if ref.id not in skipped:
            for entry in store.page(ref.id):
                if not path or entry.path == path or entry.path.startswith(path + b"/"):
                    yield entry


def _merged(
    before: Iterator[Entry], after: Iterator[Entry]
) -> Iterator[tuple[Entry | None, Entry | None]]:
    """Two streams in path order as one, entries of the same path side by side."""
    old, new = next(before, None), next(after, None)
    while old is not None or new is not None:
        if new is None or (old is not None and path_order(old.path) < path_order(new.path)):
            yield old, None
            old = next(before, None)
        elif old is None or old.path != new.path:
            yield None, new
            new = next(after, None)
        else:
            yield old, new
            old, new = next(before, None), next(after, None)


def differing(old: Entry, new: Entry) -> tuple[str, ...]:
    """What differs between two entries, but for their paths. Which other names a file has does not
    count, since that is told by numbers that a source gives out anew."""
    implied = (old.flags | new.flags) & IMPLIED  # whose time is not kept
    facts = {
        "kind": (old.kind, new.kind),
        "content": (_content(old), _content(new)),
        "target": (old.target, new.target),
        "device": (old.device, new.device),
        "mode": (old.owner.mode, new.owner.mode),
        "owner": (_owner(old), _owner(new)),
        "mtime": (0, 0) if implied else (old.mtime_ns, new.mtime_ns),
        "xattrs": (old.xattrs, new.xattrs),
        "flags": (old.flags & ~IMPLIED, new.flags & ~IMPLIED),
    }
    return tuple(name for name, (one, other) in facts.items() if one != other)


def _content(entry: Entry) -> tuple[int, Digest | None]:
    if entry.kind is not Kind.FILE:
        return 0, None
    return entry.size, entry.content.digest if entry.content else None


def _owner(entry: Entry) -> tuple[object, ...]:
    owner = entry.owner
    return owner.uid, owner.gid, owner.user, owner.group
