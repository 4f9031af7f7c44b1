"""Runs recipes: chunks out of a store become the byte stream they were cut from.

Content comes in *blocks*: about a megabyte of chunks, or a hole. A block is what is worth one
write, one look at the progress and one hand-over between threads; a 64 KiB chunk is not.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor
from itertools import islice
from typing import Protocol, TypeVar

from cas.entry import Content
from cas.errors import DamageError, FormatError
from cas.ids import Digest
from cas.interfaces import ContentSource
from cas.recipe import Hole, Recipe, decode_recipe, single_chunk

BLOCK_SIZE = 2**20
READ_AHEAD_LEAST = 4 * 2**20  # bytes of a content; less is rebuilt before a second thread wakes
ZEROS = bytes(BLOCK_SIZE)

Piece = bytes | memoryview
Block = list[Piece] | Hole
T = TypeVar("T")


class Writable(Protocol):
    """Where a stream goes."""

    def write(self, data: Piece, /) -> object: ...


def content_recipes(content: Content, source: ContentSource) -> Iterator[Recipe]:
    """The recipes that rebuild `content`, in order. Raises NotHeldError, DamageError, FormatError.

    A content of one chunk has none of its own: its digest is the chunk's id.
    """
    for part in content.parts:
        yield decode_recipe(source.object(part))
    if content.size and not content.parts:
        yield single_chunk(content.digest, content.size)


def blocks(recipes: Iterable[Recipe], read: Callable[[Digest], Piece]) -> Iterator[Block]:
    """What `recipes` write, block by block, their chunks had by `read`; no block crosses from data
    into a hole. Raises FormatError for a chunk that has another length than its recipe says."""
    for recipe in recipes:
        chunks = zip(recipe.ids, recipe.lengths, strict=True)
        for op in recipe.operations():
            if isinstance(op, Hole):
                yield op
            else:
                yield from _data(islice(chunks, op.count), read)


def _data(
    chunks: Iterable[tuple[Digest, int]], read: Callable[[Digest], Piece]
) -> Iterator[list[Piece]]:
    waiting: list[Piece] = []
    size = 0
    for id_, length in chunks:
        chunk = read(id_)
        if len(chunk) != length:
            raise FormatError("a recipe has the wrong length for a chunk", where=id_.hex())
        waiting.append(chunk)
        size += length
        if size >= BLOCK_SIZE:
            yield waiting
            waiting, size = [], 0
    if waiting:
        yield waiting


def content_blocks(
    content: Content, source: ContentSource, *, hashed: bool = True, pool: Executor | None = None
) -> Iterator[Block]:
    """What `content` holds, block by block, never more than its size. After the last block it is
    checked: DamageError is raised unless all of it had the size and, if `hashed`, the digest. So
    none of it counts before the iteration has ended well.

    The digest proves the chunks too, so they are not hashed one by one; without `hashed` they are.
    With a `pool` the chunks of a large content are read in its threads, one block ahead, while the
    caller's thread hashes and uses the block before.
    """
    read = source.unproven if hashed else source.chunk
    made = blocks(content_recipes(content, source), read)
    if pool is not None and content.size >= READ_AHEAD_LEAST:
        made = ahead(made, pool)
    hasher = hashlib.sha256()
    size = 0
    for block in made:
        size += block_size(block)
        if size > content.size:
            break
        if hashed:
            for data in block_data(block):
                hasher.update(data)
        yield block
    if size != content.size:
        raise DamageError("its recipes do not come out at its size", where=content.digest.hex())
    if hashed and hasher.digest() != content.digest:
        raise _damage(content, source)


def _damage(content: Content, source: ContentSource) -> DamageError:
    """Why a content has another digest than it should: a chunk of it, or its recipes."""
    try:
        for recipe in content_recipes(content, source):
            for id_ in recipe.ids:
                source.chunk(id_)
    except DamageError as error:
        return error
    return DamageError("its recipes rebuild something else", where=content.digest.hex())


def rebuild(recipes: Iterable[Recipe], source: ContentSource, out: Writable) -> None:
    """Write what `recipes` rebuild to `out`, holes as zeros."""
    for block in blocks(recipes, source.chunk):
        for data in block_data(block):
            out.write(data)


def copy_content(content: Content, source: ContentSource, out: Writable, *, hashed: bool) -> None:
    """Write `content` to `out`, holes as zeros, checked like `content_blocks`: what it raises comes
    after most of the bytes."""
    for block in content_blocks(content, source, hashed=hashed):
        for data in block_data(block):
            out.write(data)


def block_size(block: Block) -> int:
    """How many bytes of the stream `block` is."""
    return block.size if isinstance(block, Hole) else sum(map(len, block))


def block_data(block: Block) -> Iterable[Piece]:
    """The bytes of `block`, by pieces; zeros for a hole."""
    return _zeros(block.size) if isinstance(block, Hole) else block


def _zeros(size: int) -> Iterator[bytes]:
    for _ in range(size // len(ZEROS)):
        yield ZEROS
    yield ZEROS[: size % len(ZEROS)]


def ahead(items: Iterator[T], pool: Executor) -> Iterator[T]:
    """`items`, each made in `pool` while the one before it is used. One at a time is enough: making
    and using take about the same time, and the order of locks stays that of one reader."""
    pending = pool.submit(next, items, None)
    while (item := pending.result()) is not None:
        pending = pool.submit(next, items, None)
        yield item
