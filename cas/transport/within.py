"""Waiting for something no longer than so many seconds.

`asyncio.wait_for` does so too, but before Python 3.12 it forgets that it was cancelled when that
happens as the work gets done: whoever presses Ctrl-C at that moment would be overheard.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

T = TypeVar("T")


async def within(work: Awaitable[T], seconds: float) -> T:
    """What comes of `work`. Raises asyncio.TimeoutError when it is not done after `seconds`; then,
    and when this is cancelled, it is cancelled and waited for. What it raises is raised."""
    task = asyncio.ensure_future(work)
    try:
        await asyncio.wait((task,), timeout=seconds)
    except asyncio.CancelledError:
        await _stop(task)
        raise
    if not task.done():
        await _stop(task)
        if task.cancelled():
            raise asyncio.TimeoutError
    return task.result()


async def _stop(task: asyncio.Future[T]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
