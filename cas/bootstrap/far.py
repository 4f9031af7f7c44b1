"""What a host is like, as `probe.sh` finds it: its Pythons, and where something may be put.

The answer may come after whatever the login shell prints, and from any host, so that what cannot
be understood is passed over.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from importlib import resources

from cas.bootstrap.elf import Machine
from cas.errors import SourceError

LEAST = (3, 10)
ROOM = 64 * 2**20  # bytes; what is put there takes about 10 MB, and for a moment half as much more
NO_MACHINE = Machine(0, 0)
BEGIN, END = "cas-probe begin", "cas-probe end"
ANSWER_LIMIT = 2**20

# Of Python's own modules those that the agent needs and some distributions have in other packages.
MODULES = ("asyncio", "bz2", "ctypes", "hashlib", "json", "lzma", "mmap", "tarfile", "zlib")
PREFIXES = (
    "/usr/bin /usr/local/bin /opt/*/bin /opt/*/*/bin $HOME/.local/bin $HOME/bin $HOME/*conda*/bin "
    "$HOME/*conda*/envs/*/bin $HOME/*forge*/bin $HOME/.pyenv/versions/*/bin "
    "$HOME/.local/share/uv/python/*/bin $HOME/.asdf/installs/python/*/bin"
)


@dataclass(frozen=True, slots=True)
class FarPython:
    """A Python of the host. Of one that is too old nothing is known but its path and version."""

    path: str
    version: tuple[int, ...]
    kind: str = ""  # "cpython"
    machine: Machine = NO_MACHINE
    libc: str = ""  # "glibc 2.36", "musl"
    suffixes: tuple[str, ...] = ()  # of compiled modules that it loads
    missing: tuple[str, ...] = ()  # of MODULES

    @property
    def dotted(self) -> str:
        """Its version as people write it."""
        return ".".join(map(str, self.version))

    @property
    def minor(self) -> tuple[int, ...]:
        """What compiled modules depend on."""
        return self.version[:2]

    @property
    def glibc(self) -> int | None:
        """The second number of glibc's version; None for another C library."""
        name, _, version = self.libc.partition(" ")
        major, _, minor = version.partition(".")
        usable = name == "glibc" and major == "2" and minor.isdecimal()
        return int(minor) if usable else None


@dataclass(frozen=True, slots=True)
class Directory:
    """A place for the agent. `state` is "writable", "noexec" or "closed"; `held`: an agent of this
    version has been put there before."""

    path: str
    state: str
    free: int
    held: bool


@dataclass(frozen=True, slots=True)
class FarEnd:
    """What there is. `installed` is the `cas` in the PATH, or empty."""

    system: str
    machine: str
    installed: str
    pythons: tuple[FarPython, ...]
    directories: tuple[Directory, ...]


def probe_script(version: str, prefixes: str = PREFIXES) -> bytes:
    """What a POSIX shell is to read on its standard input."""
    script = resources.files("cas.bootstrap").joinpath("probe.sh").read_text("utf-8")
    given = f'version={version}\nmodules="{" ".join(MODULES)}"\nprefixes="{prefixes}"\n'
    return (given + script).encode()


def parse_probe(answer: bytes, name: str) -> FarEnd:
    """Read the answer of the host called `name`. Raises SourceError for one that is none."""
    _, began, rest = answer.decode("utf-8", "replace").partition(BEGIN + "\n")
    body, ended, _ = rest.partition(END)
    if not began or not ended:
        raise SourceError(
            "the host does not run a shell for us",
            where=name,
            advice="see whether `ssh HOST sh` works; a key that is confined to one command cannot "
            "put anything there",
        )
    rows = [line.split("\t") for line in body.splitlines()]
    facts = {row[0]: row[1] for row in rows if len(row) == 2}
    return FarEnd(
        facts.get("system", ""),
        facts.get("machine", ""),
        facts.get("installed", ""),
        tuple(dict.fromkeys(_pythons(rows))),
        tuple(dict.fromkeys(_directories(rows))),
    )


def _pythons(rows: Iterable[list[str]]) -> Iterable[FarPython]:
    seen = set()
    for name, *row in rows:
        if name != "python" or len(row) not in (2, 8):
            continue
        path, version = row[0], _numbers(row[1])
        place = (path.rpartition("/")[0], version)
        if not path.startswith("/") or not path.isprintable() or not version or place in seen:
            continue
        seen.add(place)
        if len(row) == 2:
            yield FarPython(path, version)
        elif row[3].isdecimal() and row[4].isdecimal():
            suffixes = tuple(row[6].split())
            libc = row[5] or ("musl" if "musl" in row[6] else "")
            machine = Machine(int(row[3]), int(row[4]))
            missing = tuple(row[7].split())
            yield FarPython(path, version, row[2], machine, libc, suffixes, missing)


def _numbers(text: str) -> tuple[int, ...]:
    parts = text.split(".")
    return tuple(map(int, parts)) if all(part.isdecimal() for part in parts) else ()


def _directories(rows: Iterable[list[str]]) -> Iterable[Directory]:
    for row in rows:
        if row[0] == "directory" and len(row) == 5:
            path, free = row[1], int(row[3]) * 1024 if row[3].isdecimal() else 0
            if path.startswith("/") and path.isprintable():
                yield Directory(path, row[2], free, bool(row[4]))
