"""A file descriptor that several threads use, and that closes itself when the last lets go.

Caches of open packs and directories drop what was not used lately, while another thread may still
be in a system call on it. Closing at that moment would hand the number to another file.
"""

from __future__ import annotations

import os
from collections.abc import Callable


class Descriptor:
    """Owns `fd`; closed when nothing refers to this object any more."""

    __slots__ = ("fd",)

    def __init__(self, fd: int) -> None:
        self.fd = fd

    def __del__(self, _close: Callable[[int], None] = os.close) -> None:
        _close(self.fd)
