"""Makes one name: what every kind of entry needs to exist, whole and with its metadata."""

from __future__ import annotations

import contextlib
import os
import stat
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor
from dataclasses import dataclass

from cas.descriptor import Descriptor
from cas.entry import DEVICES, HOLE_DIGEST, INCONSISTENT, TYPES, Content, Entry, Kind
from cas.errors import RestoreError
from cas.interfaces import ContentSource, Location, Read
from cas.rebuild.run import damage
from cas.rebuild.scatter import InOrder, write_at
from cas.rebuild.spans import Span
from cas.rebuild.write import write_content
from cas.restore.compare import difference
from cas.restore.directories import Directories
from cas.restore.files import PRIVATE, NewFile, descriptor_path, exists, status, temporary_name
from cas.restore.metadata import Metadata
from cas.restore.report import Existing, Tally

Inode = tuple[int, int]
Make = Callable[[bytes], None]
NODE = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(slots=True)
class FirstName:
    """The name that a file with several names was restored under; `inode` once it was."""

    path: bytes
    inode: Inode | None = None


@dataclass(frozen=True, slots=True)
class Work:
    """A name to make. `again`: an earlier tier of the same restore may have made it, which is no
    reason to refuse it. `first` if the file has several names; `first_chunk` if it is known."""

    entry: Entry
    again: bool = False
    first: FirstName | None = None
    first_chunk: Location | None = None


@dataclass(frozen=True, slots=True)
class Means:
    """What a thread makes names with: its directories, how it reads small contents, and the threads
    that read large ones for it."""

    directories: Directories
    read: Read
    pool: Executor

    def parent(self, path: bytes) -> tuple[Descriptor, bytes]:
        """The directory that `path` lies in, and its name there."""
        parent, _, name = path.rpartition(b"/")
        return self.directories.open(parent, create=True), name


@dataclass(slots=True, eq=False)
class OpenFile:
    """A file of several runs that is being made: `new` is to be placed as `name` of `parent`.
    `order` hashes it as they come."""

    work: Work
    content: Content
    new: NewFile
    parent: Descriptor
    name: bytes
    order: InOrder


