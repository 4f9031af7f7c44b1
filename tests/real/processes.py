"""Ending exactly the processes that a test's server started, by their ids.

A session that sshd began may have left daemons behind: no child list and no process group knows
them. Two things find them: the tree below the server's own process, and a variable with a random
value that the server was told to give to every session, which their children inherit.
"""

import contextlib
import os
import signal
import time
from collections.abc import Iterable


def descendants(root: int) -> list[int]:
    """The processes below root, its children before theirs; not root itself."""
    children: dict[int, list[int]] = {}
    for pid in _all_pids():
        parent = _parent(pid)
        if parent is not None:
            children.setdefault(parent, []).append(pid)
    found = list(children.get(root, []))
    for pid in found:
        found.extend(children.get(pid, []))
    return found


def marked(variable: str, value: str) -> list[int]:
    """The processes started with this variable of the environment set to value."""
    wanted = f"{variable}={value}".encode()
    found = []
    for pid in _all_pids():
        with contextlib.suppress(OSError), open(f"/proc/{pid}/environ", "rb") as file:
            if wanted in file.read().split(b"\0"):
                found.append(pid)
    return found


def owned(uid: int) -> list[int]:
    """The processes of a user, zombies left out."""
    found = []
    for pid in _all_pids():
        with contextlib.suppress(OSError):
            if os.stat(f"/proc/{pid}").st_uid == uid and _parent(pid) is not None:
                found.append(pid)
    return found


def kill(pids: Iterable[int]) -> None:
    """SIGKILL to each that is still there."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def wait_until_gone(pids: Iterable[int], seconds: float = 60) -> list[int]:
    """Those still running after at most so many seconds: [] unless something is wrong."""
    deadline = time.monotonic() + seconds
    left = [pid for pid in pids if _parent(pid) is not None]
    while left and time.monotonic() < deadline:
        time.sleep(0.02)
        left = [pid for pid in left if _parent(pid) is not None]
    return left


def _all_pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def _parent(pid: int) -> int | None:
    """Its parent's id; None once it has ended, even if nobody has waited for it yet."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            state, parent = file.read().rpartition(b")")[2].split()[:2]
    except OSError:
        return None
    return None if state in b"ZX" else int(parent)
