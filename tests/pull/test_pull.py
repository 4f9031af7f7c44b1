"""A sync from end to end, agent and client in one process, over a transport in memory."""

from __future__ import annotations

import os
import random
from functools import partial
from pathlib import Path

import pytest

from cas.errors import PeerError, SourceError, TransportError
from cas.messages import HEADER, PIECE_HEAD, PIECE_SIZE, Message, Piece
from cas.pull.lane import Lane
from cas.pull.sync import SyncOptions
from cas.transport.base import Transport
from tests.pull.world import World


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def _fill(directory: Path, *, seed: int, files: int = 40, big: int = 3_000_000) -> None:
    rng = random.Random(seed)
    directory.mkdir(parents=True, exist_ok=True)
    words = [rng.randbytes(8).hex() for _ in range(500)]
    for number in range(files):
        text = " ".join(rng.choices(words, k=rng.randrange(1, 4000)))
        (directory / f"file{number:03}.txt").write_text(text)
    (directory / "random.bin").write_bytes(rng.randbytes(big))
    (directory / "empty").touch()
    text = " ".join(rng.choices(words, k=big // 17))
    (directory / "large.txt").write_text(text)


def test_a_tier_arrives_and_reads_back(world: World) -> None:
    _fill(world.source / "a", seed=1)
    state = world.sync(world.tier("one"))
    assert world.on_disk() == world.content("one")
    (tier,) = state.tiers
    assert tier.complete
    assert tier.to_fetch == tier.fetched == tier.unique
    assert tier.here == 0
    assert sum(map(len, world.on_disk().values())) == tier.logical
    assert tier.wire_in > tier.stored > 0
    assert tier.left_out == 0


def test_nothing_changed_costs_next_to_nothing(world: World) -> None:
    _fill(world.source / "a", seed=1, files=1500, big=1000)
    world.sync(world.tier("one"))
    state = world.sync(world.tier("one"))
    (tier,) = state.tiers
    assert tier.to_fetch == tier.fetched == 0
    assert tier.complete
    assert tier.unique == tier.here > 0
    assert tier.wire_in + tier.wire_out < 3 * 1500
    assert len(world.index.snapshots("one")) == 1


def test_a_later_tier_fetches_only_what_is_missing(world: World) -> None:
    _fill(world.source / "a", seed=1)
    _fill(world.source / "b", seed=1)
    (world.source / "b" / "new").write_bytes(b"only here" * 10)
    state = world.sync(world.tier("one", "a"), world.tier("two", "b"))
    assert state.tiers[1].to_fetch == 90
    assert state.tiers[1].here == state.tiers[0].unique
    assert world.on_disk("b") == world.content("two")


def test_an_edit_costs_the_edit(world: World) -> None:
    _fill(world.source / "a", seed=1)
    first = world.sync(world.tier("one")).tiers[0]
    large = world.source / "a" / "large.txt"
    data = large.read_bytes()
    large.write_bytes(data[: len(data) // 2] + b"an edit" + data[len(data) // 2 :])
    second = world.sync(world.tier("one")).tiers[0]
    assert 0 < second.fetched < 600_000 < first.fetched
    assert world.on_disk() == world.content("one")
    assert len(world.index.snapshots("one")) == 2


def test_a_dry_run_counts_the_same_and_writes_nothing(world: World) -> None:
    _fill(world.source / "a", seed=1)
    dry = world.sync(world.tier("one"), options=SyncOptions(dry_run=True)).tiers[0]
    assert world.index.snapshots() == []
    assert list(world.layout.packs.iterdir()) == []
    wet = world.sync(world.tier("one")).tiers[0]
    assert (dry.logical, dry.unique, dry.to_fetch) == (wet.logical, wet.unique, wet.to_fetch)
    assert dry.fetched == 0
    assert not dry.complete


def test_a_dry_run_counts_what_an_earlier_tier_would_bring_as_here(world: World) -> None:
    _fill(world.source / "a", seed=1)
    _fill(world.source / "b", seed=1)
    (world.source / "b" / "new").write_bytes(b"only here" * 10)
    tiers = world.tier("one", "a"), world.tier("two", "b")
    dry = world.sync(*tiers, options=SyncOptions(dry_run=True)).tiers
    wet = world.sync(*tiers).tiers
    assert [(t.unique, t.here, t.to_fetch) for t in wet] == [
        (t.unique, t.here, t.to_fetch) for t in dry
    ]
    assert 90 == dry[1].to_fetch


def test_a_segment_that_comes_again_is_counted_and_stored_once(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As it does when its lane was thought lost, and it went out on another too."""
    _fill(world.source / "a", seed=1)
    receive = Lane.receive
    whole: list[Piece] = []
    again: list[Piece] = []

    async def twice(lane: Lane) -> Message:
        if again:
            return again.pop(0)
        message = await receive(lane)
        if isinstance(message, Piece):
            whole.append(message)
            if message.offset + len(message.data) == message.total:
                again.extend(whole)
                whole.clear()
        return message

    monkeypatch.setattr(Lane, "receive", twice)
    (tier,) = world.sync(world.tier("one")).tiers
    assert tier.fetched == tier.to_fetch
    assert tier.stored <= tier.fetched_again <= tier.wire_in
    assert world.on_disk() == world.content("one")


def test_excluded_names_do_not_come(world: World) -> None:
    _fill(world.source / "a", seed=1, files=3)
    world.sync(world.tier("one", exclude=["*.bin"]))
    names = {os.path.basename(path) for path in world.content("one")}
    assert b"random.bin" not in names
    assert b"large.txt" in names


def test_a_missing_root_is_listed_and_the_rest_goes_on(world: World) -> None:
    _fill(world.source / "a", seed=1, files=3)
    state = world.sync(world.tier("one", "a", "nowhere"))
    (tier,) = state.tiers
    assert tier.left_out == 1
    assert tier.problems[0].path.endswith(b"nowhere")
    assert world.on_disk("a") == world.content("one")


class _Cut:
    """A lane that is lost after a number of bytes received."""

    def __init__(self, inner: Transport, left: list[int]) -> None:
        self._inner = inner
        self._left = left
        self.bytes_in = 0
        self.bytes_out = 0

    async def send(self, data: bytes) -> None:
        await self._inner.send(data)
        self.bytes_out += len(data)

    async def receive(self) -> bytes:
        data = await self._inner.receive()
        self._left[0] -= len(data)
        self.bytes_in += len(data)
        if self._left[0] < 0:
            self._left[0] = self._left[1]
            await self._inner.close()
            raise TransportError("cut by the test")
        return data

    async def close(self) -> None:
        await self._inner.close()

    def complaints(self) -> str:
        return ""


@pytest.mark.parametrize("every", [1_300_000, 2_000_000, 3_500_000])
def test_a_lane_that_is_cut_again_and_again_loses_only_what_was_under_way(
    world: World, every: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cas.pull.sync.RETRY_SECONDS", (0.0,))
    _fill(world.source / "a", seed=1, big=4_000_000)
    left = [every, every]
    state = world.sync(world.tier("one"), wrap=lambda inner: _Cut(inner, left))
    (tier,) = state.tiers
    assert world.on_disk() == world.content("one")
    assert tier.complete
    assert tier.fetched == tier.to_fetch
    assert state.events  # at least one cut


class _Liar(_Cut):
    """A lane on which one byte in the middle of one piece is changed."""

    WHOLE_PIECE = HEADER.pack(PIECE_SIZE + PIECE_HEAD.size, Piece.TYPE, 0, 0)

    def __init__(self, inner: Transport, skip: int) -> None:
        super().__init__(inner, [1 << 60, 1 << 60])
        self._skip = skip

    async def receive(self) -> bytes:
        data = await super().receive()
        at = data.find(self.WHOLE_PIECE) + 1000
        if at < 1000 or at >= len(data):
            return data
        self._skip -= 1
        return data if self._skip else data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


def test_a_changed_byte_is_never_stored(world: World) -> None:
    for skip in (1, 2, 3):
        _fill(world.source / "a", seed=skip, files=2, big=3_000_000)
        with pytest.raises(PeerError):
            world.sync(world.tier("one"), wrap=partial(_Liar, skip=skip))
        store = world.open()
        for chunk, _ in world.index.chunks():
            store.reader.chunk(chunk)  # raises if any is wrong
        store.reader.close()
    world.sync(world.tier("one"))
    assert world.on_disk() == world.content("one")


class _Editor(_Cut):
    """Changes a file at the source as soon as the first page has come."""

    def __init__(self, inner: Transport, path: Path, times: list[int]) -> None:
        super().__init__(inner, [1 << 60, 1 << 60])
        self._path = path
        self._times = times

    async def send(self, data: bytes) -> None:
        # The WANT is on its way: what it asks for has just changed.
        if self._times[0] and len(data) > 8 and data[4] == 8:
            self._times[0] -= 1
            self._path.write_bytes(os.urandom(2_000_000))
        await super().send(data)


def test_a_file_that_changes_after_the_scan_is_scanned_again(world: World) -> None:
    _fill(world.source / "a", seed=1, files=2, big=10)
    victim = world.source / "a" / "victim"
    victim.write_bytes(os.urandom(2_000_000))
    times = [1]
    state = world.sync(world.tier("one"), wrap=lambda inner: _Editor(inner, victim, times))
    (tier,) = state.tiers
    assert tier.missed > 0
    assert tier.complete
    assert world.on_disk() == world.content("one")


def test_a_file_that_never_rests_is_listed(world: World) -> None:
    _fill(world.source / "a", seed=1, files=2, big=10)
    victim = world.source / "a" / "victim"
    victim.write_bytes(os.urandom(2_000_000))
    times = [100]
    state = world.sync(world.tier("one"), wrap=lambda inner: _Editor(inner, victim, times))
    (tier,) = state.tiers
    assert not tier.complete
    assert [bytes(victim)[1:]] == [problem.path for problem in tier.problems]
    assert tier.left_out == 1


def test_an_agent_that_refuses_is_quoted(world: World) -> None:
    with pytest.raises(SourceError):
        world.sync(
            world.tier("one", exclude=["a" * 20_000, "b" * 20_000, "c" * 20_000, "d" * 20_000])
        )
