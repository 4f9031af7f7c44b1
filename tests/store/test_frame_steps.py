"""A payload is decoded in one step or in bites: the same comes out, and the same is refused."""

import random

import pytest

from cas import frame
from cas.errors import FormatError
from cas.frame import FrameDecoder, FrameEncoder

WORDS = [b"frame ", b"segment ", b"chunk ", b"pack ", b"tier ", b"lane "]


def segments(seed: int, level: int) -> list[tuple[bytes, bytes]]:
    """Plain bytes and payloads of one frame: text, zeros, noise and single bytes."""
    rng = random.Random(seed)
    plain = [
        b"".join(rng.choices(WORDS, k=50_000)),
        bytes(900_000),
        rng.randbytes(300_000),
        b"x",
        b"".join(rng.choices(WORDS, k=5_000)) + rng.randbytes(200_000) + bytes(10),
    ]
    rng.shuffle(plain)
    encoder = FrameEncoder(level)
    last = len(plain) - 1
    return [(part, encoder.segment([part], last=at == last)) for at, part in enumerate(plain)]


@pytest.fixture(params=["one step", "bites"], autouse=True)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "bites":
        monkeypatch.setattr(frame, "STEP_LIMIT", 0)
    return str(request.param)


@pytest.mark.parametrize("level", [1, 3, 9, 19])
@pytest.mark.parametrize("seed", range(3))
def test_the_same_comes_out(seed: int, level: int) -> None:
    decoder = FrameDecoder()
    for plain, payload in segments(seed, level):
        assert plain == decoder.segment(payload, len(plain))


def test_a_decoder_takes_over_anothers_memory_and_nothing_else() -> None:
    old = FrameDecoder()
    for plain, payload in segments(1, 3)[:2]:
        old.segment(payload, len(plain))
    decoder = FrameDecoder(old)
    for plain, payload in segments(2, 3):
        assert plain == decoder.segment(payload, len(plain))


def decode(parts: list[tuple[bytes, bytes]]) -> None:
    decoder = FrameDecoder()
    for plain, payload in parts:
        decoder.segment(payload, len(plain))


@pytest.mark.parametrize("at", [0, 2, 4])
@pytest.mark.parametrize("more", [b"\0", b"\1\0\0", b"\0\0\0", b"x" * 2000])
def test_bytes_that_follow_are_not_accepted(at: int, more: bytes) -> None:
    """At the latest when the frame should have ended."""
    parts = segments(1, 3)
    parts[at] = (parts[at][0], parts[at][1] + more)
    with pytest.raises(FormatError):
        decode([*parts, (b"x", b"\0")])


def test_a_payload_that_ends_within_a_block_is_not_whole() -> None:
    (plain, payload), *_ = segments(1, 3)
    with pytest.raises(FormatError):
        FrameDecoder().segment(payload[:-1], len(plain))


def test_any_bytes_give_a_value_or_our_error() -> None:
    rng = random.Random(3)
    for _ in range(300):
        plain, payload = rng.choice(segments(1, 3)[:3])
        changed = bytearray(payload)
        for _ in range(rng.randrange(1, 4)):
            changed[rng.randrange(min(len(changed), 60))] = rng.randrange(256)
        try:
            assert len(plain) == len(FrameDecoder().segment(bytes(changed), len(plain)))
        except FormatError:
            continue
