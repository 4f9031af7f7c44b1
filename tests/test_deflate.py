"""The deflate core on streams of the encoders people use: every one comes back bit for bit."""

from __future__ import annotations

import random
import zlib

import pytest

from cas._native import Config, Splitter, choose, config_of, rebuild
from tests.zoo.spans import WINDOW, Rebuilder, deflate_of, sides
from tests.zoo.stream import STREAMS, read

GZIPS = [stream.name for stream in read() if stream.container == "gzip"]
SPAN_SIZE = 64 * 1024


def stream(name: str) -> bytes:
    """The first deflate stream of a file in the zoo, and what follows."""
    return deflate_of((STREAMS / name).read_bytes())


@pytest.mark.parametrize("name", GZIPS)
def test_a_stream_comes_back_bit_for_bit(name: str) -> None:
    data = stream(name)
    splitter, rebuilder = Splitter(SPAN_SIZE), Rebuilder(bytearray())
    spans = splitter.feed(data)
    assert splitter.failed is None
    for span, side in zip(spans, sides(spans, choose(spans)), strict=True):
        rebuilder.add(span.plain, side)
    assert rebuilder.history == splitter.window
    whole = data[: len(data) - len(splitter.unused)] if splitter.finished else data
    assert (splitter.position, splitter.phase) == divmod(
        sum(span.compressed_bits for span in spans), 8
    )
    covered = whole[: splitter.position + (splitter.phase > 0)]
    if splitter.phase:
        covered = covered[:-1] + bytes([covered[-1] & ((1 << splitter.phase) - 1)])
    assert covered == rebuilder.bits
    assert splitter.finished == (name != "truncated.gz")
    lasts = [span.last for span in spans]
    assert lasts[-1:] == [True] * splitter.finished
    assert not any(lasts[:-1])


@pytest.mark.parametrize(
    ("name", "share"),
    [
        ("gzip-6.gz", 0.002),
        ("zlib-9.gz", 0.002),
        ("pigz-6.gz", 0.002),
        ("go-default.gz", 0.002),
        ("pgzip-default-v1.15.12.gz", 0.002),
        ("node-9.gz", 0.002),
        ("igzip-1.gz", 0.05),
    ],
)
def test_known_encoders_need_hardly_any_side_information(name: str, share: float) -> None:
    data = stream(name)
    splitter = Splitter()
    spans = splitter.feed(data)
    config = choose(spans[:1])
    assert sum(len(span.analyse(config)) for span in spans) < share * splitter.position


@pytest.mark.parametrize("piece", [1, 1000])
def test_how_a_stream_comes_does_not_matter(piece: int) -> None:
    data = stream("go-1.gz")
    whole, pieces = Splitter(SPAN_SIZE), Splitter(SPAN_SIZE)
    expected = [span.plain for span in whole.feed(data)]
    parts = [data[at : at + piece] for at in range(0, len(data), piece)]
    assert expected == [span.plain for part in parts for span in pieces.feed(part)]
    assert whole.unused == pieces.unused == data[-8:]


def test_a_stream_cut_short_is_covered_as_far_as_its_spans_go() -> None:
    data = stream("gzip-6.gz")[:60_000]
    splitter, rebuilder = Splitter(1024), Rebuilder(bytearray())
    spans = splitter.feed(data)
    for span, side in zip(spans, sides(spans, choose(spans)), strict=True):
        rebuilder.add(span.plain, side)
    assert not splitter.finished
    assert splitter.failed is None
    assert rebuilder.bits[: splitter.position] == data[: splitter.position]
    assert splitter.position > 10_000


def test_what_is_no_stream_says_why_and_where() -> None:
    splitter = Splitter()
    assert [] == splitter.feed(b"\x07")
    assert splitter.failed is not None
    assert "byte 0, bit 0" in splitter.failed
    splitter = Splitter(1024)
    stored = b"\x00" + (2000).to_bytes(2, "little") + (0xFFFF ^ 2000).to_bytes(2, "little")
    (span,) = splitter.feed(stored + bytes(2000) + b"\x07")
    assert span.plain == bytes(2000)
    assert splitter.failed is not None
    assert "a block of the reserved type at byte 2005, bit 0" in splitter.failed
    assert (splitter.position, splitter.phase, splitter.finished) == (2005, 0, False)
    assert [] == splitter.feed(stored)


def test_a_span_that_nothing_foretells_is_kept_as_it_is() -> None:
    noise = random.Random(2).randbytes(3000)
    compressor = zlib.compressobj(9, zlib.DEFLATED, -15, strategy=zlib.Z_FIXED)
    data = compressor.compress(noise[:8]) + compressor.flush()
    (span,) = Splitter().feed(data)
    side = span.analyse(Config(b"\x00"))
    assert len(side) <= len(data) + 2
    assert (data, 0) == rebuild(b"", span.plain, side)


def test_configurations_are_values() -> None:
    (span, *_) = Splitter(SPAN_SIZE).feed(stream("gzip-9.gz"))
    config = choose([span])
    again = Config(bytes(config))
    assert (config, hash(config), repr(config)) == (again, hash(again), repr(again))
    assert config == config_of(span.analyse(config))
    assert config != Config(b"\x00")
    assert len({config, again, Config(b"\x00")}) == 2
    for wrong in (b"", b"\xff", bytes(config) + b"\x00", bytes(config)[:-1]):
        with pytest.raises(ValueError, match=r"side information|follow"):
            Config(wrong)


@pytest.mark.parametrize("size", [-1, 0, 1023, 2**22 + 1])
def test_a_span_size_out_of_range_is_refused(size: int) -> None:
    with pytest.raises((ValueError, OverflowError)):
        Splitter(size)


@pytest.mark.parametrize("name", ["gzip-1.gz", "klauspost-1-v1.15.12.gz", "7z-5.gz", "zlib-0.gz"])
def test_hostile_side_information_is_refused_or_gives_other_bits(name: str) -> None:
    """Whatever is changed, the answer is bits or one clear error."""
    chance = random.Random(name)
    spans = Splitter(16 * 1024).feed(stream(name))[:3]
    history = b""
    for span, side in zip(spans, sides(spans, choose(spans)), strict=True):
        plain = span.plain
        bits = rebuild(history, plain, side)
        for _ in range(60):
            changed = bytearray(side)
            for _ in range(chance.choice((1, 1, 2, 8))):
                changed[chance.randrange(len(changed))] = chance.randrange(256)
            _rebuild_or_refuse(history, plain, bytes(changed))
            _rebuild_or_refuse(history, plain[: chance.randrange(len(plain))], side)
        for size in range(0, len(side), 1 + len(side) // 50):
            assert bits != _rebuild_or_refuse(history, plain, side[:size])
        assert _rebuild_or_refuse(history, plain, side + b"\x00") is None
        history = (history + plain)[-WINDOW:]


def _rebuild_or_refuse(history: bytes, plain: bytes, side: bytes) -> tuple[bytes, int] | None:
    try:
        return rebuild(history, plain, side)
    except ValueError as error:
        text = str(error)
    assert text.startswith("no side information of a deflate span: ")
    assert "\n" not in text
    return None
