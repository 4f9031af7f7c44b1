"""What is foretold of the wire: labels by what a scan says, ratios by what is held, and sums."""

from __future__ import annotations

import itertools
import random
import tarfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cas.archive import ArchiveRecipe
from cas.chunker import MAX_SIZE
from cas.ids import DIGEST_SIZE, Digest
from cas.interfaces import Changes
from cas.program import Begin, Codec, End, Op, Skeleton, Span
from cas.recipe import Copy
from cas.redundancy.chunks import tier_chunks
from cas.redundancy.cost import Cost, Costs, estimate, together
from cas.redundancy.count import count
from cas.redundancy.inside import Inside
from cas.redundancy.labels import Label, Labeller, Sort, Width
from cas.redundancy.learn import learn
from cas.redundancy.overlap import Overlap
from cas.redundancy.priors import BY_LEVEL, level_at, prior
from cas.redundancy.tally import Count
from cas.store.store import Store
from tests.pull.world import World
from tests.redundancy.made import MadeStore, chunk_id


def _archive(
    program: tuple[Op, ...], lengths: tuple[int, ...], skeleton: int, notes: tuple[str, ...] = ()
) -> ArchiveRecipe:
    ids = tuple(chunk_id(number) for number in range(len(lengths)))
    digest = Digest(bytes(DIGEST_SIZE))
    return ArchiveRecipe(1000, digest, ids, lengths, skeleton, program, notes)


def _labels(store: Store, tier: str = "tier") -> list[Label]:
    labeller = Labeller(store)
    parts = tier_chunks(store, store.latest(tier)[1])
    return [labeller.labels[number] for part in parts for number in labeller(part)]


def test_a_levels_own_compression_tells_of_its_members(tmp_path: Path) -> None:
    made = MadeStore(tmp_path)
    # 600 of skeleton in all; two members of 10,000 in a level that was compressed to 5000.
    recipe = _archive(
        (Begin(Codec.DEFLATE, 0), Skeleton(512), Copy(1), Skeleton(78), Copy(1),
         Span(1, 20_590, 10), End(5000), Copy(1)),
        (600, 10_000, 10_000, 3000),
        1,
    )  # fmt: skip
    made.enter("tier", [made.archive(b"a/b.tar.gz", recipe)])
    skeleton, one, other, beside = _labels(made.open())
    assert skeleton == Label(Sort.SKELETON)
    assert one == other
    assert (Sort.LEVEL, Width.SMALL) == (one.sort, one.width)
    assert pytest.approx(0.25) == one.ratio
    assert beside == Label(Sort.DENSE)  # as after a stream that was cut off


def test_what_is_compressed_in_a_level_is_not_taken_for_its_compression(tmp_path: Path) -> None:
    made = MadeStore(tmp_path)
    # The inner level's 4000 bytes go through the outer one unchanged: the rest made 2000 of 10,000.
    recipe = _archive(
        (Begin(Codec.DEFLATE, 0), Copy(1), Begin(Codec.DEFLATE, 0), Copy(1), Span(2, 8000, 0),
         End(4000), Span(1, 14_000, 0), End(6000)),
        (10_000, 8000),
        0,
    )  # fmt: skip
    made.enter("tier", [made.archive(b"x.tgz", recipe)])
    outer, inner = _labels(made.open())
    assert pytest.approx(0.2) == outer.ratio
    assert pytest.approx(0.5) == inner.ratio


def test_members_of_an_archive_that_is_not_compressed_are_files_without_a_name(
    tmp_path: Path,
) -> None:
    made = MadeStore(tmp_path)
    recipe = _archive(
        (Skeleton(512), Copy(1), Skeleton(512), Begin(Codec.DEFLATE, 0), Copy(1),
         Span(1, 9000, 0), End(3000), Skeleton(512), Copy(1)),
        (1536, 8000, 9000, 2_000_000),
        1,
        ("x: encrypted",),
    )  # fmt: skip
    made.enter("tier", [made.archive(b"image.tar", recipe)])
    _, small, inner, large = _labels(made.open())
    assert (Label(Sort.PLAIN, Width.SMALL), Label(Sort.PLAIN, Width.LARGE)) == (small, large)
    assert Sort.LEVEL == inner.sort


