"""Any bytes at all give a value or one of our errors, and take no memory that they do not fill."""

from __future__ import annotations

import random
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from typing import Any

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cas import archive, page, recipe, snapshot, wire
from cas.archive import decode_archive_recipe, encode_archive_recipe
from cas.entry import Entry, Kind, Owner
from cas.errors import CasError, FormatError, LimitError
from cas.frame import decompress_small
from cas.page import decode_page, encode_page
from cas.recipe import decode_recipe, encode_recipe
from cas.snapshot import decode_snapshot, encode_snapshot
from tests.formats.reading import READERS, read_pack
from tests.vectors.vector import Vector, load_all

MIB = 2**20
DECODERS: dict[str, tuple[bytes, Callable[[bytes], Any]]] = {
    "value": (b"", lambda body: wire.decode(body, limit=64 * MIB, what="value")),
    "recipe": (recipe.MAGIC, decode_recipe),
    "archive": (archive.MAGIC, decode_archive_recipe),
    "page": (page.MAGIC, decode_page),
    "snapshot": (snapshot.MAGIC, decode_snapshot),
    "pack": (b"CASP\x01\0\0\0" + bytes(16), read_pack),
    "record": (b"CASP\x01\0\0\0" + bytes(16) + b"CASS\x01", read_pack),
    "frame": (b"\x28\xb5\x2f\xfd", lambda body: _read_frame(body, 1000)),
    "small": (b"\x28\xb5\x2f\xfd", lambda body: decompress_small(body, limit=MIB)),
}
ENCODERS: dict[str, Callable[[Any], bytes]] = {
    "value": wire.encode,
    "recipe": encode_recipe,
    "archive": encode_archive_recipe,
    "page": encode_page,
    "snapshot": encode_snapshot,
}
SHAPES: st.SearchStrategy[object] = st.recursive(
    st.integers(-(2**63), 2**64 - 1)
    | st.sampled_from([0, 1, 2, True, None, 1.0, {}, b"", b"x" * 32, "", "x", 2**62, 4096])
    | st.binary(max_size=70),
    lambda inner: st.lists(inner, max_size=13),
    max_leaves=40,
)


def _read_frame(body: bytes, plain_size: int) -> list[dict[str, Any]]:
    given_sizes = [[plain_size, len(body)]]
    return list(READERS["frame"](Vector("frame", "", "", "", body, given=given_sizes)))


def _try(format_: str, body: bytes) -> Any:
    try:
        return DECODERS[format_][1](body)
    except CasError:
        return None


@pytest.mark.parametrize("format_", DECODERS)
@given(st.binary(max_size=200))
def test_any_bytes(format_: str, body: bytes) -> None:
    _try(format_, body)
    _try(format_, DECODERS[format_][0] + body)


@pytest.mark.parametrize("format_", ENCODERS)
@given(st.one_of(SHAPES, st.lists(SHAPES, min_size=5, max_size=5),
                 st.lists(SHAPES, min_size=12, max_size=13)))  # fmt: skip
def test_any_shape_of_a_value(format_: str, value: object) -> None:
    body = DECODERS[format_][0] + bytes(msgpack.packb(value))
    found = _try(format_, body)
    if found is not None and format_ != "value":
        assert body == ENCODERS[format_](found)


@pytest.mark.parametrize("format_", ["recipe", "archive", "page", "snapshot", "pack", "frame"])
@given(st.data())
def test_a_changed_vector(format_: str, data: st.DataObject) -> None:
    """Some bytes of a good one replaced, put in or cut out: refused, or the one form of another."""
    good = [vector.body for vector in load_all(format_) if vector.expect == "accept"]
    body = _mutated(random.Random(data.draw(st.integers(0, 2**32))), good)
    found = _try(format_, body)
    if found is not None and format_ in ENCODERS:
        assert body == ENCODERS[format_](found)


@pytest.mark.parametrize("format_", ["recipe", "archive", "page", "snapshot"])
def test_many_changed_vectors(format_: str) -> None:
    """The same in bulk, from the same beginning each time."""
    rng = random.Random(format_)
    good = [vector.body for vector in load_all(format_) if vector.expect == "accept"]
    good = [body for body in good if len(body) < 1000]
    accepted = 0
    for _ in range(20000):
        body = _mutated(rng, good)
        found = _try(format_, body)
        if found is not None:
            accepted += 1
            assert body == ENCODERS[format_](found)
    assert 0 < accepted < 20000


