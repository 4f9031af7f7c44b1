"""The encoding of structured values: msgpack, arrays in fixed order, exactly one form accepted.

msgpack allows several encodings of one value. `decode` takes only the one that `encode` writes, so
that a digest over encoded bytes names one value, and nothing can hide in unused bytes
(docs/format.md, section 1).

Memory is taken only for what is there. Every decoder states a limit, compared with the length
before anything is looked at. Then the input is walked without building anything: msgpack would
otherwise make room for as many items as a list claims, at every depth. Then it is unpacked, and
the lists are counted, since an empty one takes a byte here and some sixty in memory.
"""

from __future__ import annotations

from typing import Any

import msgpack

from cas.errors import FormatError, LimitError

U32 = 2**32 - 1
U64 = 2**64 - 1
I64_MIN = -(2**63)
I64_MAX = 2**63 - 1
LISTS_LIMIT = 2**20  # in one value


def encode(value: object) -> bytes:
    """`value` (None, bool, int, bytes, str, list, tuple of these) as msgpack; raises FormatError
    for what msgpack cannot express: integers of more than 64 bits, text with lone surrogates."""
    try:
        encoded: bytes = msgpack.packb(value, use_bin_type=True)
    except (ValueError, OverflowError, TypeError) as error:
        raise FormatError(f"this cannot be written: {error}") from error
    return encoded


def decode(data: bytes | memoryview, *, limit: int, what: str) -> Any:
    """The value in `data`; raises LimitError past `limit` bytes, FormatError for any other form."""
    if len(data) > limit:
        raise LimitError(f"{what} of {len(data)} bytes is over its limit of {limit}")
    try:
        _walk(data)
        value = msgpack.unpackb(
            data, list_hook=_Counter(what), max_map_len=0, max_ext_len=0, raw=False
        )
        same = msgpack.packb(value, use_bin_type=True) == data
    except (ValueError, msgpack.UnpackException, RecursionError) as error:
        raise FormatError(f"{what} cannot be decoded: {error!r}") from error
    if not same:
        raise FormatError(f"{what} is not in its one accepted form")
    return value


def _walk(data: bytes | memoryview) -> None:
    """Raise unless `data` is one whole msgpack value; builds nothing of it."""
    unpacker = msgpack.Unpacker(max_buffer_size=max(len(data), 1))
    unpacker.feed(data)
    unpacker.skip()
    if unpacker.tell() != len(data):
        raise ValueError("bytes are left over")


class _Counter:
    """Called by msgpack with every list that it has made."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._left = LISTS_LIMIT

    def __call__(self, made: list[object]) -> list[object]:
        self._left -= 1
        if self._left < 0:
            raise LimitError(f"{self._what} of more than {LISTS_LIMIT} lists")
        return made


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


def as_fixed(value: object, what: str, size: int) -> bytes:
    """`value` as `size` bytes."""
    if not isinstance(value, bytes) or len(value) != size:
        raise FormatError(f"{what} must be {size} bytes")
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
    if numbers and (set(map(type, numbers)) != {int} or min(numbers) < low or max(numbers) > high):
        raise FormatError(f"{what} must be integers from {low} to {high}")
    return numbers


def as_blobs(value: object, what: str, limit: int) -> list[bytes]:
    """`value` as a list of at most `limit` bytes each."""
    blobs = as_list(value, what)
    if blobs and (set(map(type, blobs)) != {bytes} or max(map(len, blobs)) > limit):
        raise FormatError(f"{what} must be at most {limit} bytes each")
    return blobs


def as_name(value: object, what: str, limit: int) -> bytes:
    """`value` as at most `limit` bytes that C can take for a string: without NUL."""
    name = as_bytes(value, what, limit)
    if b"\0" in name:
        raise FormatError(f"{what} must not have zero bytes")
    return name
