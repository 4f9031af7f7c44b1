"""Bombs end soon, whatever they are made of, and nothing of them is lost."""

from __future__ import annotations

import gzip
import io
import random
import tempfile
import tracemalloc
import zipfile
import zlib
from concurrent.futures import ThreadPoolExecutor

import pytest

from cas.program import Begin
from cas.unpack.file import Surroundings, unpack_file
from cas.unpack.limits import (
    EXPANSION,
    EXPANSION_FREE,
    STREAM_EXPANSION,
    STREAM_FREE,
    is_too_deep,
)
from cas.unpack.splitters import CodecSplitters
from tests.unpack.carry import CarrySplitters
from tests.unpack.files import some_files
from tests.unpack.quine import gzip_quine
from tests.unpack.taking import Taken, again, check, take_apart
from tests.unpack.test_gzip import framed
from tests.unpack.test_tar import archive as tar_of

FILES = some_files()
OVER = "it holds too much for its size"


def zeros(size: int) -> bytes:
    """A gzip file of so many zeros."""
    squeezer = zlib.compressobj(9, zlib.DEFLATED, 31)
    pieces = [squeezer.compress(bytes(2**20)) for _ in range(size // 2**20)]
    return b"".join([*pieces, squeezer.flush()])


def copied(taken: Taken) -> int:
    """Bytes of plain content that were looked at."""
    return sum(sum(recipe.lengths[recipe.skeleton :]) for recipe in taken.recipes)


def test_a_gigabyte_of_zeros_is_not_looked_through() -> None:
    data = zeros(2**30)
    taken = check(data)
    assert [OVER] == taken.notes
    assert copied(taken) < STREAM_FREE + 2 * STREAM_EXPANSION * 2**16 + len(data)


def test_what_grows_late_ends_too() -> None:
    """An honest start gives a bomb credit, but only so much."""
    start = random.Random(3).randbytes(2**20)
    squeezer = zlib.compressobj(9, zlib.DEFLATED, 31)
    data = squeezer.compress(start)
    data += b"".join(squeezer.compress(bytes(2**20)) for _ in range(600)) + squeezer.flush()
    taken = check(data)
    assert [OVER] == taken.notes
    assert copied(taken) < EXPANSION_FREE + EXPANSION * len(data) + 64 * 2**20


def nested(data: bytes, depth: int) -> bytes:
    for _ in range(depth):
        data = framed(data + random.Random(depth).randbytes(600))
    return data


def test_depth_ends() -> None:
    inside = FILES["b/text"]
    assert [] == check(nested(inside, 8)).notes
    taken = check(nested(inside, 9))
    assert ["too deep in other archives"] == taken.notes
    levels = [op for recipe in taken.recipes for op in recipe.program if isinstance(op, Begin)]
    assert 8 == len(levels)
    data = inside
    for depth in range(20):
        data = tar_of({f"{depth}": data})
    names = "!/".join(f"{n}" for n in range(19, 3, -1))
    assert [f"{names}: too deep in other archives"] == check(data).notes
    assert is_too_deep(8, 0)


def bomb(levels: int, width: int) -> bytes:
    """A zip of zips of zips ... of zeros."""
    data = bytes(4 * 2**20)
    for _ in range(levels):
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
            for number in range(width):
                archive.writestr(f"{number}.zip", data)
        data = out.getvalue()
    return data


def test_a_zip_of_zips_ends() -> None:
    """As 42.zip: 16 in each of 16 in each of 16 ..., far more than a petabyte."""
    taken = check(bomb(6, 16))
    assert copied(taken) < EXPANSION_FREE + 4 * EXPANSION * len(taken.data) + 64 * 2**20
    assert any("over the limits" in note for note in taken.notes)


def test_ten_gigabytes_of_zeros_are_not_looked_through() -> None:
    """The same MiB over and over: made at once, and 10 MB that say they are 10 GB."""
    squeezer = zlib.compressobj(9, zlib.DEFLATED, -15)
    unit = squeezer.compress(bytes(2**20)) + squeezer.flush(zlib.Z_FULL_FLUSH)
    header, trailer = gzip.compress(b"")[:10], bytes(8)  # nobody gets as far as to the trailer
    data = header + 10 * 2**10 * unit + b"\x03\0" + trailer
    taken = check(data)
    assert [OVER] == taken.notes
    assert copied(taken) < STREAM_FREE + 2 * STREAM_EXPANSION * 2**16 + len(data)


@pytest.mark.parametrize("copies", [1, 20])
def test_what_unpacks_to_itself_ends(copies: int) -> None:
    """Copies of a quine, end to end, are one too, and large enough to be looked into."""
    data = copies * gzip_quine()
    assert data == gzip.decompress(data)
    with ThreadPoolExecutor(1) as pool:
        taken = take_apart(data, CodecSplitters(pool))
        assert (taken is None) == (copies == 1)
        inside = check(tar_of({"a": data, "b": data}), splitters=CodecSplitters(pool), joiners={})
    if taken is not None:
        assert data == again(taken, {})
        assert ["too deep in other archives"] == taken.notes
        assert ["a: too deep in other archives", "b: too deep in other archives"] == inside.notes


def test_a_skeleton_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cas.unpack.limits.SKELETON_FREE", 0)
    files = {f"{number}": b"" for number in range(2000)}
    taken = check(tar_of(files))
    assert ["over the limits for one file: left as it is from here on"] == taken.notes
    assert len(taken.skeleton) <= len(taken.data) // 2 + 1024


def test_work_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cas.unpack.limits.WORK_FREE_NS", 0)
    monkeypatch.setattr("cas.unpack.limits.WORK_NS", 1)
    taken = check(gzip.compress(FILES["b/text"]))
    assert [OVER] == taken.notes


def test_the_same_file_has_the_same_recipe_every_time() -> None:
    data = tar_of({"x.gz": zeros(64 * 2**20), "y.gz": gzip.compress(FILES["b/text"], mtime=0)})
    one, other = take_apart(data), take_apart(data)
    assert one is not None
    assert other is not None
    assert one.content == other.content


def test_memory_is_bounded() -> None:
    """Of a large file only pieces are held, whatever it is."""
    rng = random.Random(6)
    body = rng.randbytes(2**20) * 64
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("x.tar", tar_of({"one": body, "two": gzip.compress(body[: 2**21], 1)}))
    with (
        tempfile.TemporaryFile() as file,
        ThreadPoolExecutor(1) as hashing,
    ):
        file.write(out.getvalue())
        file.flush()
        around = Surroundings(lambda *_: None, lambda _: None, hashing, CarrySplitters())
        tracemalloc.start()
        try:
            assert unpack_file(file.fileno(), len(out.getvalue()), around) is not None
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert peak < 24 * 2**20
