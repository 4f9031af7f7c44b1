"""The reader gives out what hashes to its name, and says where what does not lies."""

import os
import random
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from cas.errors import DamageError, NotHeldError
from cas.frame import Codec, FrameDecoder
from cas.ids import Digest, digest_of
from cas.interfaces import Index, Location, SegmentPlace
from cas.store import frames, open_packs
from cas.store.frames import Frames
from cas.store.reader import PackReader
from tests.store.build import BuiltStore

WORDS = [b"frame ", b"segment ", b"chunk ", b"pack ", b"tier ", b"lane "]


def text(seed: int, size: int = 40_000) -> bytes:
    """Bytes that compress, the same for the same seed."""
    return b"".join(random.Random(seed).choices(WORDS, k=size // 4))[:size]


@pytest.fixture
def store(tmp_path: Path) -> BuiltStore:
    return BuiltStore(tmp_path, segment_size=100_000, frame_segments=4)


def fill(store: BuiltStore, count: int) -> dict[Digest, bytes]:
    chunks = [text(seed) for seed in range(count)]
    held = {store.chunk(chunk): chunk for chunk in chunks}
    store.flush()
    return held


@pytest.mark.parametrize("order", ["forwards", "backwards", "shuffled"])
def test_every_chunk_comes_back_in_any_order(store: BuiltStore, order: str) -> None:
    held = fill(store, 60)
    assert len(store.index.places) > 3
    ids = list(held)
    if order == "backwards":
        ids.reverse()
    elif order == "shuffled":
        random.Random(1).shuffle(ids)
    assert [held[id_] for id_ in ids] == [store.reader.chunk(id_) for id_ in ids]


def test_little_memory_changes_nothing_but_the_time(store: BuiltStore) -> None:
    held = fill(store, 60)
    reader = PackReader(cast(Index, store.index), store.packs_dir, memory=1)
    ids = random.Random(2).sample(list(held), 60)
    assert [held[id_] for id_ in ids] == [reader.chunk(id_) for id_ in ids]


def test_threads_share_a_reader(store: BuiltStore) -> None:
    held = fill(store, 60)

    def read_all(seed: int) -> bool:
        ids = random.Random(seed).sample(list(held), 60)
        return all(held[id_] == store.reader.chunk(id_) for id_ in ids)

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(read_all, range(8)))


class CountingDecoder(FrameDecoder):
    segments = 0
    guard = threading.Lock()

    def segment(self, payload: bytes | memoryview, plain_size: int) -> bytes:
        with self.guard:
            CountingDecoder.segments += 1
        return super().segment(payload, plain_size)


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> type[CountingDecoder]:
    monkeypatch.setattr(frames, "FrameDecoder", CountingDecoder)
    CountingDecoder.segments = 0
    return CountingDecoder


def test_reading_in_order_decodes_every_segment_once(
    store: BuiltStore, decoded: type[CountingDecoder]
) -> None:
    held = fill(store, 60)
    for id_ in [*held, *reversed(held)]:
        store.reader.chunk(id_)
    assert sum(map(len, store.index.places.values())) == decoded.segments


def test_threads_that_want_one_frame_decode_it_once(
    store: BuiltStore, decoded: type[CountingDecoder]
) -> None:
    held = fill(store, 60)
    with ThreadPoolExecutor(4) as pool:
        for _ in range(4):
            list(pool.map(store.reader.chunk, held))
    assert sum(map(len, store.index.places.values())) == decoded.segments


def test_what_is_not_held_is_said(store: BuiltStore) -> None:
    fill(store, 3)
    with pytest.raises(NotHeldError, match=digest_of(b"no").hex()):
        store.reader.chunk(digest_of(b"no"))


def test_an_object_is_read_like_a_chunk(store: BuiltStore) -> None:
    id_ = store.chunk(b"a page or a recipe")
    store.flush()
    assert b"a page or a recipe" == store.reader.object(id_)


def test_damage_is_placed_and_what_is_before_it_or_elsewhere_stays_readable(
    store: BuiltStore,
) -> None:
    held = fill(store, 60)
    hurt = next(id_ for id_, at in store.index.located.items() if (at.frame, at.segment) == (1, 2))
    store.damage(hurt)
    path, place = store.place(hurt)
    for id_, data in held.items():
        location = store.index.located[id_]
        if location.frame == 1 and location.segment >= 2:
            with pytest.raises(DamageError) as caught:
                store.reader.chunk(id_)
            assert f"pack {path.name}, offset {place.offset}" == caught.value.where
        else:
            assert data == store.reader.chunk(id_)


@pytest.mark.parametrize("where", ["header", "table"])
def test_a_damaged_record_is_damage(store: BuiltStore, where: str) -> None:
    (id_,) = fill(store, 1)
    path, place = store.place(id_)
    data = bytearray(path.read_bytes())
    data[place.offset + (5 if where == "header" else 60)] ^= 1
    path.write_bytes(data)
    with pytest.raises(DamageError, match=f"pack {path.name}, offset {place.offset}"):
        store.reader.chunk(id_)


def test_a_plain_segment_loses_only_the_chunk_that_is_damaged(store: BuiltStore) -> None:
    chunks = [os.urandom(50_000) for _ in range(5)]
    ids = store.plain(chunks)
    store.flush()
    store.damage(ids[2])  # in the middle of the payload
    assert chunks[:2] == [store.reader.chunk(id_) for id_ in ids[:2]]
    assert chunks[3:] == [store.reader.chunk(id_) for id_ in ids[3:]]
    with pytest.raises(DamageError, match=ids[2].hex()):
        store.reader.chunk(ids[2])


def test_a_payload_that_is_whole_but_does_not_decode_is_damage(
    store: BuiltStore, decoded: type[CountingDecoder]
) -> None:
    held = fill(store, 12)
    ids = list(held)
    lost = [id_ for id_ in ids if store.index.located[id_].segment >= 1]
    # The second record is left out, as if the index had forgotten it: its successors do not decode.
    del store.index.places[0][1]
    for id_ in lost:
        with pytest.raises(DamageError):
            store.reader.chunk(id_)
    assert decoded.segments <= len(lost) + 1
    for id_ in set(ids) - set(lost):
        assert held[id_] == store.reader.chunk(id_)


@pytest.mark.parametrize(
    "change",
    [{"length": 50_000}, {"offset": 90_000}, {"segment": 9}],
    ids=["length", "offset", "segment"],
)
def test_an_index_that_is_wrong_gives_damage_and_no_bytes(
    store: BuiltStore, change: dict[str, int]
) -> None:
    id_, *_ = fill(store, 3)
    location: Location = store.index.located[id_]
    store.index.located[id_] = replace(location, **change)
    with pytest.raises(DamageError):
        store.reader.chunk(id_)


def test_a_place_that_is_wrong_gives_damage(store: BuiltStore) -> None:
    id_, *_ = fill(store, 3)
    place = store.index.places[0][0]
    store.index.places[0][0] = replace(place, plain_size=place.plain_size - 1)
    with pytest.raises(DamageError, match="disagree"):
        store.reader.chunk(id_)


def test_a_frame_may_grow_while_it_is_read(store: BuiltStore) -> None:
    first = store.chunk(text(1))
    store.end_segment()
    assert text(1) == store.reader.chunk(first)
    second = store.chunk(text(2))
    store.end_segment()
    assert store.index.located[first].frame == store.index.located[second].frame
    assert text(2) == store.reader.chunk(second)


def test_a_pack_may_be_sealed_after_it_was_opened(store: BuiltStore) -> None:
    first = store.chunk(text(1))
    store.end_segment()
    assert text(1) == store.reader.chunk(first)
    second = store.chunk(text(2))
    store.flush()
    assert text(2) == store.reader.chunk(second)


def test_a_pack_that_was_renamed_is_found_again(store: BuiltStore) -> None:
    first, second = store.chunk(text(1)), store.chunk(text(2))
    store.flush()
    row = store.index.rows[0]
    # The index still has the name that the pack had when it was open.
    store.index.rows[0] = replace(row, name=f"open-{row.id.hex()}", sealed=False)
    (store.packs_dir / "0other").write_bytes(b"not a pack")
    assert text(1) == store.reader.chunk(first)
    assert text(2) == store.reader.chunk(second)


def test_a_missing_pack_is_damage(store: BuiltStore) -> None:
    held = fill(store, 1)
    name = store.index.rows[0].name
    (store.packs_dir / name).unlink()
    with pytest.raises(DamageError, match=name):
        store.reader.chunk(*held)


def test_another_pack_under_its_name_is_not_read(store: BuiltStore) -> None:
    first = store.chunk(text(1))
    store.flush()
    store.chunk(text(2))
    store.flush()
    names = [row.name for row in store.index.rows.values()]
    os.replace(store.packs_dir / names[1], store.packs_dir / names[0])
    with pytest.raises(DamageError, match="missing"):
        store.reader.chunk(first)


def test_few_packs_are_open_at_once(store: BuiltStore) -> None:
    held = {}
    for seed in range(open_packs.OPEN_AT_ONCE + 20):
        held[store.chunk(text(seed, 100))] = text(seed, 100)
        store.flush()
    before = len(os.listdir("/proc/self/fd"))
    for id_, data in [*held.items()] * 2:
        assert data == store.reader.chunk(id_)
    assert len(os.listdir("/proc/self/fd")) <= before + open_packs.OPEN_AT_ONCE
    store.reader.close()
    assert before == len(os.listdir("/proc/self/fd"))


def test_what_is_kept_stays_within_its_memory(store: BuiltStore) -> None:
    held = fill(store, 60)
    places = store.index.places
    memory = 500_000
    path = store.packs_dir / store.index.rows[0].name

    def payload(place: SegmentPlace) -> bytes:
        assert place.codec is Codec.ZSTD
        return path.read_bytes()[place.payload_offset :][: place.payload_size]

    kept = Frames(payload, str, memory)
    for frame, segments in places.items():
        steps = list(segments.items())
        for end in range(1, len(steps) + 1):
            kept.decode(frame, steps[:end], complete=end == len(steps))
            sizes = [len(kept.get(f, n) or b"") for f in places for n in places[f]]
            assert 0 < sum(sizes) <= memory
    assert sum(map(len, held.values())) > memory


def test_after_a_close_the_index_is_asked_again(store: BuiltStore) -> None:
    """As when packs have been rewritten and a number stands for another one now."""
    first = store.chunk(text(1))
    store.flush()
    assert text(1) == store.reader.chunk(first)
    second = store.chunk(text(2))
    store.flush()
    rows, places, located = store.index.rows, store.index.places, store.index.located
    rows[0] = rows.pop(1)
    place = places.pop(located[second].frame)[0]
    places[0] = {0: replace(place, pack=0)}
    located[second] = replace(located[second], frame=0)
    store.reader.close()
    assert text(2) == store.reader.chunk(second)
