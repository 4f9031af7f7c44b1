"""The matrix against a count that has nothing of cas (`independent.py`), to the byte.

Tiers without archives are compared as they are, with one another and with tiers of archives: what a
plain file and a member of an archive have both is just the member's chunks. Members of up to TINY
bytes are part of an archive's skeleton, and make no difference where they are left out.
"""

from __future__ import annotations

import itertools
import random
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from cas.redundancy.chunks import tier_chunks
from cas.redundancy.count import count
from cas.redundancy.overlap import Overlap
from cas.store.store import Store
from cas.unpack.limits import TINY
from tests.pull.world import World
from tests.redundancy.independent import both, chunks_of

Chunks = Mapping[str, int]


def matrix_of(store: Store, tiers: list[str]) -> list[list[int]]:
    counted = count(store, [store.latest(tier)[1] for tier in tiers], at_once=500)
    sums = {members: total.bytes for members, total in counted.by_set().items()}
    return Overlap(len(tiers), sums).matrix()


def members_of(store: Store, tier: str) -> dict[str, int]:
    """The chunks of a tier without those of skeletons and tiny ones."""
    return {
        id_.hex(): length
        for part in tier_chunks(store, store.latest(tier)[1])
        for id_, length in list(zip(part.ids, part.lengths, strict=True))[part.skeleton :]
        if length > TINY
    }


def large(chunks: Chunks) -> dict[str, int]:
    return {digest: length for digest, length in chunks.items() if length > TINY}


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Two plain trees that share files, and archives of them by the usual tools."""
    world = World(tmp_path)
    rng = random.Random(5)
    words = [rng.randbytes(5).hex() for _ in range(2000)]
    for tree in ("one", "two"):
        for number in range(25):
            path = world.source / tree / f"d{number % 4}" / f"f{number}.txt"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(" ".join(rng.choices(words, k=rng.choice((200, 20_000)))))
    (world.source / "two" / "again.bin").write_bytes(b"")
    noise = rng.randbytes(700_000)
    (world.source / "one" / "noise").write_bytes(noise)
    (world.source / "two" / "edited").write_bytes(noise[:400_000] + b"an edit" + noise[400_000:])
    packed = world.source / "packed"
    packed.mkdir()
    run = ["tar", "-C", str(world.source), "-cf"]
    subprocess.run([*run, packed / "one.tar.gz", "--gzip", "one"], check=True)
    subprocess.run([*run, packed / "two.tar.xz", "--xz", "two"], check=True)
    subprocess.run([*run, packed / "outer.tar", "packed/one.tar.gz", "one/d1"], check=True)
    zipped = [sys.executable, "-m", "zipfile", "-c", "packed/two.zip", "two/d2", "two/edited"]
    subprocess.run(zipped, cwd=world.source, check=True)
    return world


def test_trees_and_archives_of_them(world: World) -> None:
    names = ["one", "two", "packed"]
    world.sync(*(world.tier(name, name) for name in names))
    store = world.open()
    matrix = matrix_of(store, names)
    counts = {name: chunks_of(world.source / name, unpack=True) for name in names}
    for one, other in itertools.product(range(2), range(3)):
        assert matrix[one][other] == both(counts[names[one]], counts[names[other]]) > 0
    assert large(counts["packed"]) == members_of(store, "packed")
    # Not one byte of what the archives hold is new, were it not for their skeletons.
    assert large(counts["packed"]).keys() <= counts["one"].keys() | counts["two"].keys()
