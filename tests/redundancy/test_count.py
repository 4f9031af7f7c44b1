"""Counting against a count with sets and dictionaries, and what must hold whatever is counted."""

from __future__ import annotations

import itertools
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cas.errors import StoreError
from cas.interfaces import Changes
from cas.redundancy import paths, runs
from cas.redundancy.count import count
from cas.redundancy.overlap import Overlap
from cas.redundancy.places import find_places
from cas.redundancy.runs import SortedRuns
from cas.redundancy.tally import Count
from cas.store.store import Store
from tests.redundancy.made import Chunk, MadeStore, chunk_id

Tiers = Sequence[Mapping[str, Sequence[Chunk]]]

CHUNKS = st.integers(0, 25).map(lambda number: (number, 100 + 37 * number))
FILES = st.dictionaries(
    st.sampled_from(["a", "b.txt", "d/a", "d/b.txt", "d/e/f.so", "z/y"]),
    st.lists(CHUNKS, max_size=6),
    max_size=5,
)
TIERS = st.lists(FILES, min_size=1, max_size=5)


def _made(root: Path, tiers: Tiers) -> Store:
    made = MadeStore(root)
    for number, files in enumerate(tiers):
        made.tier(f"tier{number}", files)
    return made.open()


def _count(store: Store, at_once: int = 2**18) -> Count:
    tiers = sorted(store.tiers())
    return count(store, [store.latest(tier)[1] for tier in tiers], at_once=at_once)


def _overlap(counted: Count) -> Overlap:
    sums = {tiers: total.bytes for tiers, total in counted.by_set().items()}
    return Overlap(len(counted.tiers), sums)


def _sets(tiers: Tiers) -> list[set[Chunk]]:
    return [set(itertools.chain.from_iterable(files.values())) for files in tiers]


def _bytes(chunks: set[Chunk]) -> int:
    return sum(length for _, length in chunks)


@settings(max_examples=30)
@given(TIERS, st.integers(1, 20))
def test_it_is_what_sets_say(tiers: Tiers, at_once: int) -> None:
    with tempfile.TemporaryDirectory() as directory:
        counted = _count(_made(Path(directory), tiers), at_once)
    overlap, sets = _overlap(counted), _sets(tiers)
    matrix = overlap.matrix()
    for one, chunks in enumerate(sets):
        others = set().union(*(other for at, other in enumerate(sets) if at != one))
        assert _bytes(chunks) == overlap.unique(one) == matrix[one][one]
        assert _bytes(chunks - others) == overlap.exclusive(one)
        assert _bytes(chunks & others) == overlap.shared(one)
        before = set().union(*sets[:one])
        assert _bytes(chunks - before) == overlap.adds(range(len(sets)))[one]
        for two, other in enumerate(sets):
            assert _bytes(chunks & other) == matrix[one][two] == matrix[two][one]


@settings(max_examples=30)
@given(TIERS)
def test_totals_hold_whatever_the_order(tiers: Tiers) -> None:
    with tempfile.TemporaryDirectory() as directory:
        counted = _count(_made(Path(directory), tiers))
    overlap = _overlap(counted)
    total = _bytes(set().union(*_sets(tiers)))
    assert total == overlap.total
    for order in itertools.islice(itertools.permutations(range(len(tiers))), 24):
        assert total == sum(overlap.adds(order))
    for tier in range(len(tiers)):
        assert overlap.unique(tier) == overlap.exclusive(tier) + overlap.shared(tier)
    worth = [tier.logical for tier in counted.tiers]
    soonest = overlap.soonest(worth)
    assert sorted(soonest) == list(range(len(tiers)))
    assert overlap.mean_wait(soonest, worth) <= overlap.mean_wait(range(len(tiers)), worth)


@settings(max_examples=30)
@given(TIERS)
def test_files_add_up_to_what_is_repeated(tiers: Tiers) -> None:
    with tempfile.TemporaryDirectory() as directory:
        store = _made(Path(directory), tiers)
        counted = _count(store)
        places = find_places(counted, most=1000)
    unpacked = sum(tier.unpacked for tier in counted.tiers)
    assert unpacked == sum(counted.unpacked)
    assert unpacked - _overlap(counted).total == sum(counted.repeated)
    assert sum(counted.repeated) == sum(kind.repeated for kind in places.kinds)
    seen = Counter(chunk for chunks in _sets(tiers) for chunk in chunks)
    for place in places.files:
        chunks = tiers[place.tier][place.name.decode()]
        assert place.shared == sum(length for n, length in chunks if seen[n, length] > 1)
        with_it = {at for at, other in enumerate(_sets(tiers)) if other & set(chunks)}
        assert {at for at in range(len(tiers)) if place.partners >> at & 1} <= with_it
    for place in places.directories:
        below = [path for path in tiers[place.tier] if path.startswith(place.name.decode() + "/")]
        sizes = (length for path in below for _, length in tiers[place.tier][path])
        assert place.unpacked == sum(sizes)


def test_a_directory_that_one_name_makes_up_is_not_named(tmp_path: Path) -> None:
    half = [(1, 1000), (2, 1000)]
    store = _made(tmp_path, [{"x": [*half, (3, 5000)]},
                             {"top/deep/a": half, "top/deep/b": half, "top/c": [(9, 9)],
                              "lone/big": [(3, 5000)]}])  # fmt: skip
    places = find_places(_count(store), most=10)
    assert [b"top/deep"] == [place.name for place in places.directories]
    assert [(b"x", 7000)] == [(place.name, place.shared) for place in places.files]


