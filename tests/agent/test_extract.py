"""Wanted chunks of archives are found again, in one walk, whatever level they lie on."""

from __future__ import annotations

import bz2
import io
import lzma
import os
import random
import zlib
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from cas.agent import extract
from cas.agent.extract import CHANGED, NOT_NOTED, Extractor, Extractors
from cas.agent.read import Found, Missed, read_wanted
from cas.agent.roots import RootGuard
from cas.archive import decode_archive_recipe
from cas.codec import plain
from cas.entry import Content
from cas.errors import SourceError
from cas.ids import Digest, digest_of
from cas.program import Codec, End
from cas.unpack import builder
from cas.unpack.builder import Builder
from tests.rebuild.archives import Made, Maker, Step, build
from tests.restore.trees import file

SEEDS = st.integers(0, 2**32)


def raw(data: bytes) -> bytes:
    squeezer = zlib.compressobj(6, zlib.DEFLATED, -15)
    return squeezer.compress(data) + squeezer.flush()


def zstd(data: bytes) -> bytes:
    skippable = b"\x50\x2a\x4d\x18\x03\x00\x00\x00abc"
    half = len(data) // 2
    squeezer = zstandard.ZstdCompressor()
    return squeezer.compress(data[:half]) + skippable + squeezer.compress(data[half:])


def xz(data: bytes) -> bytes:
    half = len(data) // 2
    small = [{"id": lzma.FILTER_LZMA2, "preset": 0, "dict_size": 65536}]
    one, other = (lzma.compress(part, filters=small) for part in (data[:half], data[half:]))
    return one + bytes(8) + other


def bz(data: bytes) -> bytes:
    return bz2.compress(data[:700]) + bz2.compress(data[700:])


WHOLE: dict[Codec, Callable[[bytes], bytes]] = {Codec.BZIP2: bz, Codec.XZ: xz, Codec.ZSTD: zstd}


class RealMaker(Maker):
    """With streams that any decompressor can read."""

    def codec(self, number: int) -> tuple[list[Step], bytes]:
        inner, data = self.level(number)
        codec = self.rng.choice([Codec.DEFLATE, *Codec])
        if codec is Codec.DEFLATE:
            own, made = self._members(number, data)
        else:
            made = WHOLE[codec](data)
            own = [self.span(number, len(data))]
        rest: list[Step] = []
        if self.rng.random() < 0.2:
            # Cut off: what follows lies on the level below.
            left = self.rng.randbytes(self.rng.randrange(1, 3000))
            rest, made = [partial(_skeleton, left)], made + left
            own.append(self.span(number, 0))
            size = len(made) - len(left)
        else:
            size = len(made)
        begin: Step = lambda b: b.begin(codec, b"")  # noqa: E731  # as all the others are
        return [begin, *self.mixed(inner, own), lambda b: b.end(size), *rest], made

    def span(self, number: int, size: int) -> Step:
        side = self.rng.randbytes(self.rng.randrange(4))
        return lambda b: b.span(number, size, side)

    def _members(self, number: int, data: bytes) -> tuple[list[Step], bytes]:
        """Deflate streams with something between them, some of them empty."""
        own: list[Step] = []
        made = b""
        while True:
            some, data = self.cut(data) if self.rng.random() < 0.8 else (b"", data)
            half = len(some) // 2
            own += [self.span(number, half), self.span(number, len(some) - half)]
            made += raw(some)
            if not data:
                return own, made
            for _ in range(self.rng.randrange(1, 3)):
                between = self.rng.randbytes(self.rng.choice([1, 18, 70_000]))
                own.append(partial(_verbatim, number, between))
                made += between


def _begin(params: bytes, builder: Builder) -> None:
    builder.begin(Codec.DEFLATE, params)


def _span(level: int, size: int, builder: Builder) -> None:
    builder.span(level, size, b"")


def _end(size: int, builder: Builder) -> None:
    builder.end(size)


def _skeleton(data: bytes, builder: Builder) -> None:
    builder.skeleton(data)


def _verbatim(level: int, data: bytes, builder: Builder) -> None:
    builder.verbatim(level, data)


def archive(seed: int, biggest: int = 12_000) -> Made:
    maker = RealMaker(random.Random(seed), biggest=biggest)
    steps, data = maker.level(0)
    more, packed = maker.codec(1)
    return build([*steps, *more], data + packed, maker.chunks)


