"""What the codecs of the product took apart is found again, also in streams that are broken."""

from __future__ import annotations

import bz2
import gzip
import lzma
import random
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
import zstandard

from cas.agent.extract import Extractor
from cas.codec import plain
from cas.rebuild.run import block_data, content_blocks
from cas.unpack.splitters import CodecSplitters
from tests.inside.test_inside import tar_of
from tests.rebuild.archives import DictSource
from tests.unpack.taking import take_apart

SQUEEZERS: dict[str, Callable[[bytes], bytes]] = {
    "gz": lambda data: gzip.compress(data, mtime=0),
    "xz": lambda data: lzma.compress(data, preset=1),
    "bz2": lambda data: bz2.compress(data, 1),
    "zst": lambda data: zstandard.ZstdCompressor(3).compress(data),
}


def text(rng: random.Random, size: int) -> bytes:
    words = [rng.randbytes(rng.randrange(1, 6)).hex().encode() for _ in range(500)]
    return b" ".join(rng.choices(words, k=size // 6))


def broken(rng: random.Random, data: bytes) -> bytes:
    """A stream that is cut off, or has a wrong byte in its second half."""
    at = rng.randrange(len(data) // 2, len(data))
    return data[:at] if rng.random() < 0.5 else data[:at] + b"\x55" + data[at + 1 :]


@pytest.mark.parametrize("outer", SQUEEZERS)
@pytest.mark.parametrize("seed", range(4))
def test_all_chunks_are_found_again_and_give_the_archive(outer: str, seed: int) -> None:
    rng = random.Random(seed)
    files = {}
    for number in range(6):
        kind = rng.choice(list(SQUEEZERS))
        packed = SQUEEZERS[kind](tar_of({"a": text(rng, 60_000), "b": text(rng, 400_000)}))
        files[f"{number}.{kind}"] = broken(rng, packed) if number % 2 else packed
        files[f"{number}"] = rng.randbytes(20_000)
    data = SQUEEZERS[outer](tar_of(files))
    with ThreadPoolExecutor(2) as pool, tempfile.TemporaryFile() as file:
        taken = take_apart(data, CodecSplitters(pool))
        assert taken is not None
        file.write(data)
        file.flush()
        ids = [id_ for recipe in taken.recipes for id_ in recipe.ids]
        walker = Extractor(taken.content.parts, taken.objects.__getitem__, taken.objects.get)
        found = list(walker.chunks(file.fileno(), range(len(ids))))
        held = taken.chunks | taken.objects
        assert [held[id_] for id_ in ids] == found
    source = DictSource()
    source.held = held
    blocks = content_blocks(taken.content, source)
    assert data == b"".join(piece for block in blocks for piece in block_data(block))
    assert any(len(data) > plain.PIECE for data in files.values())
