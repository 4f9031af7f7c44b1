"""Small files by the hundred: each batch is one call that needs no interpreter
(`cas/native/src/place.rs`).

A file that is whole in one place of the store, and of which nothing special is wanted, is collected
here with its bytes. What the call cannot make, for whatever reason, it leaves undone, and the file
is made by itself (`names.py`): that finds out what is the matter, and says it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from cas._native import place_files
from cas.descriptor import Descriptor
from cas.entry import Content, Kind
from cas.hashing import digests_of
from cas.ids import Digest
from cas.interfaces import Location, Read
from cas.restore.files import CAN_LINK_UNNAMED
from cas.restore.metadata import Plain
from cas.restore.names import Means, Names, Work

BATCH_FILES = 256
BATCH_SIZE = 2**20  # bytes
BATCH_PARENTS = 32  # directories, which are open as long


@dataclass(frozen=True, slots=True)
class _File:
    work: Work
    digest: Digest
    data: memoryview
    parent: Descriptor
    name: bytes
    plain: Plain


class SmallFiles:
    """What a thread has collected, to be made with `means`. `singly` makes one file by itself."""

    def __init__(self, names: Names, means: Means, singly: Callable[[Work], None]) -> None:
        self._names = names
        self._means = means
        self._singly = singly
        self._files: list[_File] = []
        self._parents: set[int] = set()
        self._size = 0

    def add(self, work: Work, content: Content, location: Location, read: Read) -> None:
        """Make the file of `content`, all of which is at `location`, now or with others. Raises
        what reading and opening its directory raise."""
        data = read(location)
        if len(data) != content.size:
            self._singly(work)
            return
        parent, name = self._means.parent(work.entry.path)
        plain = self._names.metadata.plain(work.entry)
        self._files.append(_File(work, content.digest, data, parent, name, plain))
        self._parents.add(parent.fd)
        self._size += len(data)
        if (
            self._size >= BATCH_SIZE
            or len(self._files) >= BATCH_FILES
            or len(self._parents) >= BATCH_PARENTS
        ):
            self.make()

    def make(self) -> None:
        """Make what is collected."""
        files, self._files, self._size = self._files, [], 0
        self._parents.clear()
        if self._names.stop.is_set():
            return
        contents = b"".join([file.data for file in files])
        digests = digests_of(contents, [len(file.data) for file in files])
        if digests == [file.digest for file in files]:
            self._place(files, contents)
            return
        for file in files:  # which says which one is damaged
            self._singly(file.work)

    def _place(self, files: list[_File], contents: bytes) -> None:
        """Give files that were found right their names."""
        wanted = [(file.parent.fd, file.name, len(file.data), file.plain) for file in files]
        size, left = len(contents), []
        for file, errno in zip(files, place_files(contents, wanted), strict=True):
            if errno:
                size -= len(file.data)
                left.append(file.work)
            else:
                self._names.metadata.tell(file.work.entry)
        self._names.tally.count(files=len(files) - len(left), bytes=size)
        self._names.tally.progress(size, len(files) - len(left))
        for work in left:
            self._singly(work)


def is_small(work: Work, names: Names) -> bool:
    """Whether nothing special is wanted of the file, once all of it is in one place."""
    entry = work.entry
    return (
        CAN_LINK_UNNAMED
        and not names.replaces
        and entry.kind is Kind.FILE
        and not entry.flags
        and not entry.xattrs
        and work.first is None
    )