class Names:
    """Makes names; safe to use from several threads. `stop` ends the writing of files."""

    def __init__(
        self,
        source: ContentSource,
        existing: Existing,
        metadata: Metadata,
        tally: Tally,
        stop: threading.Event,
    ) -> None:
        self._source = source
        self._existing = existing
        self.replaces = existing is Existing.OVERWRITE
        self.metadata = metadata
        self.tally = tally
        self.stop = stop

    def make(self, work: Work, means: Means) -> None:
        """Make the name, or keep what is there if that may be kept. Raises CasError, OSError,
        ValueError; nothing was made then."""
        entry = work.entry
        if entry.kind is Kind.FILE and entry.content is None:
            raise RestoreError("its content could not be read at the source")
        parent, name = means.parent(entry.path)
        if self._is_kept(work, parent.fd, name):
            self.tally.count(kept=1)
        elif entry.kind is Kind.FILE and entry.content is not None:
            self._file(work, entry.content, parent.fd, name, means)
        elif entry.kind is Kind.SYMLINK:
            self._symlink(entry, parent.fd, name)
        else:
            self._special(entry, parent.fd, name)
        self._remember(work, parent, name)

    def begin_file(
        self, work: Work, means: Means, holes: Iterable[tuple[int, int]]
    ) -> OpenFile | None:
        """Open a file whose runs are written later, in any order and by any thread, all but its
        `holes` (from, to); None if what is there is kept. Raises like `make`. It must be finished,
        or its `new` closed."""
        content = work.entry.content
        if content is None:
            raise RestoreError("its content could not be read at the source")
        parent, name = means.parent(work.entry.path)
        if self._is_kept(work, parent.fd, name):
            self.tally.count(kept=1)
            self._remember(work, parent, name)
            return None
        new = NewFile(parent.fd, replace=self.replaces)
        try:
            os.ftruncate(new.fd, content.size)
        except BaseException:
            new.close()
            raise
        return OpenFile(work, content, new, parent, name, InOrder(new.fd, holes))

    def write_run(self, file: OpenFile, span: Span, data: memoryview) -> None:
        """Write a run where it belongs, and hash what may be hashed now. Raises OSError,
        DamageError."""
        write_at(file.new.fd, data, span.at)
        file.order.add(span.at, data)
        self._written(len(data))

    def finish_file(self, file: OpenFile) -> None:
        """Every run is written: check the whole, dress it, give it its name, close it. Raises
        DamageError, OSError; nothing was made then."""
        try:
            if file.order.digest() != file.content.digest:
                raise damage(file.content, self._source)
            self._place_file(file.work.entry, file.new, file.name)
        finally:
            file.new.close()
        self._remember(file.work, file.parent, file.name)

    def _remember(self, work: Work, parent: Descriptor, name: bytes) -> None:
        """For its further names."""
        if work.first is not None:
            work.first.path, work.first.inode = work.entry.path, _inode(parent.fd, name)

    def link(self, work: Work, means: Means, old_path: bytes, inode: Inode) -> None:
        """Make the name another one of the file `inode`, which is at `old_path`. Raises like
        `make`; OSError also where links cannot be."""
        parent, name = means.parent(work.entry.path)
        found = status(parent.fd, name)
        is_linked = found is not None and (found.st_dev, found.st_ino) == inode
        if is_linked or self._is_kept(work, parent.fd, name):
            self.tally.count(kept=1)
            return
        old_parent, old_name = means.parent(old_path)

        def create(name: bytes) -> None:
            os.link(old_name, name, src_dir_fd=old_parent.fd, dst_dir_fd=parent.fd,
                    follow_symlinks=False)  # fmt: skip

        def check(name: bytes) -> None:
            if _inode(parent.fd, name) != inode:
                raise RestoreError("what it is a hard link to was changed meanwhile")

        self._place(parent.fd, name, create, check)
        self.tally.count(links=1)

    def _is_kept(self, work: Work, there: int, name: bytes) -> bool:
        """Whether the name exists and is to be left as it is; raises RestoreError if it exists and
        nothing is to be done."""
        found = status(there, name)
        if found is None:
            return False
        if stat.S_ISDIR(found.st_mode):
            raise RestoreError("a directory is in its way")
        if self._existing is Existing.REFUSE and not work.again:
            raise RestoreError("it exists already", advice="--overwrite replaces it")
        if self.replaces and not work.again:
            return False
        differs = difference(there, name, work.entry, self._source)
        if differs and not self.replaces:
            raise RestoreError(
                f"it exists already, and {differs}", advice="--overwrite replaces it"
            )
        return not differs

    def _file(self, work: Work, content: Content, there: int, name: bytes, means: Means) -> None:
        entry = work.entry
        new = NewFile(there, replace=self.replaces)
        try:
            write_content(
                content,
                self._source,
                new.fd,
                read=means.read,
                pool=means.pool,
                written=self._written,
                hashed=not entry.flags & HOLE_DIGEST,
                first=work.first_chunk,
            )
            self._place_file(entry, new, name)
        finally:
            new.close()

    def _place_file(self, entry: Entry, new: NewFile, name: bytes) -> None:
        self.metadata.put(new.fd, entry)
        new.place(name, replace=self.replaces)
        self.tally.count(files=1, bytes=entry.size)
        self.tally.progress(0, 1)
        if entry.flags & INCONSISTENT:
            self.tally.doubt(entry.path, "it changed while it was read at the source")

    def _written(self, size: int) -> None:
        if self.stop.is_set():
            raise RestoreError("interrupted")
        self.tally.progress(size, 0)

    def _symlink(self, entry: Entry, there: int, name: bytes) -> None:
        def create(name: bytes) -> None:
            os.symlink(entry.target, name, dir_fd=there)

        def dress(name: bytes) -> None:
            self.metadata.put_symlink(there, name, entry)

        self._place(there, name, create, dress)
        self.tally.count(symlinks=1)

    def _special(self, entry: Entry, there: int, name: bytes) -> None:
        kind = TYPES[entry.kind]
        device = os.makedev(*entry.device) if entry.kind in DEVICES and entry.device else 0

        def create(name: bytes) -> None:
            os.mknod(name, kind | PRIVATE, device, dir_fd=there)

        def dress(name: bytes) -> None:
            node = Descriptor(os.open(name, NODE, dir_fd=there))
            if stat.S_IFMT(os.fstat(node.fd).st_mode) != kind:
                raise RestoreError("it was changed meanwhile")
            self.metadata.put(descriptor_path(node.fd), entry)

        self._place(there, name, create, dress)
        self.tally.count(specials=1)

    def _place(self, there: int, name: bytes, create: Make, finish: Make) -> None:
        """`create` the name and `finish` it, or remove it again; over an old one by way of a
        temporary name."""
        if not (self.replaces and exists(there, name)):
            create(name)
            with _removed_on_error(there, name):
                finish(name)
            return
        temporary = temporary_name()
        create(temporary)
        with _removed_on_error(there, temporary):
            finish(temporary)
            os.rename(temporary, name, src_dir_fd=there, dst_dir_fd=there)
        # Still there if both were names of one file: rename(2) does nothing then.
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary, dir_fd=there)


def _inode(there: int, name: bytes) -> Inode:
    found = os.stat(name, dir_fd=there, follow_symlinks=False)
    return (found.st_dev, found.st_ino)


@contextlib.contextmanager
def _removed_on_error(there: int, name: bytes) -> Iterator[None]:
    try:
        yield
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name, dir_fd=there)
        raise
