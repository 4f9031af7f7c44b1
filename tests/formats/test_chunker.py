"""Cuts: those of the specification, whoever makes them, however the stream is read."""

from __future__ import annotations

import random
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from fastcdc.fastcdc_py import fastcdc_py
from hypothesis import given, settings
from hypothesis import strategies as st

from cas import chunker
from cas.chunker import AVERAGE_SIZE, MAX_SIZE, MIN_SIZE, Chunker, cut_whole, is_pure_python
from cas.ids import digest_of
from tests.vectors.cuts import INPUTS, noise, text
from tests.vectors.vector import load_all, plain

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "format.md"
VECTORS = load_all("chunker")


def documented_gear() -> list[int]:
    """The numbers in the appendix of docs/format.md."""
    appendix = DOCUMENT.read_text().split("## Appendix: gear")[1]
    block = appendix.split("```")[1]
    return [int(number, 16) for number in re.findall(r"\b[0-9a-f]{8}\b", block)]


def documented_cuts(stream: bytes) -> list[int]:
    """Section 7 of docs/format.md, written down once more."""
    gear = documented_gear()
    lengths, s = [], 0
    while s < len(stream):
        most = min(len(stream) - s, 262144)
        length, pattern = most, 0
        for i in range(16384, most):
            pattern = (pattern >> 1) + gear[stream[s + i]]
            if pattern & (0x1FFFF if i < 40960 else 0x7FFF) == 0:
                length = i + 1
                break
        lengths.append(length)
        s += length
    return lengths


def pure_cuts(stream: bytes) -> list[int]:
    """What the package's pure Python makes of it."""
    cuts = fastcdc_py(stream, min_size=MIN_SIZE, avg_size=AVERAGE_SIZE, max_size=MAX_SIZE)
    return [cut.length for cut in cuts]


@pytest.mark.parametrize("cut", [cut_whole, pure_cuts, documented_cuts])
def test_every_implementation_cuts_the_same(cut: Callable[[bytes], list[int]]) -> None:
    for vector in VECTORS:
        data = INPUTS[vector.given["input"]](vector.given["size"])
        assert vector.given["digest"] == plain(digest_of(data)), vector.path
        assert vector.value == cut(data), vector.path


def test_the_gear_has_its_digest() -> None:
    gear = b"".join(number.to_bytes(4, "little") for number in documented_gear())
    assert (
        "d499f6cdb238b999913ce6bc226452991b403b71cb0b144ca82ecf6e2ce2032a" == digest_of(gear).hex()
    )
    assert max(documented_gear()) < 2**31


def _chunks(stream: bytes, sizes: list[int]) -> list[bytes]:
    """The chunks of `stream` fed in pieces of `sizes`, over and over."""
    cutter, at, turn = Chunker(), 0, 0
    found: list[bytes] = []
    while at < len(stream):
        size = sizes[turn % len(sizes)]
        found += map(bytes, cutter.feed(stream[at : at + size]))
        at, turn = at + size, turn + 1
    return [*found, *map(bytes, cutter.finish())]


STREAM = noise(700_000) + text(400_000) + bytes(600_000) + noise(300_000)


@settings(max_examples=30)
@given(
    st.lists(st.sampled_from([1000, 4096, 65536, 262143, 262144, 262145, 10**6, 10**7])
             | st.integers(500, 500_000), min_size=1, max_size=5),
    st.integers(0, len(STREAM)),
)  # fmt: skip
def test_cuts_do_not_depend_on_how_a_stream_is_read(sizes: list[int], size: int) -> None:
    stream = STREAM[:size]
    found = _chunks(stream, sizes)
    assert stream == b"".join(found)
    assert cut_whole(stream) == [*map(len, found)]


def test_byte_by_byte() -> None:
    stream = STREAM[600_000:900_000]
    assert cut_whole(stream) == [*map(len, _chunks(stream, [1]))]


def test_a_chunker_is_ready_for_another_stream() -> None:
    cutter = Chunker()
    for stream in (STREAM[:300_000], b"", b"x", STREAM):
        found = [*map(len, cutter.feed(stream)), *map(len, cutter.finish())]
        assert cut_whole(stream) == found


def test_chunks_stay_as_they_were() -> None:
    """A view keeps its bytes however much is fed after it."""
    cutter = Chunker()
    views = [view for at in range(0, len(STREAM), 100_000)
             for view in cutter.feed(STREAM[at : at + 100_000])]  # fmt: skip
    views += cutter.finish()
    assert STREAM == b"".join(views)


@settings(max_examples=20)
@given(st.binary(max_size=300_000))
def test_lengths_are_within_their_limits(data: bytes) -> None:
    stream = data + STREAM[: 3 * len(data)]
    *others, last = cut_whole(stream) or [0]
    assert all(MIN_SIZE < length <= MAX_SIZE for length in others)
    assert last <= MAX_SIZE
    assert len(stream) == sum([*others, last])


@pytest.mark.parametrize("edit", ["insert", "delete", "replace"])
def test_one_edit_changes_few_chunks(edit: str) -> None:
    stream = noise(4_000_000)
    before = {digest_of(chunk) for chunk in _chunks(stream, [10**6])}
    rng = random.Random(edit)
    for _ in range(5):
        at = rng.randrange(len(stream))
        new = b"" if edit == "delete" else rng.randbytes(rng.choice([1, 100]))
        end = at if edit == "insert" else at + 50
        after = [digest_of(chunk) for chunk in _chunks(stream[:at] + new + stream[end:], [10**6])]
        assert 0 < sum(id_ not in before for id_ in after) <= 6
        assert len(after) > 40


def test_the_compiled_part_is_there() -> None:
    assert not is_pure_python()


PURE = """
import sys
sys.modules["fastcdc.fastcdc_cy"] = None
from cas import chunker
sys.stdout.write(f"{chunker.is_pure_python()} {chunker.cut_whole(bytes(300000))}")
"""


def test_without_the_compiled_part() -> None:
    """It says so when asked, cuts the same, and keeps standard output to ourselves."""
    done = subprocess.run([sys.executable, "-c", PURE], capture_output=True, text=True, check=True)
    assert f"True {cut_whole(bytes(300_000))}" == done.stdout


def test_the_identity_names_the_parameters() -> None:
    assert "fastcdc-ronomon-16k-64k-256k-v1" == chunker.IDENTITY
    assert (16 * 1024, 64 * 1024, 256 * 1024) == (MIN_SIZE, AVERAGE_SIZE, MAX_SIZE)
