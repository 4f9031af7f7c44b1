"""Takes apart one open file, if it is an archive: what an agent asks for every file it scans.

The file is read once, from start to end, a piece at a time; its SHA-256 is computed on the way in
a thread of its own, one piece behind. Only a zip's directory is read besides.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from concurrent.futures import Executor, Future
from dataclasses import dataclass

from cas.entry import Content
from cas.ids import Digest
from cas.unpack.builder import Builder
from cas.unpack.detect import HEAD, TRIAL, Form, detect, inflates
from cas.unpack.driver import Splitters, Unpacker
from cas.unpack.footprint import give_back_large_pieces
from cas.unpack.limits import LEAST_FILE, Budget
from cas.unpack.source import PIECE, Source
from cas.unpack.stream import BrokenPromise
from cas.unpack.ziparchive import has_directory

WORTH_A_THREAD = 512 * 1024  # bytes; below that, handing over costs more than it gains

FOOTPRINT_FROM = 2**20  # bytes of an archive, whose spans are large enough to matter


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What taking apart needs of whoever asks for it: `keep` is given each recipe and each chunk of
    a skeleton with its id, `count` is told of bytes that are read, `hashing` is a thread."""

    keep: Callable[[Digest, bytes], None]
    count: Callable[[int], None]
    hashing: Executor
    splitters: Splitters


def unpack_file(fd: int, size: int, around: Surroundings) -> Content | None:
    """The content of the open file `fd`, of which `size` bytes are read, taken apart; nothing if it
    is no archive, or cannot be taken apart after all: then it is a plain file. Raises OSError."""
    if size < LEAST_FILE or not _is_archive(fd, size):
        return None
    if size >= FOOTPRINT_FROM:
        give_back_large_pieces()
    reading = _Reading(fd, size, around)
    builder = Builder(around.keep, lambda: reading.at)
    source = Source(reading.more, size, reading.pread)
    try:
        Unpacker(builder, Budget(size), around.splitters).unpack(source)
    except BrokenPromise:
        return None
    return builder.finish(reading.digest())


def _is_archive(fd: int, size: int) -> bool:
    """Whether the file's first bytes look like an archive's."""
    form = detect(os.pread(fd, HEAD, 0))
    if form is Form.ZLIB:
        return inflates(os.pread(fd, TRIAL, 0))
    if form is Form.STUB:
        source = Source(lambda _: b"", size, lambda count, offset: os.pread(fd, count, offset))
        return has_directory(source)
    return form is not None


class _Reading:
    """The file while it is read: up to `at` by now."""

    def __init__(self, fd: int, size: int, around: Surroundings) -> None:
        self._fd = fd
        self._size = size
        self._around = around
        self._hash = hashlib.sha256()
        self._running: Future[None] | None = None
        self.at = 0

    def more(self, _welcome: int) -> bytes:
        """The next piece."""
        piece = os.pread(self._fd, min(PIECE, self._size - self.at), self.at)
        self.at += len(piece)
        self._around.count(len(piece))
        self._wait()
        if len(piece) < WORTH_A_THREAD:
            self._hash.update(piece)
        else:
            self._running = self._around.hashing.submit(self._hash.update, piece)
        return piece

    def pread(self, count: int, offset: int) -> bytes:
        """Bytes from any place, which count for nothing."""
        return os.pread(self._fd, min(count, max(self._size - offset, 0)), offset)

    def digest(self) -> Digest:
        """That of all that was read."""
        self._wait()
        return Digest(self._hash.digest())

    def _wait(self) -> None:
        running, self._running = self._running, None
        if running is not None:
            running.result()