def test_a_program_that_makes_no_sense_is_labelled_all_the_same(tmp_path: Path) -> None:
    made = MadeStore(tmp_path)
    ops = (End(5), Copy(1), End(7), Begin(Codec.XZ, 0), Copy(1))
    made.enter("tier", [made.archive(b"x", _archive(ops, (5000, 600), 0))])
    store = made.open()
    assert [Sort.PLAIN, Sort.LEVEL] == [label.sort for label in _labels(store)]
    inside = Inside(store)
    counted = count(store, [store.latest("tier")[1]], inside=inside)
    assert [5600] == [tier.unpacked for tier in counted.tiers]


def test_a_level_may_end_in_a_later_part(tmp_path: Path) -> None:
    made = MadeStore(tmp_path)
    first = _archive((Begin(Codec.DEFLATE, 0), Copy(1)), (6000,), 0)
    last = _archive((Copy(1), Span(1, 10_000, 0), End(3000)), (4000,), 0)
    entries = [made.archive(b"x", recipe) for recipe in (first, last)]
    contents = [entry.content for entry in entries if entry.content is not None]
    parts = tuple(part for content in contents for part in content.parts)
    whole = type(contents[0])(2000, contents[0].digest, 2, parts)
    made.enter("tier", [type(entries[0])(b"x", entries[0].kind, entries[0].owner, 0, 2000, whole)])
    assert [pytest.approx(0.3)] * 2 == [label.ratio for label in _labels(made.open())]


def test_what_was_left_packed_is_dense_and_fill_is_seen_by_its_length(tmp_path: Path) -> None:
    made = MadeStore(tmp_path)
    cut = _archive((Begin(Codec.DEFLATE, 0), Copy(1), Span(1, 5000, 0), End(900), Copy(1)),
                   (5000, 700), 0)  # fmt: skip
    made.enter("tier", [
        made.entry(b"a/disk.img", [(7, MAX_SIZE), (8, 1000)]),
        made.archive(b"b.incoming", cut),
    ])  # fmt: skip
    fill, rest, _, dense = _labels(made.open())
    assert Sort.FILL == fill.sort
    assert Label(Sort.PLAIN, Width.MIDDLE, kind=b"img") == rest
    assert Sort.DENSE == dense.sort


KINDS = (b"bin", b"c", b"gz", b"")
LABELS = [
    *(Label(sort) for sort in Sort),
    *(Label(Sort.LEVEL, width, ratio / 20) for width in Width for ratio in range(21)),
    *(
        Label(Sort.PLAIN, width, kind=kind)
        for width in Width
        for kind in (b"bin", b"c", b"gz", b"")
    ),
]


@pytest.mark.parametrize("level", [1, 2, 3, 9, 12, 19, 22])
def test_priors_are_ratios_and_a_higher_level_never_costs_more(level: int) -> None:
    for label in LABELS:
        assert 0 <= prior(label, level) <= 1
        assert prior(label, level) <= prior(label, 1)
    assert prior(Label(Sort.PLAIN, kind=b"c"), level) == pytest.approx(
        prior(Label(Sort.PLAIN, kind=b"c"), 9) * BY_LEVEL[max(k for k in BY_LEVEL if k <= level)]
    )


def test_a_slower_link_leaves_time_for_a_higher_level() -> None:
    rates = [1e3, 80e3, 600e3, 3e6, 8e6, 12e6, 50e6, 1e12]
    assert [19, 19, 17, 12, 9, 6, 3, 3] == [level_at(rate) for rate in rates]


def test_learning_tells_labels_apart_that_segments_mix() -> None:
    rng = random.Random(1)
    true = [0.03, 0.25, 0.6]
    segments = []
    for _ in range(400):
        made = {label: rng.randrange(1, 500_000) for label in range(3)}
        plain = sum(made.values())
        stored = sum(size * true[label] for label, size in made.items())
        segments.append((made, stored / plain))
    found = learn([0.3, 0.3, 0.3, 0.77], [2**20] * 4, segments)
    assert found[:3] == pytest.approx(true, abs=0.05)
    assert 0.77 == pytest.approx(found[3])  # of which nothing was seen


