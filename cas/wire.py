"""The encoding of structured values: msgpack, arrays in fixed order, exactly one form accepted.

msgpack allows several encodings of one value. `decode` takes only the one that `encode` writes, so
that a digest over encoded bytes names one value, and nothing can hide in unused bytes. Every
decoder states a limit; the length is compared before anything is unpacked, and msgpack never
allocates more than the input can fill.
"""

from __future__ import annotations

from typing import Any

import msgpack

from cas.errors import FormatError, LimitError

U32 = 2**32 - 1
U64 = 2**64 - 1
I64_MIN = -(2**63)
I64_MAX = 2**63 - 1


def encode(value: object) -> bytes:
    """`value` (None, bool, int, bytes, str, list, tuple of these) as msgpack."""
    encoded: bytes = msgpack.packb(value, use_bin_type=True)
    return encoded


def decode(data: bytes | memoryview, *, limit: int, what: str) -> Any:
    """The value in `data`; raises LimitError past `limit` bytes, FormatError for any other form."""
    if len(data) > limit:
        raise LimitError(f"{what} of {len(data)} bytes is over its limit of {limit}")
    try:
        value = msgpack.unpackb(data, raw=False, use_list=True, strict_map_key=True)
    except (ValueError, msgpack.UnpackException, RecursionError) as error:
        raise FormatError(f"{what} cannot be decoded: {error}") from error
    if encode(value) != data:
        raise FormatError(f"{what} is not in its one accepted form")
    return value


def as_list(value: object, what: str, length: int | None = None) -> list[Any]:
    """`value` as a list, of `length` fields when that is given."""
    if not isinstance(value, list) or (length is not None and len(value) != length):
        raise FormatError(f"{what} must be a list" + ("" if length is None else f" of {length}"))
    return value


def as_int(value: object, what: str, low: int = 0, high: int = U64) -> int:
    """`value` as an integer from `low` to `high`."""
    if type(value) is not int or not low <= value <= high:
        raise FormatError(f"{what} must be an integer from {low} to {high}")
    return value


def as_bytes(value: object, what: str, limit: int) -> bytes:
    """`value` as at most `limit` bytes."""
    if not isinstance(value, bytes):
        raise FormatError(f"{what} must be bytes")
    if len(value) > limit:
        raise LimitError(f"{what} of {len(value)} bytes is over its limit of {limit}")
    return value


def as_text(value: object, what: str, limit: int = 4096) -> str:
    """`value` as a string of at most `limit` characters."""
    if not isinstance(value, str):
        raise FormatError(f"{what} must be text")
    if len(value) > limit:
        raise LimitError(f"{what} of {len(value)} characters is over its limit of {limit}")
    return value


def as_ints(value: object, what: str, low: int, high: int) -> list[int]:
    """`value` as a list of integers from `low` to `high`."""
    numbers = as_list(value, what)
    for number in numbers:
        if type(number) is not int or not low <= number <= high:
            raise FormatError(f"{what} must be integers from {low} to {high}")
    return numbers
