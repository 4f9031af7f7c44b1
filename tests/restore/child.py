"""Does something in a child process, where it can give up rights or count its own memory."""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable


def in_child(work: Callable[[], str]) -> str:
    """What `work` returns in a child process. Raises AssertionError with what it raised there."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            said = "+" + work()
        except BaseException:  # noqa: BLE001  # told to the parent
            said = "-" + traceback.format_exc()[-30_000:]
        os.write(write, said.encode("utf-8", "replace"))
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as told:
        said = told.read()
    os.waitpid(child, 0)
    assert said.startswith("+"), said
    return said[1:]
