"""Many threads may use a memory map at once; whoever changes the map does it alone.

LMDB moves its map when it grows, and does not look whether somebody still reads the old one. So
every transaction passes through the gate as one of many, and a change of the map waits until all
have left, while new ones wait outside. A thread inside must not enter again: that would wait for
ever when somebody waits to be alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Condition


class Gate:
    """Lets many threads through together, or one alone."""

    def __init__(self) -> None:
        self._changed = Condition()
        self._inside = 0
        self._waiting_alone = 0

    @contextmanager
    def together(self) -> Iterator[None]:
        """Be inside with others."""
        with self._changed:
            self._changed.wait_for(lambda: not self._waiting_alone)
            self._inside += 1
        try:
            yield
        finally:
            with self._changed:
                self._inside -= 1
                self._changed.notify_all()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Be inside while nobody else is."""
        with self._changed:
            self._waiting_alone += 1
            try:
                self._changed.wait_for(lambda: not self._inside)
                # The lock is kept: nobody can enter before the body is done.
                yield
            finally:
                self._waiting_alone -= 1
                self._changed.notify_all()
