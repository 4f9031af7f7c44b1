"""Runs recipes: chunks out of a store become the byte stream they were cut from.

Content comes in *blocks*: about a megabyte of chunks, or a hole. A block is what is worth one
write, one look at the progress and one hand-over between threads; a 64 KiB chunk is not.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import Protocol

from cas.archive import AnyRecipe, ArchiveRecipe, decode_any_recipe, is_archive
from cas.entry import Content
from cas.errors import DamageError, FormatError
from cas.ids import Digest
from cas.interfaces import ContentSource
from cas.rebuild.chunks import wrong_length
from cas.rebuild.program import run_program
from cas.recipe import Hole, Recipe, single_chunk

BLOCK_SIZE = 2**20
WRONG_SIZE = "its recipes do not come out at its size"
ZEROS = bytes(BLOCK_SIZE)

Block = list[bytes] | Hole


class Writable(Protocol):
    """Where a stream goes."""

    def write(self, data: bytes, /) -> object: ...


def content_recipes(content: Content, source: ContentSource) -> Iterator[AnyRecipe]:
    """The recipes that rebuild `content`, in order: all plain ones, or all an archive's. Raises
    NotHeldError, DamageError, FormatError.

    A content of one chunk has none of its own: its digest is the chunk's id.
    """
    for part in content.parts:
        yield decode_any_recipe(source.object(part))
    if content.size and not content.parts:
        yield single_chunk(content.digest, content.size)


def has_program(content: Content, source: ContentSource) -> bool:
    """Whether `content` is an archive's. Raises like `content_recipes`."""
    return bool(content.parts) and is_archive(source.object(content.parts[0]))


def plain(recipe: AnyRecipe) -> Recipe:
    """`recipe`, which must be a plain file's; raises FormatError."""
    if isinstance(recipe, ArchiveRecipe):
        raise FormatError("a plain file has a part that is an archive's")
    return recipe


def blocks(recipes: Iterable[AnyRecipe], source: ContentSource) -> Iterator[Block]:
    """What `recipes` write, block by block, each chunk hashed; no block crosses from data into a
    hole. Raises NotHeldError, DamageError, FormatError (a chunk has not its recipe's length)."""
    recipes = iter(recipes)
    first = next(recipes, None)
    if isinstance(first, ArchiveRecipe):
        for pieces in _gathered(run_program(chain([first], recipes), source)):
            yield [b"".join(pieces)]  # many are small
    elif first is not None:
        yield from _plain_blocks(map(plain, chain([first], recipes)), source)


def _plain_blocks(recipes: Iterable[Recipe], source: ContentSource) -> Iterator[Block]:
    for recipe in recipes:
        chunks = zip(recipe.ids, recipe.lengths, strict=True)
        for op in recipe.operations():
            if isinstance(op, Hole):
                yield op
            else:
                yield from _gathered(_data(islice(chunks, op.count), source))


def _data(chunks: Iterable[tuple[Digest, int]], source: ContentSource) -> Iterator[bytes]:
    for id_, length in chunks:
        chunk = source.chunk(id_)
        if len(chunk) != length:
            raise wrong_length(id_)
        yield chunk


def _gathered(pieces: Iterable[bytes]) -> Iterator[list[bytes]]:
    """`pieces` by blocks."""
    waiting: list[bytes] = []
    size = 0
    for piece in pieces:
        waiting.append(piece)
        size += len(piece)
        if size >= BLOCK_SIZE:
            yield waiting
            waiting, size = [], 0
    if waiting:
        yield waiting


def content_blocks(
    content: Content, source: ContentSource, *, hashed: bool = True
) -> Iterator[Block]:
    """What `content` holds, block by block, never more than its size; every chunk was hashed. After
    the last block DamageError is raised unless all of it had its size and, if `hashed`, its digest.
    """
    hasher = hashlib.sha256()
    size = 0
    for block in blocks(content_recipes(content, source), source):
        size += block_size(block)
        if size > content.size:
            break
        if hashed:
            for data in block_data(block):
                hasher.update(data)
        yield block
    if size != content.size:
        raise DamageError(WRONG_SIZE, where=content.digest.hex())
    if hashed and hasher.digest() != content.digest:
        raise damage(content, source)


def damage(content: Content, source: ContentSource) -> DamageError:
    """Why a content has another digest than it should: a chunk of it, or its recipes."""
    try:
        for recipe in content_recipes(content, source):
            for id_ in recipe.ids:
                source.chunk(id_)
    except DamageError as error:
        return error
    return DamageError("its recipes rebuild something else", where=content.digest.hex())


def rebuild(recipes: Iterable[AnyRecipe], source: ContentSource, out: Writable) -> None:
    """Write what `recipes` rebuild to `out`, holes as zeros."""
    for block in blocks(recipes, source):
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


def block_data(block: Block) -> Iterable[bytes]:
    """The bytes of `block`, by pieces; zeros for a hole."""
    return zero_pieces(block.size) if isinstance(block, Hole) else block


def zero_pieces(size: int) -> Iterator[bytes]:
    """`size` zeros, by pieces; none if it is not positive."""
    while size > 0:
        piece = ZEROS[:size]
        yield piece
        size -= len(piece)
