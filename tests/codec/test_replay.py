"""bzip2, xz and zstd by replay: whatever a stream is, what comes back is the stream."""

from __future__ import annotations

import bz2
import hashlib
import lzma
import random
import shutil
import subprocess
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any

import pytest
import zstandard

from cas._native import Replay
from cas.codec import bzip2, xz, zstd
from cas.codec.base import Event, SpanEvent
from cas.codec.replay import ReplayJoiner, StreamSplitter
from cas.errors import FormatError

HEAD = 2**18
NO_POOL: Executor = None  # type: ignore[assignment]  # these joiners use none


@dataclass(frozen=True)
class _Patience:
    patience_ns: int = 10**6


@dataclass(frozen=True)
class _Outcome:
    """What became of a stream: bytes that no span covers, plain bytes in spans, the reason."""

    left: int
    plain: int
    failed: str


def _text(size: int, seed: int = 1) -> bytes:
    words = [hashlib.sha256(b"%d" % n).hexdigest()[: n % 11 + 2].encode() for n in range(900)]
    chosen = random.Random(seed)
    return b" ".join(chosen.choice(words) for _ in range(size // 5))[:size]


TEXT = _text(1_500_000)


def _round_trip(module: Any, data: bytes, piece: int = 70_000) -> _Outcome | None:
    """Take `data` apart, in pieces, and put it together again; None where no splitter begins."""
    splitter = module.splitter(data[:HEAD], _Patience())
    if splitter is None:
        return None
    joiner: ReplayJoiner = module.joiner(splitter.params, NO_POOL)
    out: list[bytes] = []
    at = plain = covered = 0
    while at < len(data) and not splitter.ended and not splitter.failed:
        events = splitter.feed(data[at : at + piece])
        at += piece
        plain, covered = _join(joiner, events, out, plain, covered)
    if not splitter.ended and not splitter.failed:
        plain, covered = _join(joiner, splitter.finish(), out, plain, covered)
    out += joiner.end()
    rest = (splitter.unused if splitter.ended else splitter.rest) + data[at:]
    assert len(b"".join(out)) == covered
    assert data == b"".join(out) + rest
    return _Outcome(len(rest), plain, splitter.failed)


def _join(
    joiner: ReplayJoiner, events: Sequence[Event], out: list[bytes], plain: int, covered: int
) -> tuple[int, int]:
    for event in events:
        if isinstance(event, bytes):
            out += joiner.write(event)
        elif isinstance(event, SpanEvent):
            assert isinstance(event.side, bytes)
            out += joiner.span(event.plain, event.side)
            plain, covered = plain + event.plain, event.covered
        else:
            out += joiner.verbatim(event.data)
            covered = event.covered
    return plain, covered


def _run(*command: str, data: bytes = TEXT) -> bytes:
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed")
    return subprocess.run(command, input=data, capture_output=True, check=True).stdout


@pytest.mark.parametrize("level", range(1, 10))
def test_bzip2(level: int) -> None:
    assert _Outcome(0, len(TEXT), "") == _round_trip(bzip2, _run("bzip2", f"-{level}"))


@pytest.mark.parametrize("piece", [11, 70_000])
def test_bzip2_of_several_streams_and_what_follows(piece: int) -> None:
    data = bz2.compress(TEXT[:200_000]) + bz2.compress(b"") + bz2.compress(TEXT[:9]) + b"and more"
    assert _Outcome(8, 200_009, "") == _round_trip(bzip2, data, piece)


def test_another_block_size_is_another_stream() -> None:
    data = bz2.compress(TEXT[:1000], 9) + bz2.compress(TEXT[:1000], 1)
    outcome = _round_trip(bzip2, data)
    assert outcome is not None
    assert (1000, "") == (outcome.plain, outcome.failed)


@pytest.mark.parametrize("tool", ["pbzip2", "lbzip2"])
def test_parallel_bzip2(tool: str) -> None:
    outcome = _round_trip(bzip2, _run(tool, "-c", data=TEXT * 2))
    assert outcome is not None
    assert "damaged" not in outcome.failed


@pytest.mark.parametrize(
    "options",
    [["-0"], ["-1", "--check=sha256"], ["-2", "--check=none"], ["-3"], ["-4e"], ["-6"], ["-6e"],
     ["-6", "-T2", "--block-size=400KiB"], ["-1", "--check=crc32"]],
)  # fmt: skip
def test_xz(options: list[str]) -> None:
    assert _Outcome(0, len(TEXT), "") == _round_trip(xz, _run("xz", "-c", *options))


@pytest.mark.parametrize("piece", [13, 70_000])
def test_xz_of_several_streams_padding_and_what_follows(piece: int) -> None:
    one = lzma.compress(TEXT[:150_000], preset=1)
    assert _Outcome(4, 300_000, "") == _round_trip(xz, one + bytes(8) + one + b"tail", piece)
    assert _Outcome(3, 150_000, "") == _round_trip(xz, one + bytes(3), piece)


@pytest.mark.parametrize(
    "options",
    [["--x86", "--lzma2=preset=6"], ["--lzma2=preset=6,nice=100"], ["-9"], ["--format=lzma"]],
)
def test_xz_that_no_preset_writes_is_left_alone(options: list[str]) -> None:
    assert _round_trip(xz, _run("xz", "-c", *options)) is None


def test_costly_settings_need_patience() -> None:
    data = lzma.compress(TEXT[:10_000], preset=6)
    assert xz.splitter(data, _Patience(400)) is None
    assert xz.splitter(data, _Patience(600)) is not None


def _zstd(level: int, *, workers: int = 0, sized: bool = True, **options: Any) -> bytes:
    parameters = zstandard.ZstdCompressionParameters.from_level(
        level, threads=workers, write_content_size=sized, write_checksum=True, **options
    )
    compressor = zstandard.ZstdCompressor(compression_params=parameters)
    stream = compressor.compressobj(size=len(TEXT) if sized else -1)
    return stream.compress(TEXT) + stream.flush()


needs_our_zstd = pytest.mark.skipif(
    zstandard.ZSTD_VERSION != (1, 5, 7), reason="this zstandard is not of libzstd 1.5.7"
)


@needs_our_zstd
@pytest.mark.parametrize("level", [1, 3, 9, 19])
@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("sized", [True, False])
def test_zstd(level: int, workers: int, sized: bool) -> None:
    data = _zstd(level, workers=workers, sized=sized)
    assert _Outcome(0, len(TEXT), "") == _round_trip(zstd, data)


@needs_our_zstd
@pytest.mark.parametrize("piece", [100, 70_000])
def test_zstd_of_several_frames_with_skippable_ones(piece: int) -> None:
    frame = _zstd(3)
    skippable = b"\x5a\x2a\x4d\x18\x05\0\0\0hello"
    data = frame + skippable + frame + frame + b"and whatever else there is"
    assert _Outcome(26, 3 * len(TEXT), "") == _round_trip(zstd, data, piece)


def test_zstd_of_other_settings_is_left_alone() -> None:
    assert _round_trip(zstd, _zstd(3, hash_log=12, chain_log=9)) is None


MAKERS: dict[str, tuple[Any, Callable[[bytes], bytes]]] = {
    "bzip2": (bzip2, lambda data: bz2.compress(data, 1)),
    "xz": (xz, lambda data: lzma.compress(data, preset=0)),
    "zstd": (zstd, lambda data: zstandard.compress(data, 1)),
}


@pytest.mark.parametrize("name", MAKERS)
def test_cut_off_anywhere(name: str) -> None:
    module, make = MAKERS[name]
    data = make(TEXT[:400_000])
    for end in [*range(40), *range(40, len(data), len(data) // 17)]:
        outcome = _round_trip(module, data[:end])
        assert outcome is None or outcome.failed, end


@pytest.mark.parametrize("name", MAKERS)
def test_more_of_a_stream_leaves_less(name: str) -> None:
    module, make = MAKERS[name]
    if name == "zstd" and zstandard.ZSTD_VERSION != (1, 5, 7):
        pytest.skip("this zstandard is not of libzstd 1.5.7")
    data = make(TEXT)
    half, most = (_round_trip(module, data[: len(data) * n // 10]) for n in (6, 9))
    assert half is not None
    assert most is not None
    assert 0 < half.plain < most.plain


@pytest.mark.parametrize("name", MAKERS)
def test_a_flipped_bit_anywhere(name: str) -> None:
    module, make = MAKERS[name]
    data = make(TEXT[:300_000])
    chosen = random.Random(name)
    for _ in range(40):
        broken = bytearray(data)
        broken[chosen.randrange(len(data))] ^= 1 << chosen.randrange(8)
        _round_trip(module, bytes(broken))


def test_a_bomb_is_given_up() -> None:
    outcome = _round_trip(bzip2, bz2.compress(bytes(10**8)))
    assert outcome is not None
    assert "it expands too much" == outcome.failed
    assert 2**26 < outcome.plain < 2**27


@pytest.mark.parametrize("module", [bzip2, xz, zstd])
def test_hostile_parameters(module: Any) -> None:
    chosen = random.Random(5)
    for size in range(20):
        for _ in range(50):
            params = bytes(chosen.randrange(4) for _ in range(size))
            try:
                module.joiner(params, NO_POOL)
            except FormatError:
                continue


def _begin() -> ReplayJoiner:
    return ReplayJoiner(lambda: Replay.bzip2(1))


def _play(*calls: tuple[str, Any]) -> None:
    joiner = _begin()
    for name, argument in calls:
        getattr(joiner, name)(*argument)


@pytest.mark.parametrize(
    ("reason", "calls"),
    [
        ("wrong size", [("span", (3, b"four"))]),
        ("more right bytes", [("write", (b"abc",)), ("span", (3, (2**40).to_bytes(8, "little")))]),
        ("fewer bytes", [("write", (b"abc",)), ("span", (2, b""))]),
        ("a level ends", [("span", (5, b"")), ("write", (b"abc",)), ("end", ())]),
        ("a level ends", [("write", (b"abc",)), ("end", ())]),
        ("in a stream", [("write", (b"abc",)), ("verbatim", (b"x",))]),
    ],
)
def test_hostile_spans(reason: str, calls: list[tuple[str, Any]]) -> None:
    with pytest.raises(FormatError, match=reason):
        _play(*calls)


def test_a_span_may_come_before_its_bytes() -> None:
    joiner = _begin()
    out = [*joiner.span(5, b""), *joiner.verbatim(b"-"), *joiner.span(3, b"")]
    out += [*joiner.write(b"hellob"), *joiner.write(b"ye"), *joiner.end()]
    assert bz2.compress(b"hello", 1) + b"-" + bz2.compress(b"bye", 1) == b"".join(out)


# What the encoders write is part of the format; see docs/format.md, section 13.
GOLDEN: dict[str, tuple[Callable[[], Replay], str]] = {
    "bzip2 9": (
        lambda: Replay.bzip2(9),
        "e5187a1a0e2a71656fcbbc2ec33530ac50bd7c2133cef04b5464f13447c0ab13",
    ),
    "lzma2 6": (
        lambda: Replay.lzma2(6, False, 2**23),
        "c9d5e7b521283f302e11f8b794a6c347bb0fc91ecb39b727004c59994d9183ea",
    ),
    "lzma2 3e": (
        lambda: Replay.lzma2(3, True, 2**22),
        "29b6a56a597e848fe67e91542831b665882d28ca4a2dc54f04b1e2821f40b0be",
    ),
    "zstd 3": (
        lambda: Replay.zstd(3, 0, False, True, True, None),
        "8b8dcd2b7a68c7feca31c05a0a3053075431a4985cce57736f9fb42db7725b4b",
    ),
    "zstd 19": (
        lambda: Replay.zstd(19, 0, False, False, True, len(TEXT)),
        "8b04ce50099ad332071fe2583e0f17c3832ab3e8c3abe18fa30251e70b85ccfc",
    ),
}


@pytest.mark.parametrize("name", GOLDEN)
def test_the_encoders_write_what_they_always_wrote(name: str) -> None:
    make, digest = GOLDEN[name]
    encoder = make()
    written = encoder.write(TEXT) + encoder.finish()
    assert digest == hashlib.sha256(written).hexdigest()


def _rejoined(module: Any, splitter: Any, data: bytes, step: int) -> bytes:
    """What becomes of the spans of `data` when the plain bytes come in steps of their own."""
    events = [event for at in range(0, len(data), 2**14)
              for event in splitter.feed(data[at : at + 2**14])]  # fmt: skip
    events += splitter.finish()
    plain = b"".join(event for event in events if isinstance(event, bytes))
    joiner = module.joiner(splitter.params, NO_POOL)
    out: list[bytes] = []
    for at in range(0, len(plain), step):
        out += joiner.write(plain[at : at + step])
    for event in events:
        if isinstance(event, SpanEvent):
            assert isinstance(event.side, bytes)
            out += joiner.span(event.plain, event.side)
    out += joiner.end()
    return b"".join(out)


@pytest.mark.parametrize("step", [512, 2**17, 2**21])
def test_it_does_not_matter_in_which_steps_plain_bytes_come(step: int) -> None:
    whole = zstandard.ZstdCompressor(3).compress(TEXT)
    for end in range(60_000, 300_000, 12_000):
        data = whole[:end]
        splitter = zstd.splitter(data[:HEAD], _Patience())
        assert splitter is not None
        assert data == _rejoined(zstd, splitter, data, step) + splitter.rest


def test_an_end_that_is_written_otherwise_is_left_to_others() -> None:
    """Of an encoder that is not to end, a joiner does not get what it writes at its end."""
    settings = {"id": lzma.FILTER_LZMA2, "preset": 1}
    chunks = lzma.compress(TEXT[:50_000], lzma.FORMAT_RAW, filters=[settings])
    other_end = chunks[:-1] + b"\x02\x00\x00" + b"X" + b"\x00"  # an uncompressed chunk of a byte
    decoder = lzma.LZMADecompressor(lzma.FORMAT_RAW, filters=[settings])
    encoder = Replay.lzma2(1, False, 2**20)
    splitter = StreamSplitter(decoder, encoder, lzma.LZMAError)
    out: list[bytes] = []
    joiner = ReplayJoiner(lambda: Replay.lzma2(1, False, 2**20))
    plain, covered = _join(joiner, splitter.feed(other_end), out, 0, 0)
    out += joiner.end()
    assert (50_001, "no known encoder writes its end") == (plain, splitter.failed)
    assert other_end == b"".join(out) + splitter.rest
    assert covered == len(b"".join(out))
