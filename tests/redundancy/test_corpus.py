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

from cas.redundancy.chunks import tier_chunks
from cas.store.store import Store
from cas.unpack.limits import TINY
from cli import wiring
from tests.bench.product import CAS, Cas
from tests.redundancy.independent import TABLE, Piece, both, pieces_of
from tests.redundancy.test_independent import large, matrix_of, members_of

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
                if row["event"] == "extent" and not row["skeleton"] and row["length"] > TINY:
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
    """Skeletons and tiny members are cas' own affair; they are added to what was counted."""
    names = list(held.pieces)
    counts = {name: held.chunks(name) for name in names}
    with wiring.reading(held.home / "store") as store:
        matrix = matrix_of(store, names)
        members = {name: members_of(store, name) for name in names}
        everything = {name: chunks_held(store, name) for name in names}
    whole = {}
    for name in names:
        if name != CUT_OFF:
            assert large(counts[name]) == members[name]
        rest = everything[name].keys() - members[name].keys()
        counted = members[name] if name == CUT_OFF else large(counts[name])
        whole[name] = {**counted, **{digest: everything[name][digest] for digest in rest}}
    for one, other in itertools.product(range(len(names)), repeat=2):
        assert both(whole[names[one]], whole[names[other]]) == matrix[one][other]


def chunks_held(store: Store, tier: str) -> dict[str, int]:
    """All chunks of a tier."""
    return {
        id_.hex(): length
        for part in tier_chunks(store, store.latest(tier)[1])
        for id_, length in zip(part.ids, part.lengths, strict=True)
    }


def test_the_audit(held: Held) -> None:
    """Every extent lies where it is said to, and came first from where it is said to have come."""
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
            assert row["held"]
            extent = (place_of(row), row["length"], row["chunk"])
            told.add(extent)
            if extent in found:
                first_tier, first_places = firsts[row["chunk"]]
                assert first_tier == row["from_tier"]
                assert place_of(row, "from_") in first_places
        if tier == CUT_OFF:  # where it was cut, tools go on to the last byte, and some do not stop
            assert len(told - found) + len(known(pieces) - told) < 0.01 * len(told)
        else:
            assert not told - found
            assert not known(pieces) - told


def known(pieces: list[Piece]) -> set[tuple[Place, int, str]]:
    """The extents that must be told. Of a file with several names in a tar one has it."""
    return {
        (place(piece), piece.length, piece.digest)
        for piece in pieces
        if piece.length > TINY and not piece.is_linked
    }


def place(piece: Piece) -> Place:
    """Tables of libraries have no names that both would know them by."""
    if TABLE in piece.inner:
        return piece.path, TABLE, 0
    return piece.path, piece.inner, piece.offset


def place_of(row: dict[str, Any], of: str = "") -> Place:
    """The place in the fields of a row that begin with `of`."""
    path, inner, offset = row[of + "path"], row[of + "inner"] or "", row[of + "offset"]
    at = row[of + "inner_offset"] if inner else offset
    return (path, TABLE, 0) if at is None or inner.endswith("!") else (path, inner, at)
