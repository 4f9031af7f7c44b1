"""A gzip file that unpacks to itself, made as Russ Cox found out that it can be ("Zip Files All The
Way Down", 2010): copies of literals and of what was just written, each instruction five bytes.

    written         says
    P               (the header)
    L P L           P L
    R               P L
    L R             R
    L L             L
    L R L L L       R L L L
    r               R L L L
    l r l r l       r l r l
    r               r l r l
    l r 0 0 M       r 0 0 M
    r               r 0 0 M
    0 0 M Q S       Q S
    Q               Q S
    S               (the last block, and the trailer)

The checksum in the trailer is one of bytes that it is itself among. CRC-32 is affine, so that is a
system of 32 linear equations.
"""

from __future__ import annotations

import zlib

UNIT = 5
MATCH = {9: 263, 10: 264}  # lengths that have symbols of their own


def _stored(size: int) -> bytes:
    return b"\0" + size.to_bytes(2, "little") + (size ^ 0xFFFF).to_bytes(2, "little")


def _repeat(size: int) -> bytes:
    """The last `size` bytes, 18 or 20, once more, by a block of fixed codes with two matches."""
    match = format(MATCH[size // 2] - 256, "07b")
    # Distances from 17 to 24 have symbol 8 and three more bits, the lowest first.
    distance = "01000" + format(size - 17, "03b")[::-1]
    bits = "0" + "10" + 2 * (match + distance) + "0000000"  # not the last; fixed codes; ...; end
    assert 8 * UNIT == len(bits)
    return bytes(int(bits[at : at + 8][::-1], 2) for at in range(0, len(bits), 8))


def _assembled(check: int, name: bytes) -> bytes:
    head = b"\x1f\x8b\x08\x08\0\0\0\0\0\xff" + name + b"\0"
    tail = b"\x01\0\0\xff\xff" + check.to_bytes(4, "little")
    size = len(_joined(head, tail + bytes(4)))
    return _joined(head, tail + size.to_bytes(4, "little"))


def _joined(head: bytes, tail: bytes) -> bytes:
    long, unit, four, none = (_stored(n) for n in (len(head) + UNIT, UNIT, 4 * UNIT, 0))
    last, again = _stored(len(tail) + UNIT), _repeat(len(head) + UNIT)
    repeat, again_last = _repeat(4 * UNIT), _repeat(len(tail) + UNIT)
    return b"".join([
        head,
        long, head, long,
        again,
        unit, again,
        unit, unit,
        four, again, unit, unit, four,
        repeat,
        four, repeat, four, repeat, four,
        repeat,
        four, repeat, none, none, last,
        repeat,
        none, none, last, again_last, tail,
        again_last,
        tail,
    ])  # fmt: skip


def _fixed_point(name: bytes) -> int | None:
    """The checksum that is right, if there is one for a file of this name."""
    constant = zlib.crc32(_assembled(0, name))
    # Row by row: bits of the unknown that add up to a bit of the constant.
    rows = [(1 << bit, constant >> bit & 1) for bit in range(32)]
    for unknown in range(32):
        column = zlib.crc32(_assembled(1 << unknown, name)) ^ constant
        rows = [(left ^ ((column >> bit & 1) << unknown), right)
                for bit, (left, right) in enumerate(rows)]  # fmt: skip
    value = 0
    solved: list[tuple[int, int, int]] = []
    for unknown in range(32):
        found = next((row for row in rows if row[0] >> unknown & 1), None)
        if found is None:
            return None
        rows.remove(found)
        rows = [(a ^ found[0], b ^ found[1]) if a >> unknown & 1 else (a, b) for a, b in rows]
        solved.append((unknown, *found))
    for unknown, left, right in reversed(solved):
        value |= (right ^ (left & value).bit_count() & 1) << unknown
    return value


def gzip_quine() -> bytes:
    """The file."""
    for number in range(1000):
        name = b"%04d" % number
        if (check := _fixed_point(name)) is not None:
            return _assembled(check, name)
    raise AssertionError("no name does")