def _mutated(rng: random.Random, good: list[bytes]) -> bytes:
    body = bytearray(rng.choice(good))
    for _ in range(rng.choice([1, 1, 1, 2, 4])):
        at = rng.randrange(len(body))
        kind = rng.randrange(6)
        if kind == 0:
            body[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            body[at] = rng.randrange(256)
        elif kind == 2:
            body[at] = rng.choice(b"\x00\x01\x80\x90\x91\xc0\xc2\xc3\xc4\xcb\xcf\xd3\xdc\xdd\xff./")
        elif kind == 3:
            del body[at : at + rng.choice([1, 1, 2, 9])]
        elif kind == 4:
            body[at:at] = rng.randbytes(rng.choice([1, 1, 2, 9]))
        else:
            other = rng.choice(good)
            body[at:] = other[at:]
        if not body:
            return b""
    return bytes(body)


def _peak(decode: Callable[[bytes], Any], body: bytes, error: type[CasError]) -> int:
    """The most memory taken at once, in bytes, until `body` is refused."""
    tracemalloc.start()
    try:
        with pytest.raises(error):
            decode(body)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def _filled(head: bytes, size: int) -> bytes:
    return head + bytes(size - len(head))


CLAIMS = {
    "list": _filled(b"\xdd\xff\xff\xff\xff", 4 * MIB),
    "lists in lists": _filled(b"\xdd\x00\x3f\xff\x00" * 900, 4 * MIB),
    "small lists in lists": _filled(b"\xdc\xff\xff" * 900, 4 * MIB),
    "bytes": _filled(b"\xc6\xff\xff\xff\xff", 4 * MIB),
    "map": _filled(b"\xdf\x00\x3f\xff\x00", 4 * MIB),
    "maps in lists": _filled(b"\xdd\x00\x3f\xff\x00\xdf\x00\x3f\xff\x00" * 400, 4 * MIB),
}


@pytest.mark.parametrize("format_", ENCODERS)
@pytest.mark.parametrize("claim", CLAIMS)
def test_a_claimed_length_takes_no_memory(format_: str, claim: str) -> None:
    magic, decode = DECODERS[format_]
    body = magic + CLAIMS[claim]
    assert _peak(decode, body, FormatError) < 3 * len(body)


def test_a_million_empty_lists_are_refused() -> None:
    """Each is a byte here and sixty in memory."""
    count = 3 * MIB
    body = page.MAGIC + b"\xdd" + count.to_bytes(4, "big") + b"\x90" * count
    assert _peak(decode_page, body, LimitError) < 128 * MIB


@pytest.mark.parametrize(
    ("format_", "limit"),
    [("recipe", recipe.RECIPE_LIMIT), ("archive", recipe.RECIPE_LIMIT), ("page", page.PAGE_LIMIT),
     ("snapshot", snapshot.SNAPSHOT_LIMIT)],
)  # fmt: skip
def test_what_is_too_long_is_not_looked_at(format_: str, limit: int) -> None:
    magic, decode = DECODERS[format_]
    assert _peak(decode, magic + bytes(limit + 1), LimitError) < MIB


def test_paths_that_swell_are_refused() -> None:
    """Each path shares nearly all of a long one: a few bytes here, 32 KiB there."""
    long = b"/".join([b"d" * 250] * 127)
    body = encode_page(
        [Entry(b"%b/%04d" % (long, n), Kind.FIFO, Owner(0, 0, 0), 0) for n in range(4096)]
    )
    assert len(body) < MIB
    assert _peak(decode_page, body, LimitError) < 32 * MIB


BOMB = """
import resource
from cas.errors import CasError
from cas.frame import FrameDecoder
resource.setrlimit(resource.RLIMIT_AS, (2**30, 2**30))  # should it go off, then in here
block = ((131072 << 3) | 2).to_bytes(3, "little") + b"x"  # one byte, 131072 times
body = bytes.fromhex("28b52ffd0078") + block * (4 * 2**20 // 4)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    FrameDecoder().segment(body, 1000)
except CasError as error:
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before, error)
"""


def test_a_bomb_gives_one_bite() -> None:
    """4 MiB of blocks that stand for 128 GiB: 32 MiB of them come out, and are joined."""
    done = subprocess.run([sys.executable, "-c", BOMB], capture_output=True, text=True, check=True)
    grown, said = done.stdout.split(" ", 1)
    assert "holds more than its 1000 bytes" in said
    assert int(grown) < 160 * 1024
