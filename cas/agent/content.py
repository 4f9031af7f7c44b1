"""Reads one regular file and makes its content: what it was at one moment, if it holds still.

A file is read between two looks at its status. When size or times differ, it is read again, a few
times, with a pause that leaves a writer time to finish; what changes all the time is taken as it
was read, up to the size it had, and marked INCONSISTENT.

An archive is taken apart (`cas.unpack`), unless it has holes: its recipe has none.

Only holes of `HOLE_LEAST` and more are kept as holes. A smaller one is cheaper read than
remembered, and read as zeros its file has the same chunks as a copy without holes, in an archive
say.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

from cas._native import Status, look_at_open
from cas.agent.assemble import Assembler
from cas.agent.metadata import Xattrs, read_xattrs
from cas.agent.roots import Opener
from cas.chunker import MIN_SIZE
from cas.entry import HOLE_DIGEST, INCONSISTENT, Content
from cas.errors import LimitError
from cas.ids import EMPTY_DIGEST, Digest, digest_of
from cas.unpack.detect import HEAD, detect
from cas.unpack.file import Surroundings, unpack_file
from cas.unpack.limits import HOLE_LEAST, LEAST_FILE
from cas.unpack.splitters import CodecSplitters

READ_SIZE = 2**20  # fits a core's cache: measured faster than less or more
HOLES_HASHED = 16 * 2**30  # in one file; to hash more zeros takes longer than anyone would wait
UNSIZED_LIMIT = 16 * 2**20  # read of a file that says it is empty and is not, as in /proc
PAUSES = (0.02, 0.1, 0.4)  # seconds before a changing file is read again
SPANS_AT_ONCE = 2  # of a compressed stream, that are analysed side by side
LARGE = 2**30  # a file that is read again once only

Run = tuple[int, int, bool]  # offset, length, whether it is a hole


@dataclass(frozen=True, slots=True)
class FileState:
    """A regular file as it was read: `status` and `xattrs` go with the content. `doubt` says what
    is wrong with it, or nothing."""

    status: Status
    content: Content
    xattrs: Xattrs = ()
    flags: int = 0
    doubt: str = ""


class ContentReader:
    """Reads files for one scan. Recipes go to `keep`; `count` is told of what is read while it is
    read: how many files, how many bytes."""

    def __init__(
        self,
        opener: Opener,
        keep: Callable[[Digest, bytes], None],
        count: Callable[[int, int], None],
    ) -> None:
        self._opener = opener
        self._count = count
        self._maker = ContentMaker(keep, count)

    def read(self, path: bytes) -> FileState:
        """The state of the file `path`. Raises OSError when it is not there or cannot be read."""
        for pause in PAUSES:
            state = self._read_once(path)
            if not state.flags & INCONSISTENT:
                return state
            time.sleep(pause)
            if state.content.size >= LARGE:
                break
        return self._read_once(path)

    def _read_once(self, path: bytes) -> FileState:
        fd, before = self._opener.regular_file(path)
        try:
            self._count(1, 0)
            is_sparse = before.st_blocks * 512 < before.st_size
            content, flags = self._maker.content(fd, before.st_size, may_have_holes=is_sparse)
            xattrs, doubt = _xattrs(fd)
            after = look_at_open(fd)
        finally:
            os.close(fd)
        if _moment(before) != _moment(after):
            flags, doubt = flags | INCONSISTENT, "changed each time it was read"
        return FileState(after, content, xattrs, flags, doubt)

    def close(self) -> None:
        """End the threads."""
        self._maker.close()


class ContentMaker:
    """Makes the contents of open files; `keep` and `count` as for `ContentReader`. Holds threads,
    and is used by one at a time."""

    def __init__(
        self, keep: Callable[[Digest, bytes], None], count: Callable[[int, int], None]
    ) -> None:
        self._keep = keep
        self._count = count
        self._pool = ThreadPoolExecutor(1, "digest")
        self._spans = ThreadPoolExecutor(SPANS_AT_ONCE, "spans")
        self._splitters = CodecSplitters(self._spans)

    def content(self, fd: int, size: int, *, may_have_holes: bool) -> tuple[Content, int]:
        """The content of an open file of `size` bytes, and the flags of its entry."""
        if size > MIN_SIZE:
            return self._large(fd, size, may_have_holes=may_have_holes)
        data = os.read(fd, size) if size else _unsized(fd)
        self._count(0, len(data))
        if len(data) >= LEAST_FILE and detect(data[:HEAD]) is not None:
            content = unpack_file(fd, len(data), self._around(lambda _: None))
            if content is not None:
                return content, 0
        if len(data) <= MIN_SIZE:
            return _small(data), 0
        assembler = Assembler(self._pool, self._keep)
        assembler.data(data)
        assembler.end_run()
        return assembler.finish(), 0

    def _large(self, fd: int, size: int, *, may_have_holes: bool) -> tuple[Content, int]:
        holes = sum(length for _, length, hole in runs(fd, size) if hole) if may_have_holes else 0
        if not holes:
            count = partial(self._count, 0)
            content = unpack_file(fd, size, self._around(count))
            if content is not None:
                return content, 0
        assembler = Assembler(self._pool, self._keep, hashed=holes <= HOLES_HASHED)
        for offset, length, hole in runs(fd, size) if holes else ((0, size, False),):
            if hole:
                assembler.hole(length)
            elif not self._feed(assembler, fd, offset, offset + length):
                break
        content = assembler.finish()
        return content, HOLE_DIGEST if holes > HOLES_HASHED and content.parts else 0

    def _around(self, count: Callable[[int], None]) -> Surroundings:
        return Surroundings(self._keep, count, self._pool, self._splitters)

    def _feed(self, assembler: Assembler, fd: int, at: int, end: int) -> bool:
        """Hand over the bytes from `at` to `end`; false when the file has become shorter."""
        while at < end:
            piece = os.pread(fd, min(READ_SIZE, end - at), at)
            if not piece:
                break
            at += len(piece)
            self._count(0, len(piece))
            assembler.data(piece)
        assembler.end_run()
        return at == end

    def close(self) -> None:
        """End the threads."""
        self._pool.shutdown()
        self._spans.shutdown(cancel_futures=True)


def runs(fd: int, size: int) -> Iterator[Run]:
    """The data and the holes of an open file, in order and without gaps, as its file system
    knows them."""
    data_start = at = 0
    while at < size:
        data = _seek(fd, at, os.SEEK_DATA, size)
        if data - at >= HOLE_LEAST:
            if at > data_start:
                yield data_start, at - data_start, False
            yield at, data - at, True
            data_start = data
        at = _seek(fd, data, os.SEEK_HOLE, size) if data < size else size
    if size > data_start:
        yield data_start, size - data_start, False


def _seek(fd: int, at: int, whence: int, size: int) -> int:
    """Where data (or a hole) next begins, `size` when there is none before it."""
    try:
        return min(os.lseek(fd, at, whence), size)
    except OSError as error:
        if error.errno == errno.ENXIO:
            return size
        if error.errno in (errno.EINVAL, errno.ENOTSUP):  # a file system that does not know
            return at if whence == os.SEEK_DATA else size
        raise


def _unsized(fd: int) -> bytes:
    """All of a file whose size is given as 0: nothing, but for what the kernel makes up."""
    data = bytearray()
    while len(data) < UNSIZED_LIMIT and (piece := os.read(fd, 65536)):
        data += piece
    return bytes(data)


def _small(data: bytes) -> Content:
    """The content of a file that is one chunk at most, whatever is in it."""
    return Content(len(data), digest_of(data), 1) if data else Content(0, EMPTY_DIGEST, 0)


def _xattrs(fd: int) -> tuple[Xattrs, str]:
    try:
        return read_xattrs(fd), ""
    except (OSError, LimitError) as error:
        return (), f"without its extended attributes: {error}"


def _moment(status: Status) -> tuple[int, int, int]:
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns
