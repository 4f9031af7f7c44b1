"""Frames: history across segments, exact sizes, what is worth compressing."""

from __future__ import annotations

import random

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from cas.errors import CasError, FormatError, LimitError
from cas.frame import (
    FAST_LEVEL,
    SAMPLE_LEAST,
    FrameDecoder,
    FrameEncoder,
    Sampler,
    compress_small,
    decompress_small,
)
from tests.vectors.cuts import noise, text

MIB = 2**20


@given(
    st.lists(st.lists(st.binary(min_size=1, max_size=2000), min_size=1, max_size=4), min_size=1),
    st.sampled_from([1, 3, 12]),
    st.booleans(),
)
def test_segments_come_back(segments: list[list[bytes]], level: int, ended: bool) -> None:
    encoder, decoder = FrameEncoder(level), FrameDecoder()
    for number, chunks in enumerate(segments):
        plain = b"".join(chunks)
        payload = encoder.segment(chunks, last=ended and number == len(segments) - 1)
        assert plain == decoder.segment(payload, len(plain))
    assert sum(len(chunk) for chunks in segments for chunk in chunks) == encoder.plain_size


@pytest.mark.parametrize("size", [131071, 131072, 131073, 262144, MIB, 3 * MIB + 1])
@pytest.mark.parametrize("kind", [noise, text, bytes])
def test_segments_around_the_size_of_a_block(kind, size: int) -> None:  # type: ignore[no-untyped-def]
    encoder, decoder = FrameEncoder(3), FrameDecoder()
    plain = kind(size)
    for last in (False, False, True):
        assert plain == decoder.segment(encoder.segment([plain], last=last), size)


def test_a_view_of_a_buffer_is_decoded_and_let_go() -> None:
    plain = text(5000)
    buffer = bytearray(b"before" + FrameEncoder(3).segment([plain], last=True))
    assert plain == FrameDecoder().segment(memoryview(buffer)[6:], len(plain))
    buffer.clear()  # would raise while anything looks at it


@pytest.mark.parametrize("level", [1, 3, 9])
@pytest.mark.parametrize("ended", [True, False])
def test_memory_taken_over_holds_nothing_of_the_frame_before(level: int, ended: bool) -> None:
    old = FrameEncoder(level)
    old.segment([noise(MIB)], last=ended)
    plain = text(100_000) + noise(MIB)
    again = FrameEncoder(level, old).segment([plain], last=True)
    assert FrameEncoder(level).segment([plain], last=True) == again
    assert FrameEncoder(12).segment([plain], last=True) == FrameEncoder(12, old).segment(
        [plain], last=True
    )


def test_history_of_the_frame_helps() -> None:
    """Two segments with much in common: the second costs little after the first, much alone."""
    first, second = noise(MIB), noise(MIB)[::-1][:1000] + noise(MIB)
    frame = FrameEncoder(3)
    frame.segment([first], last=False)
    together = frame.segment([second], last=True)
    alone = FrameEncoder(3).segment([second], last=True)
    assert len(together) < len(alone) / 100


@pytest.mark.parametrize(("level", "back"), [(FAST_LEVEL, 6), (FAST_LEVEL + 1, 29), (9, 29)])
def test_history_reaches_over_the_whole_frame(level: int, back: int) -> None:
    """What lies 30 MiB back is still found; 7 MiB at the fast levels."""
    first = noise(MIB)
    frame = FrameEncoder(level)
    frame.segment([first], last=False)
    for number in range(back):
        frame.segment([random.Random(number).randbytes(MIB)], last=False)
    assert len(frame.segment([first], last=True)) < MIB / 100


def test_cut_at_every_byte() -> None:
    plain = text(3000)
    payload = FrameEncoder(3).segment([plain], last=False)
    for end in range(len(payload)):
        with pytest.raises(FormatError):
            FrameDecoder().segment(payload[:end], len(plain))


@given(st.integers(1, 10_000))
def test_only_the_right_size_is_given(size: int) -> None:
    plain = text(5000)
    decoder = FrameDecoder()
    payload = FrameEncoder(3).segment([plain], last=False)
    if size == len(plain):
        assert plain == decoder.segment(payload, size)
    else:
        with pytest.raises(FormatError):
            decoder.segment(payload, size)


def test_random_bytes_are_not_worth_compressing() -> None:
    for size in (SAMPLE_LEAST, 20_000, 65_536, 262_144):
        assert not Sampler().is_compressible(noise(size))
        assert Sampler().is_compressible(text(size))
        assert Sampler().is_compressible(bytes(size))
        assert not Sampler().is_compressible(memoryview(noise(size)))
    packed = zstandard.ZstdCompressor(level=19).compress(random.Random(2).randbytes(50_000))
    assert not Sampler().is_compressible(packed)


def test_small_chunks_are_always_compressed() -> None:
    assert Sampler().is_compressible(noise(SAMPLE_LEAST - 1))
    assert Sampler().is_compressible(b"")


def test_a_sample_is_taken_from_the_whole() -> None:
    """A chunk that begins with noise and goes on with text is worth it, and so is the reverse."""
    half = 100_000
    assert Sampler().is_compressible(noise(half) + text(half))
    assert Sampler().is_compressible(text(half) + noise(half))


def test_a_sampler_is_not_confused_by_what_it_saw_before() -> None:
    sampler = Sampler()
    chunks = [noise(20_000), text(20_000)] * 100
    assert [False, True] * 100 == [*map(sampler.is_compressible, chunks)]


def test_what_shrinks_by_a_few_percent_is_worth_it() -> None:
    """Quantised weights: blocks of 18 bytes, of which two say little."""
    source = random.Random(4)
    weights = b"".join(bytes((0, 0x2C)) + source.randbytes(16) for _ in range(4000))
    assert Sampler().is_compressible(weights)


@given(st.binary(min_size=1, max_size=3000))
def test_small_comes_back(data: bytes) -> None:
    assert data == decompress_small(compress_small(data), limit=len(data))
    with pytest.raises(LimitError):
        decompress_small(compress_small(data), limit=len(data) - 1)


def _unsized(data: bytes) -> bytes:
    return zstandard.ZstdCompressor(write_content_size=False).compress(data)


SMALL = compress_small(b"abc" * 100)
BAD = {
    "nothing": b"",
    "not zstd": b"abc" * 10,
    "no bytes": compress_small(b""),
    "no bytes, and more": compress_small(b"") + b"more",
    "no size": _unsized(b"abc" * 100),
    "trailing byte": SMALL + b"\0",
    "trailing frame": SMALL + SMALL,
    "skippable frame first": b"\x50\x2a\x4d\x18\x01\0\0\0x" + SMALL,
    "cut off": SMALL[:-1],
    "too small a size": SMALL[:5] + bytes([SMALL[5] - 1]) + SMALL[6:],
    "too large a size": SMALL[:5] + bytes([SMALL[5] + 1]) + SMALL[6:],
}


@pytest.mark.parametrize("name", BAD)
def test_small_is_refused(name: str) -> None:
    with pytest.raises(FormatError):
        decompress_small(BAD[name], limit=MIB)


def test_a_stated_size_takes_no_memory() -> None:
    """A header that claims 2^60 bytes."""
    body = bytes.fromhex("28b52ffde0") + (2**60).to_bytes(8, "little") + b"\1\0\0"
    with pytest.raises(LimitError):
        decompress_small(body, limit=MIB)


def test_after_an_error_nothing_comes() -> None:
    plain = text(3000)
    payload = FrameEncoder(3).segment([plain], last=False)
    decoder = FrameDecoder()
    with pytest.raises(CasError):
        decoder.segment(payload[:-1] + b"\xff\xff", len(plain))
    with pytest.raises(CasError):
        decoder.segment(payload, len(plain))
