"""An index made anew from packs and snapshots is the one that was lost."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from cas.entry import Content, Entry, Kind, Owner
from cas.errors import CasError, DamageError, NotHeldError
from cas.frame import Codec
from cas.ids import Digest, digest_of
from cas.interfaces import Changes, FileRow, Index, Location, PackRow, SegmentPlace, SnapshotRow
from cas.pack import (
    HEADER_SIZE,
    Origin,
    Record,
    Segment,
    encode_header,
    encode_seal,
    encode_segment,
    read_records,
)
from cas.page import encode_page
from cas.recipe import Recipe, encode_recipe
from cas.snapshot import PageRef, Snapshot, encode_snapshot
from cas.store.memory_index import MemoryIndex
from indexes.index import LmdbIndex
from indexes.rebuild import rebuild

ORIGIN = Origin(bytes(16), "npu", "00-first", 5, 0, 100, ())
OWNER = Owner(0o644, 0, 0)


class Packs:
    """Packs in memory, and the index as it is kept while they are written."""

    def __init__(self) -> None:
        self.data: dict[int, bytearray] = {}
        self.index = MemoryIndex()
        self.snapshots: list[tuple[Digest, Snapshot]] = []
        self.problems: list[tuple[str, CasError]] = []
        self._frame = 0
        self._offsets: dict[int, list[int]] = {}

    def add(self, pack: int, *chunks: bytes, meta: bool = False) -> list[Digest]:
        """Append a segment of `chunks`; returns their ids."""
        data = self.data.setdefault(pack, bytearray(encode_header(bytes([pack]) * 16)))
        ids = [digest_of(chunk) for chunk in chunks]
        plain = b"".join(chunks)
        lengths = tuple(map(len, chunks))
        frame, number = self._frame // 3, self._frame % 3
        self._frame += 1
        segment = Segment(frame, number, Codec.PLAIN, meta, len(plain), lengths, tuple(ids), ORIGIN)
        record = encode_segment(segment, plain)
        start = len(data)
        self._offsets.setdefault(pack, []).append(start)
        place = SegmentPlace(
            pack, start, start + len(record) - len(plain), len(plain), Codec.PLAIN, len(plain)
        )
        data += record
        row = PackRow(bytes([pack]) * 16, f"open-{pack}", len(data), False)
        rows = [
            (id_, Location(frame, number, sum(lengths[:at]), lengths[at]))
            for at, id_ in enumerate(ids)
        ]
        changes = Changes(chunks=rows, segments=[(frame, number, place)], packs=[(pack, row)])
        self.index.commit(changes)
        return ids

    def seal(self, pack: int) -> None:
        self.data[pack] += encode_seal(self._offsets[pack])
        row = PackRow(bytes([pack]) * 16, f"open-{pack}", len(self.data[pack]), True)
        self.index.commit(Changes(packs=[(pack, row)]))

    def add_page(self, pack: int, *entries: Entry) -> Digest:
        """Append a page, and note what its entries say of recipes."""
        (page,) = self.add(pack, encode_page(list(entries)), meta=True)
        contents = [entry.content for entry in entries if entry.content is not None]
        self.index.commit(Changes(recipes=[(c.digest, c.parts) for c in contents if c.parts]))
        return page

    def add_recipe(self, pack: int, size: int, file: Digest) -> Digest:
        """Append the recipe of a file of one chunk that is `size` bytes."""
        encoded = encode_recipe(Recipe(size, file, (digest_of(b"chunk"),), (size,)))
        (id_,) = self.add(pack, encoded, meta=True)
        return id_

    def finish(self, finished_ms: int, tier: str, *pages: tuple[Digest, list[Entry]]) -> None:
        """End a scan that had these pages."""
        refs = tuple(PageRef(id_, rows[0].path, len(rows), 1, 1) for id_, rows in pages)
        snapshot = Snapshot(
            tier, "npu", "host", (b"a",), bytes(16), 1, finished_ms, "c", "v", 1, refs, ()
        )
        id_ = digest_of(encode_snapshot(snapshot))
        self.snapshots.append((id_, snapshot))
        files = [
            FileRow("npu", entry.path, tier, page, number)
            for page, rows in pages
            for number, entry in enumerate(rows)
        ]
        row = SnapshotRow(id_, tier, finished_ms, complete=False)
        self.index.commit(Changes(snapshots=[row], files=files))

    def records(self) -> Iterator[tuple[int, PackRow, Iterator[Record]]]:
        for number, row in self.index.packs().items():
            data = self.data[number]

            def read(size: int, offset: int, data: bytearray = data) -> bytes:
                return bytes(data[offset : offset + size])

            yield number, row, read_records(read, len(data))

    def rebuild(self, index: Index) -> list[Changes]:
        """Make `index` the one that was lost; returns the batches."""

        def read_object(id_: Digest) -> bytes:
            place = index.locate(id_)
            if place is None:
                raise NotHeldError("not held", where=id_.hex())
            at = dict(index.segments_of(place.frame))[place.segment]
            start = at.payload_offset + place.offset
            found = bytes(self.data[at.pack][start : start + place.length])
            if digest_of(found) != id_:
                raise DamageError("damaged", where=id_.hex())
            return found

        batches = []
        report = self.problems
        for changes in rebuild(
            self.records(), reversed(self.snapshots), read_object, lambda *p: report.append(p)
        ):
            index.commit(changes)
            batches.append(changes)
        return batches


def file(path: bytes, digest: Digest, *parts: Digest, size: int = 5) -> Entry:
    return Entry(path, Kind.FILE, OWNER, 0, size, Content(size, digest, 1, parts))


def directory(path: bytes) -> Entry:
    return Entry(path, Kind.DIRECTORY, OWNER, 0)


@pytest.fixture(params=["memory", "lmdb"])
def index(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Index]:
    found: Index = (
        MemoryIndex()
        if request.param == "memory"
        else LmdbIndex(tmp_path / "index", create=True, map_size=2**17)
    )
    yield found
    found.close()


@pytest.fixture
def packs() -> Packs:
    """Two packs, three snapshots of two tiers, a file that went and came back as it was."""
    packs = Packs()
    (chunk,) = packs.add(1, b"chunk")
    packs.add(1, b"other", b"third chunk")
    big = digest_of(b"a big file")
    parts = [packs.add_recipe(1, 5, digest_of(b"part %d" % n)) for n in range(2)]
    one = [directory(b"a"), file(b"a/b", chunk), file(b"a/c", big, *parts, size=10)]
    two = [directory(b"a"), file(b"a/b", digest_of(b"other"))]
    late = [file(b"z", chunk)]
    pages = [packs.add_page(1, *rows) for rows in (one, two)]
    packs.seal(1)
    pages.append(packs.add_page(2, *late))
    packs.add(2, b"chunk", b"fourth chunk")
    packs.finish(10, "00-first", (pages[0], one))
    packs.finish(20, "00-first", (pages[1], two), (pages[2], late))
    packs.finish(25, "01-second", (pages[2], late))
    packs.finish(30, "00-first", (pages[0], one))
    return packs


def check_same(lost: Index, made: Index) -> None:
    assert list(lost.chunks()) == list(made.chunks())
    assert lost.packs() == made.packs()
    assert lost.next_frame() == made.next_frame()
    for frame in range(lost.next_frame() + 1):
        assert lost.segments_of(frame) == made.segments_of(frame)
    assert lost.snapshots() == made.snapshots()
    assert list(lost.files_below("npu", b"")) == list(made.files_below("npu", b""))


def test_a_lost_index_is_made_anew(packs: Packs, index: Index) -> None:
    packs.rebuild(index)
    check_same(packs.index, index)
    assert [] == packs.problems
    found = index.find_file("npu", b"a/b")
    assert found is not None
    assert packs.snapshots[0][1].pages[0].id == found.page
    big = digest_of(b"a big file")
    parts = packs.index.recipes_of(big)
    assert parts is not None
    assert parts == index.recipes_of(big)
    assert (parts[1],) == index.recipes_of(digest_of(b"part 1"))


def test_a_page_of_no_snapshot_tells_of_its_recipes_only(packs: Packs, index: Index) -> None:
    recipe = packs.add_recipe(2, 5, digest_of(b"x"))
    packs.add_page(2, file(b"unfinished", digest_of(b"y"), recipe))
    packs.rebuild(index)
    check_same(packs.index, index)
    assert (recipe,) == index.recipes_of(digest_of(b"y"))
    assert index.find_file("npu", b"unfinished") is None
    assert [] == index.pending_pages("00-first")


def test_a_recipe_without_a_digest_names_no_file(packs: Packs, index: Index) -> None:
    packs.add_recipe(2, 5, Digest(bytes(32)))
    packs.rebuild(index)
    assert index.recipes_of(Digest(bytes(32))) is None
    assert [] == packs.problems


def test_from_a_torn_record_on_a_pack_is_left_out_and_the_rest_goes_on(
    packs: Packs, index: Index
) -> None:
    whole = len(packs.data[2])
    (torn,) = packs.add(2, b"torn chunk")
    (after,) = packs.add(3, b"after")
    del packs.data[2][-70:]
    packs.rebuild(index)
    assert [False, True] == index.held([torn, after])
    assert whole == index.packs()[2].size
    assert list(packs.index.files_below("npu", b"")) == list(index.files_below("npu", b""))
    assert [("pack open-2", DamageError)] == [(w, type(e)) for w, e in packs.problems]


def test_a_damaged_sealed_pack_is_reported_and_keeps_its_size(packs: Packs, index: Index) -> None:
    size = len(packs.data[1])
    packs.data[1][HEADER_SIZE + 10] ^= 1
    packs.rebuild(index)
    assert index.packs()[1] == packs.index.packs()[1]
    assert size == index.packs()[1].size
    assert packs.problems[0][0] == "pack open-1"
    # Its pages are gone with it, and what they said; what the other pack says is there.
    assert index.find_file("npu", b"a/b") is None
    assert index.find_file("npu", b"z") is not None
    assert 4 == len(index.snapshots())
    assert {NotHeldError} == {type(error) for _, error in packs.problems[1:]}


def test_a_damaged_page_is_reported_and_the_rest_goes_on(packs: Packs, index: Index) -> None:
    page = packs.snapshots[0][1].pages[0].id
    place = packs.index.locate(page)
    assert place is not None
    at = dict(packs.index.segments_of(place.frame))[place.segment]
    packs.data[1][at.payload_offset + 8] ^= 1
    packs.rebuild(index)
    assert packs.index.snapshots() == index.snapshots()
    assert list(packs.index.chunks()) == list(index.chunks())
    assert [f"page {page.hex()} of 00-first"] == [where for where, _ in packs.problems]
    found = index.find_file("npu", b"a/b")
    assert found is not None
    assert packs.snapshots[1][1].pages[0].id == found.page


def test_an_object_that_is_neither_page_nor_recipe_is_reported(packs: Packs, index: Index) -> None:
    (odd,) = packs.add(2, b"CASx\x01 of a later version", meta=True)
    packs.rebuild(index)
    check_same(packs.index, index)
    assert [f"object {odd.hex()}"] == [where for where, _ in packs.problems]


def test_batches_are_bounded_and_a_chunk_keeps_its_first_place(
    packs: Packs, index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("indexes.rebuild.BATCH", 3)
    first = packs.index.locate(digest_of(b"chunk"))
    batches = packs.rebuild(index)
    assert len(batches) > 5
    check_same(packs.index, index)
    assert first == index.locate(digest_of(b"chunk"))


def test_no_packs_and_no_snapshots_make_no_batches(index: Index) -> None:
    assert [] == Packs().rebuild(index)
