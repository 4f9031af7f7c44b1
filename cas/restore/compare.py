"""Compares a name in a directory with an entry, opening nothing but plain files."""

from __future__ import annotations

import hashlib
import os
import stat

from cas.entry import DEVICES, HOLE_DIGEST, TYPES, Content, Entry, Kind
from cas.interfaces import ContentSource
from cas.rebuild.run import Block, block_size, content_blocks
from cas.recipe import Hole

READ_SIZE = 2**20
# O_NONBLOCK: what was a plain file a moment ago may be a FIFO now.
READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def difference(directory_fd: int, name: bytes, entry: Entry, source: ContentSource | None) -> str:
    """What differs between `name` and `entry` in kind or content; empty if nothing does.

    `source` is asked for the recipes of a content whose digest is no hash of its bytes; without
    one, only its size is compared. Raises OSError (FileNotFoundError), and what `source` does.
    """
    found = os.stat(name, dir_fd=directory_fd, follow_symlinks=False)
    if stat.S_IFMT(found.st_mode) != TYPES[entry.kind]:
        return "it is of another kind"
    if entry.kind is Kind.FILE and entry.content is not None:
        if found.st_size != entry.content.size:
            return f"it has {found.st_size} bytes instead of {entry.content.size}"
        same = _same_content(directory_fd, name, entry.content, entry.flags, source)
        return "" if same else "it has other content"
    if entry.kind is Kind.SYMLINK and os.readlink(name, dir_fd=directory_fd) != entry.target:
        return "it points elsewhere"
    device = (os.major(found.st_rdev), os.minor(found.st_rdev))
    if entry.kind in DEVICES and entry.device != device:
        return "it is another device"
    return ""


def _same_content(
    directory_fd: int, name: bytes, content: Content, flags: int, source: ContentSource | None
) -> bool:
    fd = os.open(name, READ, dir_fd=directory_fd)
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return False
        if not flags & HOLE_DIGEST:
            return _digest(fd) == content.digest
        return source is None or _has_blocks(fd, content, source)
    finally:
        os.close(fd)


def _digest(fd: int) -> bytes:
    hasher = hashlib.sha256()
    buffer = bytearray(READ_SIZE)
    view = memoryview(buffer)
    while count := os.readv(fd, [buffer]):
        hasher.update(view[:count])
    return hasher.digest()


def _has_blocks(fd: int, content: Content, source: ContentSource) -> bool:
    """Whether the file has the data and the holes of `content`, without reading the holes."""
    at = 0
    for block in content_blocks(content, source, hashed=False):
        if not _has_block(fd, at, block):
            return False
        at += block_size(block)
    return True


def _has_block(fd: int, at: int, block: Block) -> bool:
    if isinstance(block, Hole):
        return _reads_as_zeros(fd, at, at + block.size)
    data = b"".join(block)
    return os.pread(fd, len(data), at) == data


def _reads_as_zeros(fd: int, start: int, end: int) -> bool:
    while start < end:
        try:
            start = os.lseek(fd, start, os.SEEK_DATA)
        except OSError:  # ENXIO: no data from here to the end
            return True
        data = os.pread(fd, READ_SIZE, start)[: max(end - start, 0)]
        if any(data):
            return False
        start += READ_SIZE
    return True
