"""Which Python of a host the agent can be made for; or what to fetch so that it can be made.

What is fetched are wheels, by pip, on a machine that reaches a package index: the host need not.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence

from cas.bootstrap.far import FarPython
from cas.bootstrap.kit import Gathered, Lack, gather
from cas.bootstrap.needs import OURS
from cas.bootstrap.origins import Wheels
from cas.errors import SourceError

_GLIBC_TAGS = (17, 28, 31, 34)  # what the packages' wheels are built for
_MUSL_TAGS = ("musllinux_1_1", "musllinux_1_2")


def first_that_works(
    pythons: Sequence[FarPython], wheels: Wheels, name: str
) -> tuple[FarPython, Gathered]:
    """The first Python of the host called `name` that everything is here for, else the first that
    an agent can be made for at all. Raises SourceError, which says what is missing for the first,
    and FormatError for a bad wheel."""
    tried = [(python, gather(python, wheels)) for python in pythons]
    complete = [(python, gathered) for python, gathered in tried if gathered.complete]
    for python, gathered in complete:
        if not gathered.lacks:
            return python, gathered
    if complete:
        return complete[0]
    python, gathered = tried[0]
    raise lacking(python, gathered.lacks, name)


def lacking(python: FarPython, lacks: Iterable[Lack], name: str) -> SourceError:
    """What is missing for an agent there, and the commands that fetch it."""
    needed = [lack for lack in lacks if not lack.optional]
    reasons = "; ".join(f"{lack.name}: {lack.why}" for lack in needed)
    lines = [
        f"an agent for {describe(python)} cannot be made of what is installed here: {reasons}",
        "get what is missing where there is a package index, and name the directory by --wheels:",
        *commands(python, lacks),
    ]
    return SourceError("\n".join(lines), where=name)


def commands(python: FarPython, lacks: Iterable[Lack]) -> list[str]:
    """The commands that fill a directory `wheels` with what is missing; those that can be done
    without last, each by itself, since there may be no wheel of it."""
    found = []
    others = [lack for lack in lacks if lack.name != OURS]
    if needed := [lack for lack in others if not lack.optional]:
        found.append(_download(python, needed))
    if any(lack.name == OURS for lack in lacks):
        found.append(_build(python))
    return found + [_download(python, [lack]) for lack in others if lack.optional]


def _download(python: FarPython, lacks: Iterable[Lack]) -> str:
    words = ["python3", "-m", "pip", "download", "--only-binary=:all:", "--no-deps"]
    words += ["--implementation", "cp", "--python-version", ".".join(map(str, python.minor))]
    for tag in _platforms(python):
        words += ["--platform", tag]
    return shlex.join([*words, "-d", "wheels", *(f"{each.name}=={each.version}" for each in lacks)])


def _platforms(python: FarPython) -> list[str]:
    machine = python.machine
    if python.glibc is None:
        return [f"{tag}_{machine}" for tag in _MUSL_TAGS]
    tags = [f"manylinux_2_{minor}_{machine}" for minor in _GLIBC_TAGS if minor <= python.glibc]
    return [f"manylinux2014_{machine}", *tags]


def _build(python: FarPython) -> str:
    """In a checkout of cas: its own compiled part, for whatever machine and old C libraries."""
    kind = "gnu" if python.glibc is not None else "musl"
    compatible = "manylinux2014" if kind == "gnu" else "musllinux_1_2"
    target = f"{python.machine}-unknown-linux-{kind}"
    words = ["maturin", "build", "--release", "--zig", "--target", target]
    build = shlex.join([*words, "--compatibility", compatible, "--out", "wheels"])
    return (
        f"rustup target add {target} && {build}"
        "   # in cas's source tree, after `pip install maturin ziglang`"
    )


def describe(python: FarPython) -> str:
    """A Python for people: `Python 3.11.2 (x86_64, glibc 2.36)`."""
    libc = python.libc or "another C library"
    return f"Python {python.dotted} ({python.machine}, {libc})"
