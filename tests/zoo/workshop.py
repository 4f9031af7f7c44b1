"""What a maker of streams has at hand: the plain bytes, the tools, a bench to work on."""

from __future__ import annotations

import os
import shutil
import tarfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.zoo.tools import Encoder, Tool, Toolbox, run

CLOCK = 1_760_000_000  # the time that everything made here bears
FIXED = {"SOURCE_DATE_EPOCH": str(CLOCK), "LC_ALL": "C", "TZ": "UTC"}


@dataclass(frozen=True, slots=True)
class Choice:
    """Which of the plain files (`whole` or `part` of it) to encode, in each size of zoo."""

    small: str
    large: str


USUAL = Choice("whole", "whole")
VARIANT = Choice("part", "whole")  # one setting of many: a shorter stream shows it too
SLOW = Choice("whole", "part")  # minutes for the large one
BRIEF = Choice("part", "part")


@dataclass(frozen=True, slots=True)
class Made:
    """A stream just made, at `path`, with the command that was given for it."""

    name: str
    path: Path
    container: str
    encoder: Encoder
    command: str
    plain: str = ""


@dataclass(frozen=True, slots=True)
class Workshop:
    """`plains` has the files by name; `bench` is an empty directory for each job's own use."""

    size: str
    plains: dict[str, Path]
    cache: Path
    bench: Path
    tools: Toolbox

    def get(self, tool: Tool) -> Encoder:
        """Raises Unavailable."""
        return self.tools.get(tool)

    def plain(self, choice: Choice) -> tuple[str, Path]:
        """The name and place of what to encode."""
        name = choice.small if self.size == "small" else choice.large
        return name, self.plains[name]

    def tree(self, name: str) -> Path:
        """The files of the plain tar `name`, as many as are whole, laid out in the bench."""
        folder = self.bench / "tree"
        if not folder.exists():
            _lay_out(self.plains["whole"], self.plains[name].stat().st_size, folder)
        return folder

    def clear(self) -> None:
        """An empty bench."""
        shutil.rmtree(self.bench, ignore_errors=True)
        self.bench.mkdir(parents=True)

    def do(self, *command: str | Path, cwd: Path | None = None, stdin: Path | None = None) -> Path:
        """Run a command in the bench; where its output went. Raises Unavailable."""
        said = self.bench / "stdout"
        run(command, cwd=cwd or self.bench, env=FIXED, stdin=stdin, stdout=said)
        return said


@dataclass(frozen=True, slots=True)
class Job:
    """The names of the streams that `make` gives. It raises Unavailable where it cannot."""

    names: tuple[str, ...]
    make: Callable[[Workshop], Iterator[Made]]


def job(*names: str) -> Callable[[Callable[[Workshop], Iterator[Made]]], Job]:
    """Makes a Job of a function."""
    return lambda make: Job(names, make)


@dataclass(frozen=True, slots=True)
class Filter:
    """An encoder that writes the stream of its standard input on its standard output."""

    name: str
    tool: Tool
    arguments: str
    container: str = "gzip"
    choice: Choice = USUAL

    def job(self) -> Job:
        """To run it once."""
        return Job((self.name,), self._make)

    def _make(self, shop: Workshop) -> Iterator[Made]:
        encoder = shop.get(self.tool)
        name, plain = shop.plain(self.choice)
        words = self.arguments.split()
        path = shop.do(*encoder.command, *words, stdin=plain)
        command = f"{' '.join([encoder.shown, *words])} <{name}"
        yield Made(self.name, path, self.container, encoder, command, name)


def _lay_out(tar: Path, limit: int, folder: Path) -> None:
    """The files of `tar` that end before `limit`, all of one time."""
    folder.mkdir()
    with tarfile.open(tar) as archive:
        for member in archive:
            if member.offset_data + member.size > limit:
                break
            if member.isreg():
                path = folder / member.name
                path.parent.mkdir(parents=True, exist_ok=True)
                with archive.extractfile(member) as source, path.open("wb") as file:  # type: ignore[union-attr]
                    shutil.copyfileobj(source, file)
    for path in [folder, *folder.rglob("*")]:
        os.utime(path, (CLOCK, CLOCK))
