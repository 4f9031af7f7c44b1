"""A writer killed at any moment: what it acknowledged is there, and nothing is there in part."""

import random
import time
from pathlib import Path

import pytest

from cas.interfaces import Changes
from indexes.index import LmdbIndex
from tests.indexes.child import heard, running
from tests.indexes.sample import batch, holds

ROUNDS = 8


@pytest.mark.parametrize("seed", range(3))
def test_what_was_acknowledged_survives_kills(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    LmdbIndex(tmp_path, create=True).close()
    number = 0
    for _ in range(ROUNDS):
        with running("write", tmp_path, number) as child:
            for _ in range(chance.randrange(1, 6)):
                assert str(number) == heard(child)
                number += 1
            time.sleep(chance.random() / 50)  # to die anywhere in a commit, not only after one
            child.kill()
            rest = [int(line) for line in child.stdout or ()]
        number += len(rest)
        index = LmdbIndex(tmp_path)
        assert all(holds(index, n) for n in range(number))
        if holds(index, number):
            number += 1  # committed, and killed before it could say so
        assert not any(holds(index, n) for n in range(number, number + 3))
        assert list(range(number)) == [row.finished_ms for row in index.snapshots()]
        index.close()


def test_a_killed_writer_leaves_no_lock_behind(tmp_path: Path) -> None:
    index = LmdbIndex(tmp_path, create=True)
    with running("write", tmp_path, 0) as child:
        assert heard(child) == "0"
        child.kill()
        child.wait()
        index.commit(batch(500))
        index.commit(Changes(settled_tiers=["01-second"]))
    assert [] == index.pending_pages("01-second")
    index.close()
