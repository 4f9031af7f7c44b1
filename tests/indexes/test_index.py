"""What every index does, in memory and over LMDB alike."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from cas.interfaces import Changes, Index, Location
from cas.store.memory_index import MemoryIndex
from indexes.index import LmdbIndex
from tests.indexes.sample import batch, digest, file_row, holds, pack_row, place, snapshot_row


@pytest.fixture(params=["memory", "lmdb"])
def index(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Index]:
    found: Index = (
        MemoryIndex()
        if request.param == "memory"
        else LmdbIndex(tmp_path / "index", create=True, map_size=2**17)
    )
    yield found
    found.close()


def test_an_empty_index_has_nothing(index: Index) -> None:
    assert index.locate(digest(1)) is None
    assert [] == index.held([])
    assert [False] == index.held([digest(1)])
    assert [] == index.segments_of(0)
    assert index.recipes_of(digest(1)) is None
    assert {} == index.packs()
    assert 0 == index.next_frame()
    assert [] == index.snapshots()
    assert [] == index.snapshots("00-first")
    assert [] == index.pending_pages("00-first")
    assert index.find_file("npu", b"etc") is None
    assert [] == list(index.files_below("npu", b""))
    assert [] == list(index.chunks())


def test_what_was_committed_is_there(index: Index) -> None:
    for number in range(5):
        assert not holds(index, number)
        index.commit(batch(number))
    assert all(holds(index, number) for number in range(5))


def test_an_empty_change_changes_nothing(index: Index) -> None:
    index.commit(batch(0))
    index.commit(Changes())
    assert holds(index, 0)


def test_a_chunk_keeps_its_first_location(index: Index) -> None:
    first, second, other = (Location(n, n, n, n + 1) for n in range(3))
    index.commit(Changes(chunks=[(digest(1), first), (digest(1), second)]))
    index.commit(Changes(chunks=[(digest(1), second), (digest(2), other)]))
    assert first == index.locate(digest(1))
    assert other == index.locate(digest(2))


def test_what_is_forgotten_is_gone_and_can_come_again(index: Index) -> None:
    index.commit(batch(0))
    index.commit(batch(1))
    old = batch(0)
    lost = [chunk for chunk, _ in old.chunks[:10]]
    index.commit(Changes(forgotten_chunks=lost, forgotten_snapshots=[snapshot_row(0)]))
    assert [False] * 10 == index.held(lost)
    assert all(index.held([chunk for chunk, _ in old.chunks[10:]]))
    assert [snapshot_row(1)] == index.snapshots()
    assert holds(index, 1)
    index.commit(Changes(forgotten_chunks=lost))
    elsewhere = [(chunk, Location(9, 9, 9, 9)) for chunk in (lost[0], old.chunks[20][0])]
    index.commit(Changes(forgotten_chunks=[chunk for chunk, _ in elsewhere], chunks=elsewhere))
    assert elsewhere == [(chunk, index.locate(chunk)) for chunk, _ in elsewhere]


def test_a_forgotten_snapshot_of_a_long_name_is_gone(index: Index) -> None:
    row = snapshot_row(3, "t" * 4000, complete=True)
    index.commit(Changes(snapshots=[row]))
    assert [row] == index.snapshots(row.tier)
    index.commit(Changes(forgotten_snapshots=[row]))
    assert [] == index.snapshots()


def test_locations_keep_the_whole_range_of_their_numbers(index: Index) -> None:
    high = Location(2**64 - 2, 2**32 - 1, 2**32 - 1, 2**32 - 1)
    index.commit(Changes(chunks=[(digest(1), high)], segments=[(2**64 - 2, 0, place(1, 0))]))
    assert high == index.locate(digest(1))
    assert 2**64 - 1 == index.next_frame()


def test_held_answers_in_the_order_of_the_question(index: Index) -> None:
    index.commit(Changes(chunks=[(digest(n), Location(0, 0, n, 1)) for n in range(0, 100, 3)]))
    asked = [digest(n) for n in (*range(100), 0, 1, 0)]
    assert [n % 3 == 0 for n in (*range(100), 0, 1, 0)] == index.held(asked)


def test_chunks_come_in_order_of_their_ids(index: Index) -> None:
    rows = [(digest(n), Location(n, 0, 0, 1)) for n in range(2500)]
    index.commit(Changes(chunks=rows))
    assert sorted(rows, key=lambda row: row[0]) == list(index.chunks())


def test_chunks_are_found_by_the_beginning_of_their_ids(index: Index) -> None:
    rows = [(digest(n), Location(n, 0, 0, 1)) for n in range(2500)]
    index.commit(Changes(chunks=rows))
    for prefix in (digest(7)[:1], digest(7)[:4], digest(7), b"\xff"):
        wanted = sorted((r for r in rows if r[0].startswith(prefix)), key=lambda row: row[0])
        assert wanted == list(index.chunks(prefix))


def test_segments_come_in_ascending_number(index: Index) -> None:
    numbers = [300, 2, 0, 256, 1, 255]
    index.commit(Changes(segments=[(7, n, place(1, n)) for n in numbers]))
    index.commit(Changes(segments=[(6, 0, place(1, 0)), (8, 0, place(1, 0)), (7, 3, place(1, 3))]))
    assert [(n, place(1, n)) for n in sorted([*numbers, 3])] == index.segments_of(7)
    assert 9 == index.next_frame()


def test_a_segment_is_where_it_was_put_last(index: Index) -> None:
    index.commit(Changes(segments=[(1, 0, place(1, 0)), (1, 0, place(2, 5))]))
    assert [(0, place(2, 5))] == index.segments_of(1)
    index.commit(Changes(segments=[(1, 0, place(3, 7))]))
    assert [(0, place(3, 7))] == index.segments_of(1)


def test_a_pack_is_as_it_was_put_last(index: Index) -> None:
    rows = [(3, pack_row(3)), (1, pack_row(1, sealed=False)), (1, pack_row(1)), (300, pack_row(2))]
    index.commit(Changes(packs=rows))
    assert {1: pack_row(1), 3: pack_row(3), 300: pack_row(2)} == index.packs()
    assert [1, 3, 300] == list(index.packs())


def test_recipes_are_those_put_last(index: Index) -> None:
    many = tuple(digest(n) for n in range(3000))
    index.commit(Changes(recipes=[(digest(1), (digest(2),)), (digest(3), ())]))
    index.commit(Changes(recipes=[(digest(1), many)]))
    assert many == index.recipes_of(digest(1))
    assert () == index.recipes_of(digest(3))


def test_snapshots_come_oldest_first_and_one_is_found_as_put_last(index: Index) -> None:
    rows = [snapshot_row(n, tier) for n, tier in ((9, "b"), (300, "a"), (2, "a"), (5, "ab"))]
    index.commit(Changes(snapshots=rows))
    index.commit(Changes(snapshots=[snapshot_row(2, "a", complete=True)]))
    assert [2, 5, 9, 300] == [row.finished_ms for row in index.snapshots()]
    assert [snapshot_row(2, "a", complete=True), rows[1]] == index.snapshots("a")
    assert [rows[3]] == index.snapshots("ab")
    assert [] == index.snapshots("c")


def test_two_snapshots_may_end_at_the_same_time(index: Index) -> None:
    one, other = snapshot_row(1, "a"), snapshot_row(2, "a")
    rows = [type(row)(row.id, row.tier, 7, row.complete) for row in (one, other)]
    index.commit(Changes(snapshots=rows))
    assert sorted(rows, key=lambda row: row.id) == index.snapshots("a")


@pytest.mark.parametrize("tier", ["", "a", "ä" * 300, "x" * 254, "x" * 255, "x" * 4096, "a\0"])
def test_any_tier_name_is_told_from_those_like_it(index: Index, tier: str) -> None:
    others = [tier + "x", tier + "\0", tier[:-1] + "y", "x" * 200]
    changes = Changes(
        snapshots=[snapshot_row(n, name) for n, name in enumerate([tier, *others])],
        pending_pages=[(name, digest(n)) for n, name in enumerate([tier, *others])],
    )
    index.commit(changes)
    index.commit(Changes(settled_tiers=others))
    assert [changes.snapshots[0]] == index.snapshots(tier)
    assert [digest(0)] == index.pending_pages(tier)


def test_pending_pages_keep_the_order_of_their_arrival(index: Index) -> None:
    pages = [digest(n) for n in range(300)]
    for at in range(0, 300, 100):
        index.commit(Changes(pending_pages=[("a", p) for p in pages[at : at + 100]]))
    index.commit(Changes(pending_pages=[("a", pages[5]), ("b", digest(-1))]))
    assert pages == index.pending_pages("a")
    assert [digest(-1)] == index.pending_pages("b")


def test_a_settled_tier_has_only_the_pages_that_came_with_its_settling(index: Index) -> None:
    index.commit(Changes(pending_pages=[("a", digest(1)), ("b", digest(2)), ("a", digest(3))]))
    index.commit(Changes(settled_tiers=["a", "c"], pending_pages=[("a", digest(3))]))
    assert [digest(3)] == index.pending_pages("a")
    assert [digest(2)] == index.pending_pages("b")
    index.commit(Changes(settled_tiers=["a"]))
    assert [] == index.pending_pages("a")


def test_the_newest_file_at_a_path_is_found(index: Index) -> None:
    index.commit(Changes(files=[file_row(b"a", 1), file_row(b"a", 2), file_row(b"a", 3, "other")]))
    assert file_row(b"a", 2) == index.find_file("npu", b"a")
    index.commit(Changes(files=[file_row(b"a", 4, tier="05-late")]))
    assert file_row(b"a", 4, tier="05-late") == index.find_file("npu", b"a")
    assert file_row(b"a", 3, "other") == index.find_file("other", b"a")
    assert index.find_file("npu", b"") is None


def test_files_below_are_those_and_no_others_in_byte_order(index: Index) -> None:
    below = [b"a/b", b"a/b/-", b"a/b/c", b"a/b/c/d", b"a/b/c0", b"a/b/\xff"]
    beside = [b"a", b"a/a", b"a/b-", b"a/b0", b"a/bb", b"a/b\xff", b"b"]
    rows = [file_row(path, n) for n, path in enumerate([*below, *beside])]
    index.commit(Changes(files=[*rows, file_row(b"a/b/x", 0, "other")]))
    assert below == [row.path for row in index.files_below("npu", b"a/b")]
    assert sorted(rows, key=lambda row: row.path) == list(index.files_below("npu", b""))
    assert [b"a/b-"] == [row.path for row in index.files_below("npu", b"a/b-")]
    assert [] == list(index.files_below("npu", b"a/b/c/d/e"))


LONG = b"/".join([b"d" * 40] * 25)  # 1024 bytes: no key holds it


@pytest.mark.parametrize("size", [*range(460, 466), *range(492, 498), 510, 511, 512, 1024])
def test_paths_longer_than_keys_are_whole_and_in_order(index: Index, size: int) -> None:
    stem = LONG[:size].rstrip(b"/")
    ends = [b"", b"/", b"/x", b"/y/z", b"0", b"/" + b"\xff" * 40, b"/" + LONG, b"-/q"]
    paths = sorted(stem + end for end in ends if end != b"/")
    index.commit(Changes(files=[file_row(path, n) for n, path in enumerate(reversed(paths))]))
    assert paths == [row.path for row in index.files_below("npu", b"")]
    inside = [path for path in paths if path == stem or path.startswith(stem + b"/")]
    assert inside == [row.path for row in index.files_below("npu", stem)]
    for n, path in enumerate(reversed(paths)):
        assert file_row(path, n) == index.find_file("npu", path)
    assert index.find_file("npu", stem + b"/not there") is None


def test_a_path_that_looks_like_a_cut_key_is_another_path(index: Index) -> None:
    from indexes.files import PATH_KEPT, PATH_LIMIT
    from indexes.keys import fitted

    cut = fitted(LONG, PATH_LIMIT)
    index.commit(Changes(files=[file_row(LONG, 1), file_row(cut, 2), file_row(cut[:-1], 3)]))
    assert LONG[:PATH_KEPT] == cut[:PATH_KEPT]
    assert [1, 2, 3] == [
        row.number for path in (LONG, cut, cut[:-1]) if (row := index.find_file("npu", path))
    ]
    assert sorted([LONG, cut, cut[:-1]]) == [r.path for r in index.files_below("npu", b"")]


def test_an_iteration_may_be_left_and_the_index_changed_meanwhile(index: Index) -> None:
    index.commit(batch(0, 3000))
    rows = index.chunks()
    first = next(rows)
    index.commit(batch(1, 3000))
    assert first[0] < next(rows)[0]
    assert holds(index, 1, 3000)


def test_many_paths_with_one_long_beginning_come_in_order(index: Index) -> None:
    paths = [LONG + b"/%07d" % (n * 7919 % 2500) for n in range(2500)]
    index.commit(Changes(files=[file_row(path) for path in paths]))
    assert sorted(paths) == [row.path for row in index.files_below("npu", LONG)]