def test_what_is_not_held_is_asked_once_for_each_chunk(tmp_path: Path) -> None:
    store = _made(tmp_path, [{"a": [(1, 10), (2, 20), (1, 10)]}, {"b": [(2, 20), (3, 30)]}])
    asked: list[bytes] = []
    here = {chunk_id(2)}

    def seen(ids: Sequence[bytes], labels: Sequence[int]) -> list[bool]:
        asked.extend(ids)
        assert set(labels) <= {5, 6}
        return [id_ in here for id_ in ids]

    snapshots = [store.latest(tier)[1] for tier in ("tier0", "tier1")]
    counted = count(
        store,
        snapshots,
        labels=lambda part: [5 if part.entry.path == b"a" else 6] * len(part.ids),
        seen=seen,
        at_once=2,
    )
    assert asked == sorted(map(chunk_id, (1, 2, 3)))
    found = {key: (sum_.bytes, sum_.missing, sum_.chunks) for key, sum_ in counted.groups.items()}
    assert {(0b01, 5): (10, 10, 1), (0b11, 5): (20, 0, 1), (0b10, 6): (30, 30, 1)} == found


def test_a_file_of_unknown_chunks_counts_as_one_and_is_told(tmp_path: Path) -> None:
    made = MadeStore(tmp_path)
    made.tier("tier0", {"a": [(1, 10), (2, 20)], "b": [(1, 10)]})
    part = made.entry(b"a", [(1, 10), (2, 20)]).content
    assert part is not None
    made.index.commit(Changes(forgotten_chunks=list(part.parts)))
    counted = _count(made.open())
    assert (1, 40, 2) == (
        counted.tiers[0].unknown, counted.tiers[0].unpacked, counted.tiers[0].chunks
    )  # fmt: skip
    assert 40 == _overlap(counted).total


def test_the_soonest_order_waits_least_for_tiers_that_share_nothing() -> None:
    overlap = Overlap(4, {1: 50, 2: 10, 4: 30, 8: 0})
    worth = [60, 40, 90, 1]
    waits = {order: overlap.mean_wait(order, worth) for order in itertools.permutations(range(4))}
    best = tuple(overlap.soonest(worth))
    assert (3, 1, 2, 0) == best
    assert min(waits.values()) == waits[best]


def test_what_was_brought_already_costs_nothing_in_the_soonest_order() -> None:
    overlap = Overlap(3, {0b001: 60, 0b110: 100})
    assert [1, 2, 0] == overlap.soonest([50, 200, 90])


def test_a_tier_that_another_one_brings_anyway_goes_before_it() -> None:
    # The second is worth most for its bytes; but nine tenths of them make the third usable before.
    overlap = Overlap(3, {0b001: 60, 0b010: 12, 0b110: 100})
    assert [2, 1, 0] == overlap.soonest([50, 200, 90])


@settings(max_examples=60)
@given(
    st.dictionaries(st.integers(1, 15), st.integers(0, 1000), max_size=12),
    st.lists(st.integers(0, 100), min_size=4, max_size=4),
)
def test_no_single_move_makes_the_soonest_order_better(
    sums: dict[int, int], worth: list[int]
) -> None:
    overlap = Overlap(4, sums)
    order = overlap.soonest(worth)
    best = min(overlap.mean_wait(other, worth) for other in itertools.permutations(range(4)))
    mine = overlap.mean_wait(order, worth)
    assert best <= mine <= overlap.mean_wait(range(4), worth)
    for at, to in itertools.permutations(range(4), 2):
        moved = [tier for tier in order if tier != order[at]]
        moved.insert(to, order[at])
        assert mine <= overlap.mean_wait(moved, worth) * (1 + 1e-9)


def test_an_order_that_is_better_than_the_greedy_one_stays() -> None:
    # After the first the third is worth more for its bytes; the second would make it cheaper.
    overlap = Overlap(3, {0b100: 5, 0b101: 1, 0b110: 5, 0b111: 5})
    assert [0, 1, 2] == overlap.soonest([78, 28, 78])


@given(st.lists(st.binary(min_size=3, max_size=3)), st.integers(1, 9))
def test_records_come_back_in_order(records: list[bytes], at_once: int) -> None:
    with SortedRuns(3, at_once=at_once) as sorter:
        for at in range(0, len(records), 4):
            sorter.add(b"".join(records[at : at + 4]))
        back = b"".join(sorter.batches())
    assert b"".join(sorted(records)) == back


@given(
    st.lists(st.binary(max_size=8).map(lambda path: path.replace(b"\0", b"/"))), st.integers(1, 9)
)
def test_paths_come_back(names: list[bytes], piece: int) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(paths, "PIECE", piece)
        kept = paths.Paths()
        for name in names:
            kept.add(name)
        assert names == list(kept) == list(kept)


def test_a_full_disk_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(runs, "_write", full)
    with SortedRuns(1, at_once=2) as sorter, pytest.raises(StoreError, match="TMPDIR"):
        sorter.add(b"abc")
