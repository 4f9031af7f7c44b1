"""What an end says of itself: in the agent's HELLO, and to `cas doctor` on both ends.

Each fact is a name and a text for people; `cli` judges them. Gathering them takes well under a
millisecond and reads nothing but /proc, so that every lane may send them.
"""

from __future__ import annotations

import os
import platform
import pwd
from pathlib import Path

from cas import _native
from cas.chunker import is_pure_python

TCP = Path("/proc/sys/net/ipv4")
TEXT_LIMIT = 200

COMPILED, PURE_PYTHON = "compiled", "pure Python"
HARDWARE, SOFTWARE = "in hardware", "in software"
UNKNOWN = "unknown"


def agent_facts() -> list[tuple[str, str]]:
    """(name, text) pairs that describe this machine and this process, names in a fixed order."""
    system = os.uname()  # not platform.platform(), which runs a program and reads the interpreter
    facts = {
        "host": system.nodename,
        "user": _user(),
        "python": platform.python_version(),
        "platform": f"{system.sysname} {system.release}",
        "machine": system.machine,
        "cpus": str(len(os.sched_getaffinity(0))),
        "load": _load(),
        "chunking": PURE_PYTHON if is_pure_python() else COMPILED,
        "sha256": _sha256(),
        "congestion control": _setting("tcp_congestion_control"),
        "congestion controls available": _setting("tcp_available_congestion_control"),
    }
    return [(name, text[:TEXT_LIMIT]) for name, text in facts.items()]


def _user() -> str:
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:  # in a container, say
        return str(os.geteuid())


def _load() -> str:
    try:
        return f"{os.getloadavg()[0]:.2f}"
    except OSError:
        return UNKNOWN


def _sha256() -> str:
    features = _native.cpu_features()
    present = [features[name] for name in ("sha_ni", "sha2") if name in features]
    return (HARDWARE if any(present) else SOFTWARE) if present else UNKNOWN


def _setting(name: str) -> str:
    try:
        return (TCP / name).read_text("ascii", "replace").strip() or UNKNOWN
    except OSError:
        return UNKNOWN
