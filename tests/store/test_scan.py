"""Reading a frame from front to back: each segment once, what is out of order elsewhere."""

import threading
from pathlib import Path

import pytest

from cas.errors import DamageError
from cas.ids import Digest, digest_of
from cas.interfaces import Location
from cas.store import reader
from tests.store.build import BuiltStore
from tests.store.test_reader import CountingDecoder, text


@pytest.fixture
def store(tmp_path: Path) -> BuiltStore:
    return BuiltStore(tmp_path, segment_size=100_000, frame_segments=4)


@pytest.fixture
def held(store: BuiltStore) -> dict[Digest, bytes]:
    chunks = [text(seed) for seed in range(40)]
    held = {store.chunk(chunk): chunk for chunk in chunks}
    store.flush()
    return held


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> type[CountingDecoder]:
    monkeypatch.setattr(reader, "FrameDecoder", CountingDecoder)
    CountingDecoder.segments = 0
    return CountingDecoder


def by_frame(store: BuiltStore) -> dict[int, list[tuple[Digest, Location]]]:
    frames: dict[int, list[tuple[Digest, Location]]] = {}
    for id_, location in store.index.located.items():
        frames.setdefault(location.frame, []).append((id_, location))
    return frames


def test_a_frame_is_decoded_once(
    store: BuiltStore, held: dict[Digest, bytes], decoded: type[CountingDecoder]
) -> None:
    for chunks in by_frame(store).values():
        with store.reader.scan(chunks[0][1]) as read:
            assert [held[id_] for id_, _ in chunks] == [bytes(read(at)) for _, at in chunks]
    assert sum(map(len, store.index.places.values())) == decoded.segments


def test_a_scan_goes_on_where_the_last_one_stopped(
    store: BuiltStore, held: dict[Digest, bytes], decoded: type[CountingDecoder]
) -> None:
    chunks = by_frame(store)[0]
    for id_, at in chunks:
        with store.reader.scan(at) as read:
            assert held[id_] == read(at)
    assert len(store.index.places[0]) == decoded.segments


def test_what_is_out_of_order_is_read_elsewhere(
    store: BuiltStore, held: dict[Digest, bytes]
) -> None:
    plain = store.plain([b"plain " * 10_000])[0]
    store.flush()
    frames = by_frame(store)
    first, last = frames[0][0], frames[0][-1]
    other = frames[1][3]
    with store.reader.scan(first[1]) as read:
        for id_, at in (last, first, other, last, first):
            assert held[id_] == read(at)
        assert b"plain " * 10_000 == read(store.index.located[plain])
        assert store.reader.stands_alone(store.index.located[plain])
    assert not store.reader.stands_alone(first[1])


def test_damage_is_told_for_what_it_takes_with_it_alone(
    store: BuiltStore, held: dict[Digest, bytes]
) -> None:
    chunks = by_frame(store)[0]
    hurt = next(id_ for id_, at in chunks if at.segment == 2)
    store.damage(hurt)
    path, place = store.place(hurt)
    with store.reader.scan(chunks[0][1]) as read:
        for id_, at in chunks:
            if at.segment < 2:
                assert held[id_] == read(at)
            else:
                with pytest.raises(DamageError) as caught:
                    read(at)
                assert f"pack {path.name}, offset {place.offset}" == caught.value.where


def test_a_location_that_is_wrong_gives_no_bytes(
    store: BuiltStore, held: dict[Digest, bytes]
) -> None:
    with store.reader.scan(Location(0, 0, 0, 1)) as read:
        with pytest.raises(DamageError):
            read(Location(0, 0, 0, 10**6))
        with pytest.raises(DamageError):
            read(Location(0, 77, 0, 1))


def test_a_few_scans_at_a_time_others_wait(
    store: BuiltStore, held: dict[Digest, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    most, now, guard = [0], [0], threading.Lock()
    frames = list(by_frame(store).values())

    def scan(chunks: list[tuple[Digest, Location]]) -> None:
        with store.reader.scan(chunks[0][1]) as read:
            with guard:
                now[0] += 1
                most[0] = max(most[0], now[0])
            for id_, at in chunks:
                assert id_ == digest_of(read(at))
            with guard:
                now[0] -= 1

    threads = [threading.Thread(target=scan, args=(chunks,)) for chunks in frames * 4]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert 1 <= most[0] <= reader.SCANS
