"""Deflate streams by the compiled core: taken apart, proved, judged, and written again."""

from __future__ import annotations

import io
import random
import zipfile
import zlib
from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cas.codec import deflate
from cas.codec.base import Piece, SpanEvent
from cas.codec.deflate import DeflateJoiner, DeflateSplitter, Encoder
from cas.codec.registry import JOINERS
from cas.errors import FormatError
from cas.program import Begin, Span, Verbatim
from cas.unpack import builder
from cas.unpack.splitters import CodecSplitters
from tests.unpack.files import some_files
from tests.unpack.taking import Taken, check
from tests.unpack.test_gzip import framed, raw
from tests.unpack.test_tar import archive as tar_of
from tests.unpack.test_zip import zipped

FILES = some_files()
TEXT = FILES["b/text"]


@pytest.fixture(scope="module", name="pool")
def _pool() -> Iterator[Executor]:
    with ThreadPoolExecutor(3) as pool:
        yield pool


def checked(data: bytes, pool: Executor, *contained: bytes) -> Taken:
    return check(data, contained, CodecSplitters(pool), JOINERS)


@dataclass
class Split:
    """What a splitter said of a stream."""

    splitter: DeflateSplitter
    plain: bytes = b""
    covered: int = 0
    spans: list[tuple[int, bytes]] = field(default_factory=list)


def split(
    data: bytes, pool: Executor, piece: int = 50_000, encoder: Encoder | None = None
) -> Split:
    done = Split(DeflateSplitter(pool, encoder or Encoder()))
    events = []
    for at in range(0, len(data), piece):
        events += list(done.splitter.feed(data[at : at + piece]))
    if not (done.splitter.ended or done.splitter.failed):
        events += list(done.splitter.finish())
    for event in events:
        if isinstance(event, SpanEvent):
            assert isinstance(event.side, bytes)
            done.spans.append((event.plain, event.side))
            done.covered = event.covered
        else:
            assert isinstance(event, bytes)
            done.plain += event
    return done


def joined(pieces: list[Piece]) -> bytes:
    return b"".join(one if isinstance(one, bytes) else one.result() for one in pieces)


def test_spans_are_cut_proved_and_rebuilt(pool: Executor) -> None:
    plain = TEXT * 12 + FILES["b/random"]
    data = raw(plain)
    for piece in (1000, 50_000, len(data)):
        done = split(data + b"behind it", pool, piece)
        assert done.splitter.ended
        assert plain == done.plain
        assert len(data) == done.covered
        assert b"behind it"[: len(done.splitter.unused)] == done.splitter.unused
        assert len(done.spans) > 3
    joiner = DeflateJoiner(b"", pool)
    pieces: list[Piece] = []
    for size, side in done.spans[:2]:  # some before their plain bytes, the others after
        pieces += joiner.span(size, side)
    for at in range(0, len(plain), 100_000):
        pieces += joiner.write(plain[at : at + 100_000])
    for size, side in done.spans[2:]:
        pieces += joiner.span(size, side)
    pieces += joiner.end()
    assert data == joined(pieces)


