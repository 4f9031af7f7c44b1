"""Gives directories their metadata, after all that lies in them was made.

Making a name in a directory changes its time, and its mode may forbid it; it may even forbid to
open those below. So the deepest come first, and a depth is begun when those below it are done. The
directories of one depth are given out by the hundred, each batch one call that needs no interpreter
(`cas/native/src/place.rs`); what that cannot do is done by itself.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator

from cas._native import dress_directories
from cas.descriptor import Descriptor
from cas.entry import Entry
from cas.errors import RestoreError
from cas.restore.directories import KEPT, Directories
from cas.restore.metadata import Metadata

BATCH = KEPT  # no more parents than are kept open anyway


def batches_by_depth(directories: Iterable[Entry]) -> Iterator[list[list[Entry]]]:
    """The batches of each depth, the deepest first."""
    depths: defaultdict[int, list[Entry]] = defaultdict(list)
    for entry in directories:
        depths[entry.path.count(b"/")].append(entry)
    for depth in sorted(depths, reverse=True):
        same = sorted(depths[depth], key=lambda entry: entry.path)
        yield [same[at : at + BATCH] for at in range(0, len(same), BATCH)]


def finish_directories(
    batch: Iterable[Entry],
    directories: Directories,
    metadata: Metadata,
    singly: Callable[[Entry], None],
) -> None:
    """Put their metadata on the directories of `batch`; `singly` does one that is left."""
    taken, wanted, parents = [], [], []
    for entry in batch:
        above, _, name = entry.path.rpartition(b"/")
        parent = None if entry.xattrs else _opened(directories, above)
        if parent is None:
            singly(entry)
            continue
        parents.append(parent)  # open until the call is over
        taken.append(entry)
        wanted.append((parent.fd, name, metadata.plain(entry)))
    for entry, errno in zip(taken, dress_directories(wanted), strict=True):
        if errno:
            singly(entry)
        else:
            metadata.tell(entry)


def _opened(directories: Directories, path: bytes) -> Descriptor | None:
    try:
        return directories.open(path)
    except (OSError, RestoreError):
        return None  # whoever does it singly says why