def test_little_that_is_held_changes_little() -> None:
    found = learn([0.3], [2**22], [({0: 1000}, 0.9)])
    assert 0.3 < found[0] < 0.301


def test_nothing_is_learnt_from_nothing() -> None:
    assert [0.2, 0.001] == learn([0.2, 0.0], [9, 9], [])


SUMS = st.dictionaries(st.integers(1, 15), st.integers(0, 10**6), max_size=10)


@given(SUMS)
def test_costs_add_up_in_every_order(sums: dict[int, int]) -> None:
    half = {tiers: size // 2 for tiers, size in sums.items()}
    tenth = {tiers: size // 10 for tiers, size in sums.items()}
    costs = Costs(Count(), *(Overlap(4, each) for each in (sums, half, tenth)))
    for order in itertools.permutations(range(4)):
        whole = together(costs.of(order))
        assert (sum(sums.values()), sum(half.values())) == (whole.missing, whole.wire)
        for number, cost in zip(order, costs.of(order), strict=True):
            assert 0 <= cost.low <= cost.wire <= cost.high
            assert costs.saves(number, order) == half.get(1 << number, 0)


def test_the_high_end_is_no_more_than_the_plain_bytes() -> None:
    assert 1001 == Cost(missing=1000, wire=900, spread=400).high


def test_what_only_a_name_says_is_told_less_surely(tmp_path: Path) -> None:
    made = MadeStore(tmp_path)
    made.tier("named", {"w.bin": [(1, 250_000), (2, 4_000_000)]})
    made.tier("known", {"w.jpg": [(3, 250_000), (4, 4_000_000)]})
    store = made.open()
    costs = estimate(store, [store.latest(tier)[1] for tier in ("named", "known")], 9)
    named, known = costs.of([0, 1])
    assert named.spread > 3 * known.spread > 0
    assert named.high <= 4_254_250 >= known.high


def test_what_is_held_is_not_missing_and_the_rest_is_foretold(tmp_path: Path) -> None:
    """Real content over a real agent: one tier is fetched, the other only scanned."""
    world = World(tmp_path)
    rng = random.Random(3)
    words = [rng.randbytes(5).hex() for _ in range(3000)]
    for tree in ("one", "two"):
        (world.source / tree).mkdir()
        for number in range(40):
            text = " ".join(rng.choices(words, k=20_000))
            (world.source / tree / f"{number}.txt").write_text(text)
    (world.source / "two" / "noise.jpg").write_bytes(rng.randbytes(3_000_000))
    with tarfile.open(world.source / "two" / "one.tar.gz", "w:gz") as archive:
        archive.add(world.source / "one", "one")
    states = world.sync(world.tier("one", "one"), world.tier("two", "two")).tiers
    store = world.open()
    snapshots = [store.latest(tier)[1] for tier in ("one", "two")]
    held = together(estimate(store, snapshots, 3).of([0, 1]))
    assert (0, 0) == (held.missing, held.wire)

    chunks = {id_ for part in tier_chunks(store, snapshots[1]) for id_ in part.ids}
    chunks -= {id_ for part in tier_chunks(store, snapshots[0]) for id_ in part.ids}
    world.index.commit(Changes(forgotten_chunks=list(chunks)))
    costs = estimate(world.open(), snapshots, 3)
    one, two = costs.of([0, 1])
    assert Cost() == one
    assert states[1].to_fetch == two.missing
    assert two.low <= states[1].stored <= two.high


def test_the_order_in_which_tiers_are_asked_about_changes_no_total(tmp_path: Path) -> None:
    made = MadeStore(tmp_path)
    made.tier("one", {"a.c": [(1, 9000), (2, 60_000)], "b.so": [(3, 80_000)]})
    made.tier("two", {"a.c": [(2, 60_000)], "w.bin": [(4, 200_000), (5, 250_000)]})
    store = made.open()
    costs = estimate(store, [store.latest(tier)[1] for tier in ("one", "two")], 9)
    assert 599_000 == sum(cost.missing for cost in costs.of([1, 0]))
    assert sum(c.wire for c in costs.of([0, 1])) == sum(c.wire for c in costs.of([1, 0]))
    assert costs.saves(0, [0, 1]) < costs.of([0, 1])[0].wire
