"""Which files of a snapshot are safe here: held, verified now, and unchanged at the source.

Every file is made again, without being written: its chunks are read and hashed, archives rebuilt,
and the whole compared with the SHA-256 that was read at the source. Files of the same content are
made once. They are made in the order in which they are stored, some at a time (`restore/order.py`).

What the source says now is another scan's entries. A name that has gone there is safe all the same;
one that is new there is not, whatever is held.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

from cas.entry import HOLE_DIGEST, INCONSISTENT, Entry, Kind
from cas.errors import CasError
from cas.ids import Digest
from cas.interfaces import ContentSource
from cas.rebuild.run import copy_content
from cas.restore.order import in_order

WINDOW_NAMES = 16384

UNREADABLE = "its content could not be read at the source"
TORN = "it changed while it was read; what is held is one of its states, perhaps torn"
CHANGED = "it has changed at the source since the scan"
NEW = "it is new at the source since the scan"

Fingerprint = tuple[int, int, bytes, bytes]  # kind, size, digest, target


@dataclass(frozen=True, slots=True)
class Doubt:
    """A name that is not safe here, and why."""

    path: bytes
    reason: str


class Sink:
    """Where bytes go that were only to be hashed."""

    def write(self, data: bytes, /) -> None:
        """Count nothing, keep nothing."""


def fingerprint(entry: Entry) -> Fingerprint:
    """What of an entry must be the same for it to count as unchanged: not its metadata."""
    digest = bytes(entry.content.digest) if entry.content is not None else b""
    return int(entry.kind), entry.size, digest, entry.target


def unsafe(
    entries: Iterable[Entry], source: ContentSource, progress: Callable[[int, int], None]
) -> Iterator[Doubt]:
    """Those of `entries` (of one snapshot) whose content is not here whole and right. `progress` is
    told of (bytes, names) that were looked at."""
    verdicts: dict[Digest, str] = {}
    remaining = iter(entries)
    while window := list(islice(remaining, WINDOW_NAMES)):
        for placed in in_order(window, source):
            entry = placed.entry
            reason = _reason(entry, source, verdicts)
            progress(entry.size, 1)
            if reason:
                yield Doubt(entry.path, reason)


def changed(held: Iterable[Entry], now: Mapping[bytes, Fingerprint]) -> Iterator[Doubt]:
    """Names that the source has otherwise than they are `held`, or has and that are not."""
    seen: set[bytes] = set()
    for entry in held:
        seen.add(entry.path)
        found = now.get(entry.path)
        if found is not None and found != fingerprint(entry):
            yield Doubt(entry.path, CHANGED)
    yield from (Doubt(path, NEW) for path in sorted(now.keys() - seen))


def _reason(entry: Entry, source: ContentSource, verdicts: dict[Digest, str]) -> str:
    """Why a name is not safe, "" if it is."""
    if entry.kind is not Kind.FILE:
        return ""
    content = entry.content
    if content is None:
        return UNREADABLE
    if entry.flags & INCONSISTENT:
        return TORN
    if content.digest not in verdicts:
        verdicts[content.digest] = _made(entry, source)
    return verdicts[content.digest]


def _made(entry: Entry, source: ContentSource) -> str:
    """Make a file again; what is wrong with it, "" if nothing."""
    assert entry.content is not None
    try:
        copy_content(entry.content, source, Sink(), hashed=not entry.flags & HOLE_DIGEST)
    except CasError as error:
        return f"it cannot be made again: {error.what}"
    return ""