def test_a_stream_cut_off_keeps_its_first_spans(pool: Executor) -> None:
    data = raw(TEXT * 20)
    for size in range(1, len(data), len(data) // 7):
        done = split(data[:size], pool)
        assert not done.splitter.ended
        assert data[done.covered : size] == done.splitter.rest
        assert len(done.splitter.rest) < 300  # what is needed to begin a block
        assert (TEXT * 20).startswith(done.plain)


def test_a_broken_stream_keeps_what_was_right(pool: Executor) -> None:
    data = raw(TEXT * 20)
    at = len(data) // 2
    broken = data[:at] + random.Random(7).randbytes(300_000)
    done = split(broken, pool)
    assert done.splitter.failed
    assert 0 < done.covered < at + 10_000
    assert broken[done.covered :] == done.splitter.rest


def test_what_costs_too_much_is_given_up(pool: Executor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deflate, "WORTH", 1e-9)
    monkeypatch.setattr(deflate, "WORTH_FREE", 1e-9)
    data = raw(TEXT * 20)
    encoder = Encoder()
    for number in range(deflate.GIVE_UPS):
        assert not encoder.is_hopeless, number
        done = split(data, pool, encoder=encoder)
        assert ("", b"", 0) == (done.splitter.failed and "", done.plain, done.covered)
        assert data == done.splitter.rest
    assert encoder.is_hopeless
    splitters = CodecSplitters(pool)
    taken = check(framed(TEXT * 20), [framed(TEXT * 20)], splitters, JOINERS)
    assert ["written by no known encoder"] == taken.notes


def test_an_encoder_is_known_again(pool: Executor, monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = Encoder()
    split(raw(TEXT), pool, encoder=encoder)
    monkeypatch.setattr(deflate, "choose", None)
    split(raw(FILES["b/text"][:300_000]), pool, encoder=encoder)


def test_archives(pool: Executor) -> None:
    inside = [data for data in FILES.values() if len(data) > 600]
    tar = tar_of(FILES)
    for data in (framed(tar), zipped(FILES), zipped(FILES, streamed=True), zlib.compress(tar)):
        taken = checked(data, pool, *inside)
        assert [] == taken.notes
        assert len(taken.skeleton) < 30_000
    checked(framed(tar_of({"x": zipped(FILES), "y": framed(tar)})), pool, *inside)


def test_members_of_a_gzip_are_one_level(pool: Executor) -> None:
    data = b"".join(framed(TEXT[at : at + 70_000]) for at in range(0, len(TEXT), 70_000))
    program = [op for recipe in checked(data, pool, TEXT).recipes for op in recipe.program]
    assert 1 == sum(isinstance(op, Begin) for op in program)
    assert 7 == sum(isinstance(op, Verbatim) for op in program)
    assert 8 == sum(isinstance(op, Span) for op in program)


def test_streams_of_nothing(pool: Executor) -> None:
    checked(framed(b"") * 300, pool)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for number in range(100):
            archive.writestr(f"{number}", b"")
    checked(out.getvalue(), pool)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32))
def test_damaged_files_stay_what_they_are(pool: Executor, seed: int) -> None:
    rng = random.Random(seed)
    plain = FILES["b/again"] * rng.randrange(1, 90)
    data = bytearray(framed(plain) + framed(FILES["b/random"][: rng.randrange(60_000)]))
    for _ in range(rng.randrange(3)):
        data[rng.randrange(20, len(data))] = rng.randrange(256)
    checked(bytes(data[: max(rng.randrange(len(data)), 5000)]), pool)


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**32))
def test_hostile_side_information_is_an_error(pool: Executor, seed: int) -> None:
    """It gives other bytes, which the archive's digest shows, or an error that is ours."""
    rng = random.Random(seed)
    plain = FILES["b/again"][: rng.randrange(5000)]
    ((size, side),) = split(raw(plain, rng.randrange(10)), pool).spans
    changed = bytearray(side or b"\0")
    for _ in range(rng.randrange(1, 6)):
        changed[rng.randrange(len(changed))] = rng.randrange(256)
    joiner = DeflateJoiner(b"", pool)
    try:
        pieces = [*joiner.write(plain), *joiner.span(size, bytes(changed))]
        pieces += [*joiner.span(0, rng.randbytes(9)), *joiner.end()]
        joined(pieces)
    except FormatError:
        pass


def test_what_does_not_come_out_is_an_error(pool: Executor) -> None:
    with pytest.raises(FormatError):
        DeflateJoiner(b"params", pool)
    joiner = DeflateJoiner(b"", pool)
    joiner.write(b"plain bytes")
    with pytest.raises(FormatError):
        joiner.end()
    joiner = DeflateJoiner(b"", pool)
    joiner.span(5, b"")
    with pytest.raises(FormatError):
        joiner.end()


def test_parts_may_end_anywhere(pool: Executor, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the middle of a level, of a span, of a file; together they are the archive."""
    inside = [data for data in FILES.values() if len(data) > 600]
    data = framed(tar_of({"x": zipped(FILES), "y": framed(tar_of(FILES))}))
    for limit in ("PART_OPS", "PART_CHUNKS"):
        with monkeypatch.context() as patch:
            patch.setattr(builder, limit, 3)
            taken = checked(data, pool, *inside)
        assert len(taken.recipes) > 5
        assert len(data) == sum(recipe.size for recipe in taken.recipes)
        assert taken.content.chunk_count == sum(len(recipe.ids) for recipe in taken.recipes)
