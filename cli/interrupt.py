"""Running the engine's coroutines so that Ctrl-C, `kill` and a closed terminal end them in order.

The first signal cancels the work, which then writes down what it has; a second Ctrl-C ends the
process at once, which is safe too (what was acknowledged is durable) and only loses some seconds.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def run(work: Coroutine[Any, Any, T], kept: str = "") -> T:
    """What `work` returns. Raises KeyboardInterrupt, with `kept` for the user, if a signal ended
    it, and whatever `work` raises."""
    interrupted = False

    async def guarded() -> T:
        loop = asyncio.get_running_loop()
        task = asyncio.ensure_future(work)

        def end(number: int) -> None:
            nonlocal interrupted
            interrupted = True
            task.cancel()
            if number == signal.SIGINT:
                loop.remove_signal_handler(number)

        for number in SIGNALS:
            loop.add_signal_handler(number, end, number)
        try:
            return await task
        finally:
            for number in SIGNALS:
                loop.remove_signal_handler(number)

    try:
        return asyncio.run(guarded())
    except asyncio.CancelledError:
        if not interrupted:
            raise
        raise KeyboardInterrupt(*([kept] if kept else [])) from None
