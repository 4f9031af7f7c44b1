"""What the benchmarks on links share: sites in directories of their own, several at a time."""

from __future__ import annotations

import itertools
import json
import os
import random
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from tests.bench.verdict import MIB
from tests.link.site import Site, bad_site

T = TypeVar("T")
Facts = dict[str, float]


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of link, in badlink.py's terms, and how many bytes to try it with: on a bad one more
    than it carries in three minutes."""

    name: str
    options: Mapping[str, float | str]
    plenty: int = 0


# Loss is of each direction, the round trip in ms, rates in bytes a second, the queue in ms.
LOSSY = Kind("5 %, 200 ms, 2.5 MB/s", {"loss": 5, "rtt": 200, "rate": "2.5M"}, 150_000_000)
NARROW = Kind("1 %, 200 ms, 400 kB/s", {"loss": 1, "rtt": 200, "rate": "400K"}, 80_000_000)
POLICED = Kind(
    "1 %, 200 ms, 80 kB/s, 20 ms queue",
    {"loss": 1, "rtt": 200, "rate": "80K", "queue": 20},
    20_000_000,
)
WORST = Kind("10 %, 300 ms, 2.5 MB/s", {"loss": 10, "rtt": 300, "rate": "2.5M"}, 60_000_000)


class Keep:
    """Results of contestants that need not run again, in a file; without one, only in memory."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._guard = threading.Lock()
        self._facts: dict[str, Facts] = {}
        if path is not None and path.exists():
            self._facts = json.loads(path.read_text())

    def get(self, name: str, measure: Callable[[], Facts]) -> Facts:
        """The facts kept under `name`, measured if there are none."""
        with self._guard:
            known = self._facts.get(name)
        if known is not None:
            return known
        facts = measure()
        with self._guard:
            self._facts[name] = facts
            if self._path is not None:
                self._path.write_text(json.dumps(self._facts, indent=1, sort_keys=True) + "\n")
        return facts


@dataclass(frozen=True, slots=True)
class LinkSetting:
    """What a benchmark is given: an empty directory, the small corpus, what is kept of peers,
    further options for every `cas sync` that chooses nothing itself, whether to be short; a word in
    the names of the links that count, and how often cas is measured on each."""

    work: Path
    corpus: Path
    keep: Keep
    options: Sequence[str] = ()
    quick: bool = False
    link: str = ""
    times: int = 1
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    @contextmanager
    def site(self, kind: Kind, *, sshd: Sequence[str] = ()) -> Iterator[Site]:
        """A site of its own on a link of this kind."""
        job = self.work / f"site{next(self._numbers)}"
        with bad_site(job, sshd=sshd, **kind.options) as site:
            yield site

    def random_data(self, size: int) -> Path:
        """A directory with one file of `size` bytes that do not compress, made once."""
        directory = self.work / f"random{size}"
        if not directory.exists():
            directory.mkdir()
            write_random(directory / "data", size, seed=size)
        return directory


def write_random(path: Path, size: int, seed: int) -> None:
    """Write `size` random bytes, the same each time, to `path` and to the disk."""
    source = random.Random(seed)
    with path.open("wb") as file:
        for at in range(0, size, MIB):
            file.write(source.randbytes(min(MIB, size - at)))
        file.flush()
        os.fsync(file.fileno())


def side_by_side(jobs: Mapping[str, Callable[[], T]], at_once: int) -> dict[str, T]:
    """Run all, at most so many at a time, each on a link of its own; the results by name. What one
    raises is raised when all have ended."""
    with ThreadPoolExecutor(at_once) as pool:
        futures = {name: pool.submit(job) for name, job in jobs.items()}
    return {name: future.result() for name, future in futures.items()}