def chunk_ids(made: Made) -> list[Digest]:
    recipes = map(decode_archive_recipe, made.recipes)
    return [id_ for recipe in recipes for id_ in recipe.ids]


def extractor(made: Made) -> Extractor:
    return Extractor(made.content.parts, made.objects.__getitem__, made.skeletons.get)


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Callable[[bytes], int]]:
    files: list[BinaryIO] = []

    def open_with(data: bytes) -> int:
        path = tmp_path / f"{len(files)}"
        path.write_bytes(data)
        files.append(path.open("rb"))
        return files[-1].fileno()

    yield open_with
    for one in files:
        one.close()


@pytest.mark.parametrize("part_ops", [builder.PART_OPS, 3])
def test_all_and_some_chunks_are_found(
    monkeypatch: pytest.MonkeyPatch, opened: Callable[[bytes], int], part_ops: int
) -> None:
    monkeypatch.setattr(builder, "PART_OPS", part_ops)

    @settings(max_examples=25, deadline=None)
    @given(SEEDS)
    def found(seed: int) -> None:
        made = archive(seed)
        fd = opened(made.data)
        ids = chunk_ids(made)
        expected = [{**made.chunks, **made.objects}[id_] for id_ in ids]
        assert expected == list(extractor(made).chunks(fd, range(len(ids))))
        walker = extractor(made)
        rng = random.Random(seed)
        for _ in range(4):
            some = sorted(rng.sample(range(len(ids)), rng.randrange(len(ids) + 1)))
            assert [expected[index] for index in some] == list(walker.chunks(fd, some))

    found()


@pytest.fixture
def zips() -> tuple[Made, list[int]]:
    """Ten streams of a file of one chunk each, as in a zip, and the chunks' indexes."""
    maker = Maker(random.Random(1))
    steps: list[Step] = [lambda b: b.skeleton(b"zip")]
    data = b"zip"
    for number in range(10):
        inner, inflated = maker.file(maker.rng.randbytes(9000) + bytes([number]))
        packed = raw(inflated)
        steps += [partial(_begin, b""), *inner, partial(_span, 1, 9001), partial(_end, len(packed))]
        data += packed
    made = build(steps, data, maker.chunks)
    skeleton = decode_archive_recipe(made.recipes[0]).skeleton
    return made, list(range(skeleton, skeleton + 10))


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> list[Codec]:
    """The codec of each decompressor that is begun."""
    codecs: list[Codec] = []

    def counted(codec: Codec, *arguments: Any) -> plain.Plain:
        codecs.append(codec)
        return plain.decompressor(codec, *arguments)

    monkeypatch.setattr(extract, "decompressor", counted)
    return codecs


def test_a_level_is_opened_once_and_only_when_something_in_it_is_wanted(
    opened: Callable[[bytes], int], zips: tuple[Made, list[int]], begun: list[Codec]
) -> None:
    made, indexes = zips
    fd = opened(made.data)
    walker = extractor(made)
    for index in indexes[3], indexes[7], indexes[9]:
        assert [made.chunks[chunk_ids(made)[index]]] == list(walker.chunks(fd, [index]))
    assert 3 == len(begun)
    list(walker.chunks(fd, [indexes[2]]))
    list(walker.chunks(fd, [indexes[3]]))
    assert 5 == len(begun)


def test_a_long_stream_is_read_once_by_jobs_that_follow_one_another(
    opened: Callable[[bytes], int], begun: list[Codec]
) -> None:
    maker = Maker(random.Random(3))
    inner, inflated = maker.file(maker.rng.randbytes(3_000_000))
    packed = raw(inflated)
    steps: list[Step] = [partial(_begin, b""), *inner, partial(_span, 1, len(inflated)),
             partial(_end, len(packed))]  # fmt: skip
    made = build(steps, packed, maker.chunks)
    fd = opened(made.data)
    kept = Extractors(made.objects.__getitem__, made.skeletons.get)
    ids = chunk_ids(made)
    for index in range(len(ids)):
        walker = kept.of(b"a.gz", made.content.parts)
        data = {**made.chunks, **made.objects}[ids[index]]
        assert [data] == list(walker.chunks(fd, [index]))
    assert [Codec.DEFLATE] == begun
    assert kept.of(b"b.gz", made.content.parts) is not walker


