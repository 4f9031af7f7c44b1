"""Waiting no longer than so many seconds, without forgetting that somebody has cancelled it."""

from __future__ import annotations

import asyncio

import pytest

from cas.transport.within import within


async def _soon(result: int) -> int:
    await asyncio.sleep(0)
    return result


async def _never(log: list[str]) -> None:
    try:
        await asyncio.Event().wait()
    finally:
        log.append("ended")


def test_what_is_done_in_time() -> None:
    assert 7 == asyncio.run(within(_soon(7), 60))


def test_what_it_raises() -> None:
    async def fails() -> None:
        raise OSError("no route")

    with pytest.raises(OSError, match="no route"):
        asyncio.run(within(fails(), 60))


def test_what_takes_too_long_is_ended_before_it_is_said() -> None:
    log: list[str] = []
    with pytest.raises(asyncio.TimeoutError):
        asyncio.run(within(_never(log), 0))
    assert ["ended"] == log


def test_a_result_that_comes_as_time_is_up_is_not_lost() -> None:
    async def stubborn() -> int:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return 7
        return 0

    assert 7 == asyncio.run(within(stubborn(), 0.01))


def test_a_cancel_ends_the_work() -> None:
    async def cancelled(log: list[str]) -> None:
        waiting = asyncio.ensure_future(within(_never(log), 60))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        waiting.cancel()
        await waiting

    log: list[str] = []
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(cancelled(log))
    assert ["ended"] == log


def test_a_cancel_as_the_work_gets_done_is_not_forgotten() -> None:
    async def cancelled() -> None:
        work = asyncio.get_running_loop().create_future()
        waiting = asyncio.ensure_future(within(work, 60))
        await asyncio.sleep(0)
        work.set_result(None)
        waiting.cancel()
        await waiting

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(cancelled())
