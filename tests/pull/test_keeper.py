import asyncio
from typing import cast

import pytest

from cas.pull import keeper as keeper_module
from cas.pull.keeper import COMMIT_SIZE, Keeper
from cas.pull.receive import StoredSegment
from cas.store.writer import Writer

FOR_EVER = 1e6


class Diary:
    """A writer that only notes when it is told to commit, and what was acknowledged after it."""

    def __init__(self) -> None:
        self.acknowledged: list[list[int]] = []
        self.commits = 0
        self.told = asyncio.Event()

    def commit(self) -> None:
        self.commits += 1

    async def acknowledge(self, segments: list[StoredSegment]) -> None:
        self.acknowledged.append([segment.key[1] for segment in segments])
        self.told.set()


def segment(number: int, size: int = 1000) -> StoredSegment:
    return StoredSegment((1, number), size, size)


async def committed(segments: list[StoredSegment], *, last: bool = False) -> list[list[int]]:
    """What is acknowledged together when `segments` are stored one after another, `last` or not,
    up to the first acknowledgement."""
    diary = Diary()
    keeper = Keeper(cast(Writer, diary), diary.acknowledge)
    task = asyncio.create_task(keeper.keep_committing())
    for number, one in enumerate(segments, start=1):
        await asyncio.sleep(0)
        assert diary.commits == 0
        keeper.stored([one], last=last and number == len(segments))
    await asyncio.wait_for(diary.told.wait(), 60)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    keeper.close()
    return diary.acknowledged


async def test_segments_wait_for_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    some = [segment(number) for number in range(5)]
    assert await committed(some) == [[0, 1, 2, 3, 4]]
    monkeypatch.setattr(keeper_module, "IDLE_COMMIT_SECONDS", FOR_EVER)
    assert await committed(some) == [[0, 1, 2, 3, 4]]


async def test_the_last_segment_does_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("COMMIT_SECONDS", "IDLE_COMMIT_SECONDS"):
        monkeypatch.setattr(keeper_module, name, FOR_EVER)
    assert await committed([segment(1), segment(2)], last=True) == [[1, 2]]


async def test_much_does_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("COMMIT_SECONDS", "IDLE_COMMIT_SECONDS"):
        monkeypatch.setattr(keeper_module, name, FOR_EVER)
    half = COMMIT_SIZE // 2
    assert await committed([segment(1, half), segment(2, half)]) == [[1, 2]]