def test_what_changed_is_missed_and_the_rest_found(
    opened: Callable[[bytes], int], zips: tuple[Made, list[int]]
) -> None:
    made, indexes = zips
    ids = chunk_ids(made)
    ends = [op.size for op in decode_archive_recipe(made.recipes[0]).program
            if isinstance(op, End)]  # fmt: skip
    data = bytearray(made.data)
    data[3 + sum(ends[:4]) + 100] ^= 1  # in the fifth
    data[3 + sum(ends[:6])] |= 6  # the seventh is no stream any more
    found = list(extractor(made).chunks(opened(bytes(data[:-50])), indexes))
    for number, (index, chunk) in enumerate(zip(indexes, found, strict=True)):
        assert (CHANGED if number in (4, 6, 9) else made.chunks[ids[index]]) == chunk


def test_a_page_may_have_archives_among_its_files(
    tmp_path: Path, zips: tuple[Made, list[int]]
) -> None:
    made, _ = zips
    (tmp_path / "a").write_bytes(b"before")
    (tmp_path / "b.zip").write_bytes(made.data)
    (tmp_path / "c").write_bytes(b"after")
    top = os.fsencode(tmp_path).strip(b"/")
    entries = [
        file(top + b"/a", Content(6, digest_of(b"before"), 1)),
        file(top + b"/b.zip", made.content),
        file(top + b"/c", Content(5, digest_of(b"after"), 1)),
    ]
    kept = Extractors(made.objects.__getitem__, made.skeletons.get)
    guard = RootGuard([os.fsencode(tmp_path)])
    guard.admit(os.fsencode(tmp_path))

    def read(wanted: Sequence[int]) -> list[Found | Missed]:
        recipe_of = made.objects.__getitem__
        return list(read_wanted(entries, recipe_of, wanted, guard=guard, extractors=kept))

    last = len(chunk_ids(made)) + 1
    assert [
        Found(0, b"before"), Found(1, made.skeletons[chunk_ids(made)[0]]),
        Found(3, made.chunks[chunk_ids(made)[2]]), Found(last, b"after"),
    ] == read([0, 1, 3, last])  # fmt: skip
    (tmp_path / "b.zip").unlink()
    gone = "cannot be read any more: No such file or directory"
    assert [Missed(1, gone), Missed(3, gone), Found(last, b"after")] == read([1, 3, last])
    with pytest.raises(SourceError, match="is wanted of a page"):
        read([last + 1])


def test_what_was_not_noted_is_missed(
    opened: Callable[[bytes], int], zips: tuple[Made, list[int]]
) -> None:
    made, indexes = zips
    fd = opened(made.data)
    empty = Extractor(made.content.parts, made.objects.__getitem__, lambda _: None)
    assert [NOT_NOTED] == list(empty.chunks(fd, [0]))
    assert [NOT_NOTED, made.chunks[chunk_ids(made)[indexes[0]]]] == list(
        empty.chunks(fd, [0, indexes[0]])
    )
    wrong = Extractor(made.content.parts, made.objects.__getitem__, lambda _: b"other")
    assert [NOT_NOTED] == list(wrong.chunks(fd, [0]))


def test_an_index_that_is_not_there_is_an_error(
    opened: Callable[[bytes], int], zips: tuple[Made, list[int]]
) -> None:
    made, indexes = zips
    with pytest.raises(SourceError, match="fewer chunks"):
        list(extractor(made).chunks(opened(made.data), [indexes[-1] + 1]))


def test_a_file_that_cannot_be_read_says_why(tmp_path: Path, zips: tuple[Made, list[int]]) -> None:
    made, indexes = zips
    fd = os.open(tmp_path, os.O_RDONLY)
    try:
        assert ["cannot be read any more: Is a directory"] == list(
            extractor(made).chunks(fd, indexes[:1])
        )
    finally:
        os.close(fd)


def test_one_small_stream_may_stand_for_very_much(opened: Callable[[bytes], int]) -> None:
    """What a bomb gives is taken piece by piece."""
    for codec, squeeze in ((Codec.DEFLATE, raw), (Codec.XZ, lzma.compress),
                           (Codec.BZIP2, bz2.compress), (Codec.ZSTD, zstd)):  # fmt: skip
        packed = squeeze(bytes(50 * 2**20))
        taken = io.BytesIO(packed)
        reader = plain.decompressor(codec, taken.read, iter([0]).__next__)
        sizes: list[int] = []
        while data := reader.more() if sum(sizes) < 50 * 2**20 else b"":
            sizes.append(len(data))
        assert 50 * 2**20 == sum(sizes)
        assert max(sizes) <= plain.PLAIN_PIECE
