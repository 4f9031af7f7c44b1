"""Which Python of a host is to run the agent, and which directory is to hold it; or what it lacks.

A Python of our own version comes first, since what is installed here fits it; then the newest. The
host's order of directories is kept, one that holds an agent of this version coming first.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable

from cas.bootstrap.far import LEAST, ROOM, Directory, FarEnd, FarPython
from cas.errors import SourceError

_LEAST = ".".join(map(str, LEAST))


def usable_pythons(far: FarEnd, name: str) -> list[FarPython]:
    """Those that could run the agent, the best first. Raises SourceError if there is none."""
    if far.system != "Linux":
        raise SourceError(
            f"cas runs on Linux, and this is {far.system or 'something else'}", where=name
        )
    new = [python for python in far.pythons if python.version >= LEAST and python.kind]
    whole = [python for python in new if not python.missing]
    if not whole:
        raise _no_python(new, far, name)
    ours = sys.version_info[:2]
    return sorted(whole, key=lambda python: (python.minor == ours, python.version), reverse=True)


def _no_python(new: list[FarPython], far: FarEnd, name: str) -> SourceError:
    advice = (
        "without root, `uv python install 3.12`, Miniforge or a copy of python-build-standalone, "
        "unpacked in the home directory, will do"
    )
    if new:
        lacks = "; ".join(f"{p.path} has no {', '.join(p.missing)}" for p in new[:3])
        return SourceError(
            f"no whole Python >= {_LEAST} was found on {name}: {lacks}",
            advice="on Debian and Ubuntu they are in the package libpython3-stdlib; " + advice,
        )
    old = ", ".join(f"{p.dotted} at {p.path}" for p in far.pythons[:4])
    found = f"; found {old}" if old else ""
    return SourceError(f"no Python >= {_LEAST} was found on {name}{found}", advice=advice)


def usable_directory(far: FarEnd, name: str) -> Directory:
    """Where to put the agent. Raises SourceError if it can be nowhere."""
    usable = [place for place in far.directories if place.state == "writable"]
    held = [place for place in usable if place.held]
    roomy = [place for place in usable if place.free >= ROOM]
    for place in (*held, *roomy):
        return place
    raise SourceError(
        f"no directory on {name} can hold the agent: {_refusals(far.directories)}",
        advice=f"make {ROOM // 2**20} MiB of room in one of them, or set XDG_CACHE_HOME there to a "
        "directory that is not mounted noexec",
    )


def _refusals(directories: Iterable[Directory]) -> str:
    reasons = {"noexec": "mounted noexec", "closed": "not writable", "writable": "full"}
    found = [f"{d.path} ({reasons.get(d.state, d.state)})" for d in directories]
    return ", ".join(found) or "none was found"
