"""One form of each value: whatever else msgpack allows is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cas import wire
from cas.errors import FormatError, LimitError
from cas.ids import as_digest, parse_digest, split_digests

FORMS = {
    int: [(0xCC, 1), (0xCD, 2), (0xCE, 4), (0xCF, 8), (0xD0, 1), (0xD1, 2), (0xD2, 4), (0xD3, 8)],
    bytes: [(0xC4, 1), (0xC5, 2), (0xC6, 4)],
    str: [(0xD9, 1), (0xDA, 2), (0xDB, 4)],
    list: [(0xDC, 2), (0xDD, 4)],
}
VALUES = st.recursive(
    st.integers(-(2**63), 2**64 - 1)
    | st.integers(-40, 300)
    | st.binary(max_size=300)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=40),
    lambda inner: st.lists(inner, max_size=18),
    max_leaves=8,
)


def _forms(value: object) -> list[bytes]:
    """Every head that msgpack could give `value`."""
    size = value if isinstance(value, int) else len(_body(value))
    if isinstance(value, list):
        size = len(value)
    heads = []
    for code, width in FORMS[type(value)]:
        signed = code >= 0xD0 and isinstance(value, int)
        bits = 8 * width - signed
        if (-(2**bits) if signed else 0) <= size < 2**bits:
            heads.append(bytes([code]) + size.to_bytes(width, "big", signed=signed))
    short = {int: (-32, 128, 0), str: (0, 32, 0xA0), list: (0, 16, 0x90)}.get(type(value))
    if short and short[0] <= size < short[1]:
        heads.append(bytes([(size + short[2]) % 256]))
    return heads


def _body(value: object) -> bytes:
    return value.encode() if isinstance(value, str) else value if isinstance(value, bytes) else b""


def _draw(data: st.DataObject, value: object) -> bytes:
    """`value` in any form."""
    head = data.draw(st.sampled_from(_forms(value)))
    inner = b"".join(_draw(data, item) for item in value) if isinstance(value, list) else b""
    return head + _body(value) + inner


@given(VALUES, st.data())
def test_other_forms_are_refused(value: object, data: st.DataObject) -> None:
    body = _draw(data, value)
    if body == wire.encode(value):
        assert value == wire.decode(body, limit=len(body), what="value")
    else:
        with pytest.raises(FormatError):
            wire.decode(body, limit=len(body), what="value")


def test_the_limit_counts_bytes() -> None:
    body = wire.encode(b"x" * 100)
    assert b"x" * 100 == wire.decode(memoryview(body), limit=102, what="value")
    with pytest.raises(LimitError):
        wire.decode(body, limit=101, what="value")


@pytest.mark.parametrize("value", [2**64, -(2**63) - 1, [2**64], "\ud800", object(), {1: object()}])
def test_what_has_no_form_is_not_written(value: object) -> None:
    with pytest.raises(FormatError):
        wire.encode(value)


@pytest.mark.parametrize("value", [True, 1.0, "1", b"1", None, [1], -1, 11])
def test_an_integer_is_one(value: object) -> None:
    with pytest.raises(FormatError):
        wire.as_int(value, "n", 0, 10)
    with pytest.raises(FormatError):
        wire.as_ints([1, value], "n", 0, 10)


def test_lists_of_things() -> None:
    assert [] == wire.as_ints([], "n", 0, 1)
    assert [0, 10] == wire.as_ints([0, 10], "n", 0, 10)
    assert [b"", b"ab"] == wire.as_blobs([b"", b"ab"], "b", 2)
    for bad in ([b"abc"], ["a"], [bytearray(b"a")], b"a", (b"a",)):
        with pytest.raises(FormatError):
            wire.as_blobs(bad, "b", 2)


def test_digests_as_text() -> None:
    digits = "0123456789abcdef" * 4
    assert bytes.fromhex(digits) == parse_digest(digits)
    for bad in (digits.upper(), digits[:-1], digits + "0", digits[:-2] + " 0", "0x" + digits[2:],
                digits[:-1] + "g", digits[:-1] + "\u0661", "", digits + "\n"):  # fmt: skip
        with pytest.raises(FormatError):
            parse_digest(bad)


def test_digests_as_bytes() -> None:
    one, two = bytes(32), bytes(range(32))
    assert [one, two] == split_digests(one + two)
    assert [] == split_digests(b"")
    assert one == as_digest(one)
    for bad in (one[1:], one + b"\0", bytearray(one), "x" * 32, None):
        with pytest.raises(FormatError):
            as_digest(bad)
    with pytest.raises(FormatError):
        split_digests(one + b"\0")
