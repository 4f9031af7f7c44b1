"""Keeps a process small that takes archives apart.

glibc keeps what was freed for the next who asks, each thread's apart, and asks the kernel for large
pieces by themselves only up to a size that grows with every one that is given back. With spans and
segments of some MiB in several threads that comes to much more than what is in use. So
threads share two arenas, and from the first large archive on large pieces go back to the kernel at
once. Plain files are spared that: having a piece cleared each time costs a scan some of its speed.
"""

from __future__ import annotations

import ctypes
from functools import lru_cache

# The parameters' numbers in malloc.h.
_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8
ARENAS = 2
LARGE = 128 * 1024  # bytes


def share_arenas() -> None:
    """Threads that begin from now on share a few; elsewhere than on glibc nothing is done."""
    _set({_ARENA_MAX: ARENAS})


@lru_cache(1)
def give_back_large_pieces() -> None:
    """From now on; elsewhere than on glibc nothing is done."""
    _set({_MMAP_THRESHOLD: LARGE, _TRIM_THRESHOLD: LARGE})


def _set(options: dict[int, int]) -> None:
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    for option, value in options.items():
        if mallopt is not None:
            mallopt(option, value)
