"""Writes a content into a file: data where data was, holes where holes were."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import Executor

from cas.entry import Content
from cas.errors import DamageError
from cas.ids import EMPTY_DIGEST, digest_of
from cas.interfaces import ContentSource, Location, Read
from cas.rebuild.run import WRONG_SIZE, block_data, content_blocks, damage, has_program
from cas.rebuild.scatter import InOrder, Scatter, write_at
from cas.rebuild.spans import joined, windows

LARGE = 8 * 2**20  # bytes, from which several threads are worth their while


def write_content(
    content: Content,
    source: ContentSource,
    fd: int,
    *,
    read: Read,
    pool: Executor,
    written: Callable[[int], None],
    hashed: bool = True,
    first: Location | None = None,
) -> None:
    """Write `content` into the empty file `fd`, open for reading too, its holes as holes.

    Chunks are had by `read`, those of a large content in the threads of `pool`; `first` is where
    the first one is, if that is known. On return all of it is there and was hashed (`hashed`: as a
    whole; else chunk by chunk), not durable yet. Raises NotHeldError, DamageError, FormatError,
    OSError; whatever was written by then is to be thrown away. `written` is told of bytes as they
    are written, and may raise to end it.
    """
    if not content.parts:
        _write_one(content, source, fd, read, first)
        written(content.size)
    elif has_program(content, source):
        _write_archive(content, source, fd, written, hashed=hashed)
    elif content.size >= LARGE:
        Scatter(content, source, fd, pool, hashed=hashed).run(written)
    else:
        _write_in_order(content, source, fd, read, hashed=hashed)
        written(content.size)


def _write_one(
    content: Content, source: ContentSource, fd: int, read: Read, first: Location | None
) -> None:
    """A content of one chunk, or none; its digest is the chunk's id."""
    if content.digest == EMPTY_DIGEST:
        chunk = memoryview(b"")
    else:
        chunk = memoryview(b"") if first is None else read(first)
        if digest_of(chunk) != content.digest:
            chunk = memoryview(source.chunk(content.digest))  # or says what is wrong
    if len(chunk) != content.size:
        raise DamageError(WRONG_SIZE, where=content.digest.hex())
    write_at(fd, chunk, 0)


def _write_archive(
    content: Content,
    source: ContentSource,
    fd: int,
    written: Callable[[int], None],
    *,
    hashed: bool,
) -> None:
    at = 0
    for block in content_blocks(content, source, hashed=hashed):
        start = at
        for data in block_data(block):
            write_at(fd, memoryview(data), at)
            at += len(data)
        written(at - start)


def _write_in_order(
    content: Content, source: ContentSource, fd: int, read: Read, *, hashed: bool
) -> None:
    os.ftruncate(fd, content.size)
    order = InOrder(fd) if hashed else None
    for window in windows(content, source):
        if order is not None:
            order.expect(window)
        for span in window.spans if order is None else joined(window.spans):
            data = read(span.location)
            if order is None and digest_of(data) != span.id:
                data = memoryview(source.chunk(span.id))  # or says what is wrong
            write_at(fd, data, span.at)
            if order is not None:
                order.add(span.at, data)
    if order is not None and order.digest() != content.digest:
        raise damage(content, source)
