"""A few threads that work off tasks, never far behind whoever hands them out."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType

WAITING = 4  # tasks that wait for each thread, while the next ones are being found


class Crew:
    """Calls what is handed to `give`, in `threads` threads. As a context: on a normal end all is
    done; after an exception, what is not begun is dropped and `stop` is set, so that a task may
    end early."""

    def __init__(self, threads: int) -> None:
        self.stop = threading.Event()
        self._places = threads * (1 + WAITING)
        self._free = threading.Semaphore(self._places)
        self._pool = ThreadPoolExecutor(threads, "restore")
        self._failure: BaseException | None = None

    def give(self, task: Callable[[], None]) -> None:
        """Have `task` done; waits while too much is waiting. Raises what a task raised before."""
        self._check()
        self._free.acquire()
        self._pool.submit(self._run, task)

    def drain(self) -> None:
        """Wait until all is done; raises what a task raised."""
        for _ in range(self._places):
            self._free.acquire()
        self._free.release(self._places)
        self._check()

    def __enter__(self) -> Crew:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is not None:
            self.stop.set()
        self._pool.shutdown(cancel_futures=error is not None)

    def _run(self, task: Callable[[], None]) -> None:
        try:
            if self._failure is None:
                task()
        except BaseException as error:  # noqa: BLE001  # raised again by whoever hands out
            self._failure = error
        finally:
            self._free.release()

    def _check(self) -> None:
        if self._failure is not None:
            raise self._failure
