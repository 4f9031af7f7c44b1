"""A recipe: the program that rebuilds one byte stream from chunks (docs/format.md, section 2).

Running the operations in order writes the stream. `Copy(n)` writes the next n chunks of the
recipe's chunk list, `Hole(n)` leaves n bytes as a hole. An empty program means one `Copy` of all.
A file of more than `PART_CHUNKS` chunks has several recipes, its parts, one after another; so no
recipe needs more than a few MB of memory, whatever the size of the file.

The recipe's id is the SHA-256 of its encoded form.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from cas import wire
from cas.errors import FormatError, LimitError
from cas.ids import DIGEST_SIZE, Digest, as_digest, digest_of, split_digests

MAGIC = b"CASr\x01"
PART_CHUNKS = 65536  # where a scan begins the next part: about 4 GiB
CHUNKS_LIMIT = 2**18  # in one recipe
OPS_LIMIT = 2**18
# Encoded, in bytes. A recipe is stored like a chunk, in a segment of at most 16 MiB, which may
# hold up to 1 MiB of smaller ones already.
RECIPE_LIMIT = 12 * 2**20
LENGTH_LIMIT = 16 * 2**20  # of one chunk
SIZE_LIMIT = 2**62

OP_COPY = 1
OP_HOLE = 2


@dataclass(frozen=True, slots=True)
class Copy:
    """Write the next `count` chunks."""

    count: int


@dataclass(frozen=True, slots=True)
class Hole:
    """Leave `size` bytes unwritten; they read as zeros."""

    size: int


Op = Copy | Hole


@dataclass(frozen=True, slots=True)
class Recipe:
    """`size` bytes with SHA-256 `digest`, from chunks `ids` of `lengths` by `program`, in which
    copies and holes alternate."""

    size: int
    digest: Digest
    ids: tuple[Digest, ...]
    lengths: tuple[int, ...]
    program: tuple[Op, ...] = ()

    def operations(self) -> tuple[Op, ...]:
        """The program with the short form written out."""
        return self.program or ((Copy(len(self.ids)),) if self.ids else ())


def single_chunk(digest: Digest, size: int) -> Recipe:
    """The recipe of a file that is one chunk; never stored, since the entry says it all."""
    return Recipe(size, digest, (digest,), (size,))


def encode_recipe(recipe: Recipe) -> bytes:
    """The one encoded form of `recipe`; raises FormatError (LimitError) for one that no reader
    would accept."""
    _check(recipe)
    program = [
        [OP_COPY, op.count] if isinstance(op, Copy) else [OP_HOLE, op.size] for op in recipe.program
    ]
    fields = [recipe.size, recipe.digest, list(recipe.lengths), b"".join(recipe.ids), program]
    return MAGIC + wire.encode(fields)


def recipe_id(encoded: bytes) -> Digest:
    """The id of a recipe, from its encoded form."""
    return digest_of(encoded)


def decode_recipe(data: bytes) -> Recipe:
    """The recipe in `data`; raises FormatError (LimitError) unless it is wholly valid."""
    if data[: len(MAGIC)] != MAGIC:
        raise FormatError("not a recipe of this version", advice="a newer cas may have written it")
    body = wire.decode(memoryview(data)[len(MAGIC) :], limit=RECIPE_LIMIT, what="recipe")
    size, digest, lengths, blob, program = wire.as_list(body, "recipe", 5)
    ids = split_digests(wire.as_bytes(blob, "chunk ids", CHUNKS_LIMIT * DIGEST_SIZE))
    lengths = wire.as_ints(lengths, "chunk lengths", 1, LENGTH_LIMIT)
    ops = tuple(_decode_op(op) for op in wire.as_list(program, "program"))
    recipe = Recipe(
        wire.as_int(size, "size", 0, SIZE_LIMIT), as_digest(digest), tuple(ids), tuple(lengths), ops
    )
    _check(recipe)
    return recipe


def _decode_op(op: object) -> Op:
    code, argument = wire.as_list(op, "operation", 2)
    wire.as_int(code, "operation")  # true equals 1 in Python, and would be a second form of it
    if code == OP_COPY:
        return Copy(wire.as_int(argument, "count", 1, CHUNKS_LIMIT))
    if code == OP_HOLE:
        return Hole(wire.as_int(argument, "hole", 1, SIZE_LIMIT))
    raise FormatError(f"unknown operation {code} in a recipe", advice="use a newer cas")


def _check(recipe: Recipe) -> None:
    if len(recipe.ids) > CHUNKS_LIMIT or len(recipe.program) > OPS_LIMIT:
        raise LimitError("a recipe with too many chunks or operations")
    if len(recipe.ids) != len(recipe.lengths):
        raise FormatError("a recipe's ids and lengths do not match")
    copied, holes = len(recipe.ids), 0
    if recipe.program:  # most have none
        copied = sum(op.count for op in recipe.program if isinstance(op, Copy))
        holes = sum(op.size for op in recipe.program if isinstance(op, Hole))
    if copied != len(recipe.ids) or sum(recipe.lengths) + holes != recipe.size:
        raise FormatError("a recipe's program does not come out at its size")
    if not recipe.size:
        raise FormatError("a recipe of nothing")
    if recipe.program:
        _check_form(recipe)


def _check_form(recipe: Recipe) -> None:
    """Of the programs that write the same bytes, only one is accepted."""
    if recipe.program == (Copy(len(recipe.ids)),):
        raise FormatError("a recipe's plain program must be left out")
    kinds = [type(op) for op in recipe.program]
    if any(one is other for one, other in pairwise(kinds)):
        raise FormatError("a recipe's operations could be fewer")
