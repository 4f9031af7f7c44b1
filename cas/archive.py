"""The recipe of an archive: chunks, skeleton, and a program (docs/format.md, section 11).

The first `skeleton` chunks of the list, one after another, are the skeleton; the others are copied,
in order. A contained file's chunks are those that it would have lying by itself, so what is in two
archives, or in one and beside it, is here once.

The parts of an archive are one program: a level that one part begins may end in a later one, and
what a part writes is known only when all before it have run. So a part says what it took from the
archive (`size`), and the digest is checked when all of it is rebuilt.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from cas import wire
from cas.errors import FormatError, LimitError
from cas.ids import DIGEST_SIZE, Digest, as_digest, split_digests
from cas.program import Op, check_program, decode_op, encode_op
from cas.recipe import (
    CHUNKS_LIMIT,
    LENGTH_LIMIT,
    RECIPE_LIMIT,
    SIZE_LIMIT,
    Recipe,
    decode_recipe,
)

MAGIC = b"CASr\x02"
NOTES_LIMIT = 1000  # in one recipe
NOTE_LIMIT = 300  # characters


@dataclass(frozen=True, slots=True)
class ArchiveRecipe:
    """What rebuilds `size` bytes of an archive from chunks `ids` of `lengths`.

    `digest` is that of the archive in its only part, and zeros where there are several. `notes` say
    what was left as it is, each with its reason.
    """

    size: int
    digest: Digest
    ids: tuple[Digest, ...]
    lengths: tuple[int, ...]
    skeleton: int
    program: tuple[Op, ...]
    notes: tuple[str, ...] = ()


AnyRecipe: TypeAlias = Recipe | ArchiveRecipe


def encode_archive_recipe(recipe: ArchiveRecipe) -> bytes:
    """The one encoded form of `recipe`; raises FormatError (LimitError) for one that no reader
    would accept."""
    _check(recipe)
    fields = [
        recipe.size, recipe.digest, list(recipe.lengths), b"".join(recipe.ids), recipe.skeleton,
        [encode_op(op) for op in recipe.program], list(recipe.notes),
    ]  # fmt: skip
    encoded = MAGIC + wire.encode(fields)
    if len(encoded) > RECIPE_LIMIT:
        raise LimitError(f"a recipe of {len(encoded)} bytes is over the limit of {RECIPE_LIMIT}")
    return encoded


def decode_any_recipe(data: bytes) -> AnyRecipe:
    """The plain or archive's recipe in `data`; raises FormatError (LimitError) unless it is wholly
    valid."""
    if data[: len(MAGIC)] != MAGIC:
        return decode_recipe(data)
    return decode_archive_recipe(data)


def decode_archive_recipe(data: bytes) -> ArchiveRecipe:
    """The archive's recipe in `data`; raises FormatError (LimitError) unless it is wholly valid."""
    if data[: len(MAGIC)] != MAGIC:
        raise FormatError("not an archive's recipe", advice="a newer cas may have written it")
    body = wire.decode(memoryview(data)[len(MAGIC) :], limit=RECIPE_LIMIT, what="recipe")
    size, digest, lengths, blob, skeleton, program, notes = wire.as_list(body, "recipe", 7)
    ids = split_digests(wire.as_bytes(blob, "chunk ids", CHUNKS_LIMIT * DIGEST_SIZE))
    recipe = ArchiveRecipe(
        wire.as_int(size, "size", 0, SIZE_LIMIT),
        as_digest(digest),
        tuple(ids),
        tuple(wire.as_ints(lengths, "chunk lengths", 1, LENGTH_LIMIT)),
        wire.as_int(skeleton, "skeleton chunks", 0, CHUNKS_LIMIT),
        tuple(decode_op(op) for op in wire.as_list(program, "program")),
        tuple(wire.as_text(note, "note", NOTE_LIMIT) for note in wire.as_list(notes, "notes")),
    )
    _check(recipe)
    return recipe


def _check(recipe: ArchiveRecipe) -> None:
    if len(recipe.ids) > CHUNKS_LIMIT:
        raise LimitError("a recipe with too many chunks")
    if len(recipe.ids) != len(recipe.lengths):
        raise FormatError("a recipe's ids and lengths do not match")
    if recipe.skeleton > len(recipe.ids):
        raise FormatError("a recipe's skeleton has more chunks than there are")
    if len(recipe.notes) > NOTES_LIMIT or any(len(note) > NOTE_LIMIT for note in recipe.notes):
        raise LimitError("a recipe with too many or too long notes")
    check_program(
        recipe.program,
        copied=len(recipe.ids) - recipe.skeleton,
        skeleton=sum(recipe.lengths[: recipe.skeleton]),
    )


def is_archive(encoded: bytes) -> bool:
    """Whether an encoded recipe is one of an archive."""
    return encoded[: len(MAGIC)] == MAGIC
