"""The program of an archive's recipe: operations that write it (docs/format.md, section 11).

A stack of *levels* runs under it. Level 0 is the archive itself. `Begin` puts a codec on top: what
is written above it goes through that codec, and what the codec makes of it is written to the level
below; `End` takes it off again. So an OCI archive is tar headers and copies on level 0, with codecs
over them for its layers.

A codec takes its plain bytes by *spans*, in order. `Span` and `Verbatim` name the level they are
for, since they come whenever their side information is ready, before all the plain bytes or after
them, perhaps with another codec on top by then. At the `End` of a level all its plain bytes are
taken. Bits that are left over there, less than a byte, are dropped: the next byte has them too.

What operations need besides chunks, tar headers and side information for example, is the recipe's
*skeleton*, a byte stream in chunks of its own that the operations use up in order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from itertools import pairwise
from typing import TypeAlias

from cas import wire
from cas.errors import FormatError, LimitError
from cas.recipe import CHUNKS_LIMIT, SIZE_LIMIT, Copy

OPS_LIMIT = 2**18
SPAN_LIMIT = 64 * 2**20  # plain bytes that one span may take; a codec that streams has its own
SIDE_LIMIT = 16 * 2**20  # of the skeleton, for one operation
DEPTH_LIMIT = 8


class Codec(IntEnum):
    """What makes compressed bytes of plain ones; the parameters are the codec's own."""

    DEFLATE = 1  # a raw deflate stream; gzip, zip and zlib frame it with skeleton bytes
    BZIP2 = 2
    XZ = 3
    ZSTD = 4


@dataclass(frozen=True, slots=True)
class Skeleton:
    """Write the next `size` bytes of the skeleton."""

    size: int


@dataclass(frozen=True, slots=True)
class Begin:
    """Put a codec on top, whose parameters are the next `params` bytes of the skeleton."""

    codec: Codec
    params: int


@dataclass(frozen=True, slots=True)
class Span:
    """Let the codec of `level` take its next `plain` bytes, with the next `side` bytes of the
    skeleton as side information."""

    level: int
    plain: int
    side: int


@dataclass(frozen=True, slots=True)
class Verbatim:
    """After the spans before it, write the next `size` bytes of the skeleton to the level below
    `level`, as they are: what lies between two streams that are one to whoever unpacks them."""

    level: int
    size: int


@dataclass(frozen=True, slots=True)
class End:
    """Take the codec off; it has written `size` whole bytes."""

    size: int


Op: TypeAlias = Copy | Skeleton | Begin | Span | Verbatim | End

_COPY, _SKELETON, _BEGIN, _SPAN, _VERBATIM, _END = 1, 3, 4, 5, 6, 7  # 2 is a plain recipe's hole


def encode_op(op: Op) -> list[int]:
    """The operation as a list of its number and arguments."""
    match op:
        case Copy(count):
            return [_COPY, count]
        case Skeleton(size):
            return [_SKELETON, size]
        case Begin(codec, params):
            return [_BEGIN, codec, params]
        case Span(level, plain, side):
            return [_SPAN, level, plain, side]
        case Verbatim(level, size):
            return [_VERBATIM, level, size]
        case End(size):
            return [_END, size]


def decode_op(value: object) -> Op:
    """The operation in a list; raises FormatError (LimitError)."""
    fields = wire.as_list(value, "operation")
    code = wire.as_int(fields[0] if fields else None, "operation")
    rest = fields[1:]
    if len(rest) != _ARGUMENTS.get(code, len(rest)):
        raise FormatError("an operation with too few or too many arguments")
    match code:
        case 1:
            return Copy(wire.as_int(rest[0], "count", 1, CHUNKS_LIMIT))
        case 3:
            return Skeleton(wire.as_int(rest[0], "skeleton", 1, SIZE_LIMIT))
        case 4:
            return Begin(_codec(rest[0]), _side(rest[1]))
        case 5:
            plain = wire.as_int(rest[1], "plain bytes", 0, SIZE_LIMIT)
            return Span(_level(rest[0]), plain, _side(rest[2]))
        case 6:
            return Verbatim(_level(rest[0]), wire.as_int(rest[1], "verbatim", 1, SIDE_LIMIT))
        case 7:
            return End(wire.as_int(rest[0], "compressed size", 0, SIZE_LIMIT))
    raise FormatError(f"unknown operation {code} in a recipe", advice="use a newer cas")


_ARGUMENTS = {_COPY: 1, _SKELETON: 1, _BEGIN: 2, _SPAN: 3, _VERBATIM: 2, _END: 1}


def _codec(value: object) -> Codec:
    number = wire.as_int(value, "codec")
    try:
        return Codec(number)
    except ValueError:
        raise FormatError(f"unknown codec {number} in a recipe", advice="use a newer cas") from None


def _level(value: object) -> int:
    return wire.as_int(value, "level", 1, DEPTH_LIMIT)


def _side(value: object) -> int:
    return wire.as_int(value, "side information", 0, SIDE_LIMIT)


def skeleton_use(op: Op) -> int:
    """How many bytes of the skeleton `op` uses up."""
    match op:
        case Skeleton(size) | Verbatim(_, size):
            return size
        case Begin(_, params):
            return params
        case Span(_, _, side):
            return side
    return 0


def check_program(ops: Sequence[Op], *, copied: int, skeleton: int) -> None:
    """Raise FormatError unless `ops` copy `copied` chunks, use up `skeleton` bytes, and could not
    be fewer: two copies or two skeletons in a row are one.

    Whether codecs begin and end as they must shows when all of a file's parts run, one after
    another.
    """
    if not ops:
        raise FormatError("an archive's recipe without operations")
    if len(ops) > OPS_LIMIT:
        raise LimitError("a recipe with too many operations")
    if copied != sum(op.count for op in ops if isinstance(op, Copy)):
        raise FormatError("a recipe's program does not come out at its chunks")
    if skeleton != sum(map(skeleton_use, ops)):
        raise FormatError("a recipe's program does not come out at its skeleton")
    for one, other in pairwise(ops):
        if type(one) is type(other) and isinstance(one, (Copy, Skeleton)):
            raise FormatError("a recipe's operations could be fewer")
