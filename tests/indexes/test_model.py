"""Any commits and reopenings: LMDB answers as the dictionaries do."""

import tempfile
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from cas.interfaces import Changes, FileRow, Location, SnapshotRow
from cas.store.memory_index import MemoryIndex
from indexes.index import LmdbIndex
from tests.indexes.sample import digest, pack_row, place

STEM = b"/".join([b"s" * 60] * 9)
PARTS = st.sampled_from([b"a", b"b", b"-", b"a0", b"\xff", STEM[:440], STEM[:463], STEM])
PATHS = st.lists(PARTS, min_size=1, max_size=3).map(b"/".join)
SOURCES = st.sampled_from(["npu", "np", "this"])
TIERS = st.sampled_from(["a", "ab", "t" * 254, "t" * 255, "t" * 300])
DIGESTS = st.integers(0, 20).map(digest)
SMALL = st.integers(0, 3)
PLACES = st.builds(place, SMALL, SMALL)
LOCATIONS = st.builds(Location, SMALL, SMALL, SMALL, SMALL)
PARTS_OF = st.lists(DIGESTS, max_size=3).map(tuple)
PACKS = st.builds(lambda n, sealed: pack_row(n, sealed=sealed), SMALL, st.booleans())
SNAPSHOTS = st.builds(
    lambda n, complete: SnapshotRow(digest(n), "a" * (1 + n % 3), n // 2, complete),
    st.integers(0, 9),
    st.booleans(),
)


def some(*columns: st.SearchStrategy[object]) -> st.SearchStrategy[list[object]]:
    """A few rows of these columns."""
    row = columns[0] if len(columns) == 1 else st.tuples(*columns)
    return st.lists(row, max_size=5)


CHANGES = st.builds(
    Changes,
    chunks=some(DIGESTS, LOCATIONS),
    segments=some(st.integers(0, 2**40), SMALL, PLACES),
    packs=some(SMALL, PACKS),
    recipes=some(DIGESTS, PARTS_OF),
    snapshots=some(SNAPSHOTS),
    files=some(st.builds(FileRow, SOURCES, PATHS, TIERS, DIGESTS, SMALL)),
    pending_pages=some(TIERS, DIGESTS),
    settled_tiers=some(TIERS),
)


class IndexMachine(RuleBasedStateMachine):
    """One of each, given the same."""

    @initialize()
    def begin(self) -> None:
        self.directory = tempfile.TemporaryDirectory()
        self.memory = MemoryIndex()
        self.frames: set[int] = set()
        self.lmdb = LmdbIndex(Path(self.directory.name), create=True, map_size=2**17)

    @rule(changes=CHANGES)
    def commit(self, changes: Changes) -> None:
        self.memory.commit(changes)
        self.lmdb.commit(changes)
        self.frames.update(frame for frame, _, _ in changes.segments)

    @rule(readonly=st.booleans())
    def reopen(self, readonly: bool) -> None:
        self.lmdb.close()
        self.lmdb = LmdbIndex(Path(self.directory.name), readonly=readonly)
        if readonly:
            self.same()
            self.reopen(False)

    @rule(source=SOURCES, path=PATHS)
    def look(self, source: str, path: bytes) -> None:
        for prefix in (path, path.rpartition(b"/")[0]):
            assert self.memory.find_file(source, prefix) == self.lmdb.find_file(source, prefix)
            expected = list(self.memory.files_below(source, prefix))
            assert expected == list(self.lmdb.files_below(source, prefix))

    @invariant()
    def same(self) -> None:
        if not hasattr(self, "lmdb"):
            return
        ids = [digest(n) for n in range(-1, 21)]
        one, other = self.memory, self.lmdb
        assert [one.locate(id_) for id_ in ids] == [other.locate(id_) for id_ in ids]
        assert one.held(ids) == other.held(ids)
        assert [one.recipes_of(id_) for id_ in ids] == [other.recipes_of(id_) for id_ in ids]
        assert list(one.chunks()) == list(other.chunks())
        assert one.packs() == other.packs()
        assert one.next_frame() == other.next_frame()
        assert one.snapshots() == other.snapshots()
        for frame in self.frames:
            assert one.segments_of(frame) == other.segments_of(frame)
        for tier in ("a", "aa", "ab", "t" * 254, "t" * 255, "t" * 300):
            assert one.pending_pages(tier) == other.pending_pages(tier)
            assert one.snapshots(tier) == other.snapshots(tier)

    def teardown(self) -> None:
        if hasattr(self, "lmdb"):
            self.lmdb.close()
            self.directory.cleanup()


TestIndexModel = IndexMachine.TestCase
TestIndexModel.settings = settings(max_examples=40, stateful_step_count=20)
