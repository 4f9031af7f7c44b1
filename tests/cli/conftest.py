"""A source with odd names, synced once into a store by the real command; and a way to run it."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 300  # a command that takes longer hangs

PLAN = """\
store = "store"

[source.here]

[[tier]]
name = "first"
source = "here"
paths = ["{source}/first"]

[[tier]]
name = "second"
source = "here"
paths = ["{source}/second"]

[sets]
both = ["first", "second"]
"""


@dataclass(frozen=True, slots=True)
class Place:
    """A directory with a plan, and the tree its tiers are read from."""

    path: Path
    source: Path

    @property
    def store(self) -> Path:
        """Where the plan's store is."""
        return self.path / "store"

    def environment(self, **more: str) -> dict[str, str]:
        """Ours without what would change a command, and with a cache of its own."""
        ours = {
            k: v
            for k, v in os.environ.items()
            if not k.startswith(("CAS_", "XDG_", "NO_COL", "PYTHON"))
        }
        cache = str(self.path / "cache")
        return {**ours, "PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": cache, **more}

    def cas(
        self, *arguments: str | Path, environment: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[bytes]:
        """Run `cas` there."""
        return subprocess.run(
            command_line(*arguments),
            cwd=self.path,
            env=self.environment(**(environment or {})),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=SECONDS,
        )

    def start(self, *arguments: str | Path) -> "subprocess.Popen[bytes]":
        """Start `cas` there; its output comes through pipes."""
        return subprocess.Popen(
            command_line(*arguments),
            cwd=self.path,
            env=self.environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )


def command_line(*arguments: str | Path) -> list[str]:
    """The words that run this checkout's `cas`."""
    return [sys.executable, "-m", "cli", *map(str, arguments)]


def make_source(root: Path) -> None:
    """Two trees that share some content, with names and kinds that commands must cope with."""
    first, second = root / "first", root / "second"
    for directory in (first, second):
        directory.mkdir(parents=True)
    blob = os.urandom(1_000_000)
    (first / "blob").write_bytes(blob)
    (first / "empty").touch()
    (first / "größe.txt").write_text("grün\n")
    (Path(os.fsdecode(os.fsencode(first) + b"/latin-\xe4"))).write_bytes(b"1")
    (first / "two\nlines").write_bytes(b"2")
    (first / "link").symlink_to("../elsewhere")
    os.link(first / "blob", first / "hard")
    os.mkfifo(first / "pipe")
    (second / "again").write_bytes(blob)
    (second / "more").write_bytes(os.urandom(300_000))
    for path in [*first.iterdir(), *second.iterdir()]:
        os.utime(path, ns=(10**18, 10**18), follow_symlinks=False)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """A plan and a source, nothing fetched yet."""
    return make_place(tmp_path)


@pytest.fixture(scope="session")
def one_for_all(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """What `synced` gives to each test."""
    made = make_place(tmp_path_factory.mktemp("synced"))
    done = made.cas("sync")
    assert done.returncode == 0, done.stderr.decode()
    return made


@pytest.fixture
def synced(one_for_all: Place) -> Iterator[Place]:
    """A place where everything was fetched; a test that changes it fails, as it spoils others."""
    before = _state(one_for_all)
    yield one_for_all
    assert before == _state(one_for_all)


def _state(place: Place) -> dict[str, tuple[int, int]]:
    """Size and time of modification of all that a place has but its cache; LMDB's table of readers
    is rewritten by whoever reads."""
    found = {}
    for top in (place.source, place.store, place.path / "plan.toml"):
        for path in (top, *top.rglob("*")):
            status = path.lstat()
            if path.name != "lock.mdb":
                found[str(path)] = (status.st_size, status.st_mtime_ns)
    return found


def make_place(path: Path) -> Place:
    """A plan and a source below `path`."""
    source = path / "source"
    make_source(source)
    (path / "plan.toml").write_text(PLAN.format(source=source))
    return Place(path, source)


@pytest.fixture
def slow_agent(tmp_path: Path) -> Callable[[int], str]:
    """The plan's `agent` line for one that sends only so many bytes each tenth of a second."""

    def make(size: int) -> str:
        script = tmp_path / "slow.py"
        script.write_text(SLOW.format(argv=command_line("serve"), size=size))
        return f"{sys.executable} {script}"

    return make


SLOW = """\
import os, subprocess, sys, time

with subprocess.Popen({argv!r}, stdout=subprocess.PIPE) as agent:
    while data := os.read(agent.stdout.fileno(), {size}):
        os.write(1, data)
        time.sleep(0.1)
"""
