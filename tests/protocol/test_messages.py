"""Messages: their bytes, and that nothing else is taken for them."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cas import wire
from cas.errors import CasError, FormatError, LimitError
from cas.frame import compress_small
from cas.messages import (
    COMPRESSED,
    FROM_AGENT,
    FROM_CLIENT,
    HEADER,
    PIECE_HEAD,
    PIECE_SIZE,
    Message,
    Page,
    Piece,
    decode_message,
    encode_message,
    limit_of,
)
from cas.segment import SegmentHead, decode_segment, encode_segment
from tests.protocol.examples import EXAMPLES


def _parts(message: Message) -> tuple[int, int, bytes]:
    encoded = encode_message(message)
    size, kind, flags, zero = HEADER.unpack_from(encoded)
    assert zero == 0
    assert size == len(encoded) - HEADER.size
    return kind, flags, encoded[HEADER.size :]


@pytest.mark.parametrize("message", EXAMPLES, ids=lambda m: type(m).__name__)
def test_every_message_comes_back(message: Message) -> None:
    assert message == decode_message(*_parts(message))


def test_the_examples_are_all_there_are() -> None:
    assert set(FROM_CLIENT) | set(FROM_AGENT) == {type(message) for message in EXAMPLES}
    assert list(range(1, 22)) == sorted(message.TYPE for message in EXAMPLES)


@pytest.mark.parametrize("message", EXAMPLES, ids=lambda m: type(m).__name__)
def test_a_body_with_a_byte_more_or_less_is_refused(message: Message) -> None:
    kind, flags, body = _parts(message)
    if isinstance(message, Piece):  # its data may have any length up to what was announced
        body = body[: PIECE_HEAD.size]
    with pytest.raises(FormatError):
        decode_message(kind, flags, body + b"\0" * (0 if isinstance(message, Piece) else 1))
    with pytest.raises(FormatError):
        decode_message(kind, flags, body[:-1])


@given(st.integers(0, 40), st.integers(0, 3), st.binary(max_size=200))
def test_any_bytes_give_a_message_or_one_of_our_errors(kind: int, flags: int, body: bytes) -> None:
    with contextlib.suppress(CasError):
        decode_message(kind, flags, body)


def test_a_compressed_body_that_would_burst_its_limit_is_refused_before_it_does() -> None:
    bomb = compress_small(bytes(limit_of(3) + 1))
    assert len(bomb) < 100_000
    with pytest.raises(LimitError):
        decode_message(Page.TYPE, COMPRESSED, bomb)


def test_a_piece_outside_its_segment_is_refused() -> None:
    for offset, total in ((0, 2**32 - 1), (10, 12), (2**32 - 1, 2**31)):
        body = PIECE_HEAD.pack(1, 1, offset, total) + b"data"
        with pytest.raises(FormatError):
            decode_message(Piece.TYPE, 0, body)
    assert limit_of(Piece.TYPE) == PIECE_SIZE + PIECE_HEAD.size


def test_a_segment_comes_back() -> None:
    head = SegmentHead(1, 1000, True, ((1, 0, 5, 2), (1, 3, 0, 1)))
    decoded, payload = decode_segment(encode_segment(head, b"payload"))
    assert (head, b"payload") == (decoded, bytes(payload))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff\xff\xff\xff",
        b"\x01\0\0\0",
        len(wire.encode([9, 1, 0, []])).to_bytes(4, "little") + wire.encode([9, 1, 0, []]),
        len(wire.encode([1, 2**40, 0, []])).to_bytes(4, "little") + wire.encode([1, 2**40, 0, []]),
        len(wire.encode([1, 5, 0, [[1, 1, 1, 0]]])).to_bytes(4, "little")
        + wire.encode([1, 5, 0, [[1, 1, 1, 0]]]),
    ],
)
def test_a_segment_head_that_is_wrong_is_refused(data: bytes) -> None:
    with pytest.raises(FormatError):
        decode_segment(data)
