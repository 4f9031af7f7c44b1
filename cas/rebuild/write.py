"""Writes a content into a file: data where data was, holes where holes were."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import Executor

from cas.entry import Content
from cas.errors import DamageError
from cas.ids import EMPTY_DIGEST
from cas.interfaces import ContentSource
from cas.rebuild.run import Piece, block_size, content_blocks
from cas.recipe import Hole

IOV_MAX = 1024  # chunks in one writev (POSIX; Linux's value)


def write_content(
    content: Content,
    source: ContentSource,
    fd: int,
    *,
    hashed: bool = True,
    pool: Executor | None = None,
    written: Callable[[int], None] | None = None,
) -> None:
    """Write `content` into the empty file `fd`, its holes as holes; not durable yet.

    Raises NotHeldError, DamageError, FormatError, OSError; whatever was written by then is wrong,
    and the file is to be thrown away. `hashed`, `pool`: as for `content_blocks`. `written` is told
    of bytes as they are written, and may raise to end it.
    """
    if not content.parts:
        _write_one(content, source, fd)
        if written is not None:
            written(content.size)
        return
    in_hole = False
    for block in content_blocks(content, source, hashed=hashed, pool=pool):
        in_hole = isinstance(block, Hole)
        if isinstance(block, Hole):
            os.lseek(fd, block.size, os.SEEK_CUR)
        else:
            for at in range(0, len(block), IOV_MAX):
                write_all(fd, block[at : at + IOV_MAX])
        if written is not None:
            written(block_size(block))
    if in_hole:
        os.ftruncate(fd, content.size)


def _write_one(content: Content, source: ContentSource, fd: int) -> None:
    """A content of one chunk, or none. The chunk was hashed, and its id is the digest."""
    chunk = source.chunk(content.digest) if content.digest != EMPTY_DIGEST else b""
    if len(chunk) != content.size:
        raise DamageError("its chunk has another size", where=content.digest.hex())
    written = os.write(fd, chunk)
    if written != len(chunk):
        write_all(fd, [chunk[written:]])


def write_all(fd: int, chunks: list[Piece]) -> None:
    """Write `chunks` one after another; a full disk raises OSError."""
    left = sum(map(len, chunks))
    while left:
        written = os.writev(fd, chunks)
        left -= written
        if left:
            chunks = [b"".join(chunks)[written:]]
