"""The matrix and the audit of a whole corpus against the count that has nothing of cas.

    CAS_CORPUS=DIR pytest -m big tests/redundancy/test_corpus.py

DIR is made by tests/tools/make_corpus.sh, of either size. CAS_HELD names a directory with a plan by
which it was synced, its tiers called as the directories are; else that is done here first.
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from cas.unpack.limits import TINY
from cli import wiring
from tests.bench.product import CAS, Cas
from tests.redundancy.independent import Piece, both, pieces_of
from tests.redundancy.test_independent import large, matrix_of, members_of

PLAIN = ["tier0_context", "tier2_runtime", "tier8_weights"]
WHOLE = ["tier1_baseline", "tier6_home"]  # archives, all of which is taken apart
CUT_OFF = "tier9_partial"

pytestmark = [pytest.mark.big, pytest.mark.root]

Place = tuple[str, str, int]  # path, path in archives there, offset


@dataclass(frozen=True)
class Held:
    """The corpus, counted, and where a plan has it synced."""

    home: Path
    pieces: dict[str, list[Piece]]

    def chunks(self, tier: str) -> dict[str, int]:
        return {piece.digest: piece.length for piece in self.pieces[tier]}

    def audit(self, tier: str) -> Iterator[dict[str, Any]]:
        """The extents of files and members."""
        command = [*CAS, "audit", "--json", tier]
        with subprocess.Popen(command, cwd=self.home, stdout=subprocess.PIPE) as running:
            assert running.stdout is not None
            for line in running.stdout:
                row = json.loads(line)
                if row["event"] == "extent" and not row["skeleton"] and row["length"] >= TINY:
                    yield row
        assert not running.returncode


@pytest.fixture(scope="module")
def held(tmp_path_factory: pytest.TempPathFactory) -> Held:
    named = os.environ.get("CAS_CORPUS")
    if not named:
        pytest.skip("CAS_CORPUS must name the corpus of tests/tools/make_corpus.sh")
    tiers = {path.name: path for path in sorted(Path(named).glob("tier*"))}
    home = Path(os.environ.get("CAS_HELD") or tmp_path_factory.mktemp("held"))
    if not (home / "plan.toml").exists():
        cas = Cas(home, tiers)
        cas.forget()
        cas.sync()
    pieces = {name: list(pieces_of(path, unpack=True)) for name, path in tiers.items()}
    return Held(home, pieces)


def test_the_matrix(held: Held) -> None:
    names = [*PLAIN, *(name for name in held.pieces if name not in PLAIN)]
    counts = {name: held.chunks(name) for name in names}
    with wiring.reading(held.home / "store") as store:
        matrix = matrix_of(store, names)
        members = {name: members_of(store, name) for name in names}
    for one, other in itertools.product(range(len(PLAIN)), range(len(names))):
        found, mine = counts[names[other]], counts[names[one]]
        if other >= len(PLAIN):
            assert both(large(mine), found) == both(large(mine), members[names[other]])
            tiny = both(mine, found) - both(large(mine), found)
            assert both(mine, found) - tiny <= matrix[one][other] <= both(mine, found)
        else:
            assert both(mine, found) == matrix[one][other]
    for name in WHOLE:
        assert large(counts[name]) == members[name]


def test_the_audit(held: Held) -> None:
    """Every extent lies where it is said to, and came first from where it is said to have come."""
    seen: set[str] = set()
    firsts: dict[str, tuple[str, set[Place]]] = {}
    for tier, pieces in held.pieces.items():
        found = {(place(piece), piece.length, piece.digest) for piece in pieces}
        places: dict[str, set[Place]] = defaultdict(set)
        for piece in pieces:
            places[piece.digest].add(place(piece))
        for digest, where in places.items():
            firsts.setdefault(digest, (tier, where))
        told = set()
        for row in held.audit(tier):
            at = (
                row["path"],
                row["inner"] or "",
                row["inner_offset" if row["inner"] else "offset"],
            )
            told.add((at, row["length"], row["chunk"]))
            assert row["held"]
            first_tier, first_places = firsts[row["chunk"]]
            from_inner = row["from_inner"] or ""
            from_at = row["from_inner_offset" if from_inner else "from_offset"]
            assert first_tier == row["from_tier"]
            assert (row["from_path"], from_inner, from_at) in first_places
            seen.add(row["chunk"])
        assert told <= found
        if tier in (*PLAIN, *WHOLE):
            assert {one for one in found if one[1] >= TINY} == told
    assert len(seen) > 1000


def place(piece: Piece) -> Place:
    return piece.path, piece.inner, piece.offset
