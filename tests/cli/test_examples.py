"""What docs/cli.md shows is what the commands print.

A block of the manual that begins with ```console has commands behind `$ ` and what they print. All
of them are run in the manual's order, on the small host of `example_place.py`. What differs from
run to run (times, ids, what the wire carried) is replaced on both sides by `comparable` before they
are compared. `python -m tests.cli.test_examples` writes into the manual what is printed now.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from cli.main import COMMANDS
from tests.cli.conftest import ROOT, SECONDS, Place
from tests.cli.example_place import change, make_example_place

MANUAL = ROOT / "docs" / "cli.md"
BLOCK = re.compile(r"(?<=^```console\n)(.*?)(?=^```$)", re.MULTILINE | re.DOTALL)

# What these print is of the machine, of a host, or of a program at the other end.
WITHOUT = {"doctor", "bootstrap", "serve"}
ALONE = {"adopt"}  # run where nothing is held yet

VARIABLE = (
    (r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", "<time>"),
    (r"\b[0-9a-f]{8,64}\b", "<id>"),
    (r"\b(root|me|\w+)/(root|me|\w+)(?= +(-|\d+) <time>)", "<owner>"),
    (r"\d[\d.]* [kMG]?B/s", "<rate>"),
    (r"cas \d+\.\d+\.\d+", "<version>"),
    (r"(\.tar\.zst, |pack \()\d[\d.]* [kMG]?B", r"\1<size>"),  # by the compressor's version
)
VARIABLE_COLUMNS = (
    *("wire", "time", "goodput", "wire in", "wire out"),
    *("give or take", "all by then", "saves", "was"),
)
LOG_LINE = re.compile(r"^\d\d:\d\d:\d\d .*\n", re.MULTILINE)  # only where there is no terminal


@dataclass(frozen=True, slots=True)
class Block:
    """A block of the manual: the section it is in, and its text."""

    command: str
    text: str

    @property
    def lines(self) -> list[str]:
        """The command lines."""
        return re.findall(r"^\$ (.*)$", self.text, re.MULTILINE)


def blocks(manual: str) -> list[Block]:
    """The blocks of the manual, in order."""
    sections = re.split(r"^## cas (\S+)\n", manual, flags=re.MULTILINE)
    pairs = zip(sections[1::2], sections[2::2], strict=True)
    return [Block(name, text) for name, section in pairs for text in BLOCK.findall(section)]


def comparable(text: str) -> str:
    """`text` without what differs from run to run, and without what that does to its columns."""
    lines: list[str] = []
    ends: list[int] = []  # where cells that vary end, those at the right first
    for line in text.split("\n"):
        titles = [re.search(rf"(?<!\S ){title}(?=  |$)", line) for title in VARIABLE_COLUMNS]
        if any(titles):
            ends = sorted((title.end() for title in titles if title), reverse=True)
        elif "  " not in line:
            ends = []
        lines.append(line if any(titles) else _without_cells(line, ends))
    text = "\n".join(lines)
    for pattern, name in VARIABLE:
        text = re.sub(pattern, name, text)
    return re.sub("  +", "  ", text)


def _without_cells(line: str, ends: list[int]) -> str:
    for end in ends:
        line = re.sub(r"\S+( \S+)*$", "<varies>", line[:end]) + line[end:]
    return line


def outputs(manual: str) -> Iterator[tuple[Block, str]]:
    """Each block, and what it should be by what its commands print."""
    common, fresh = make_example_place(), make_example_place()
    try:
        for block in blocks(manual):
            if block.command == "diff":
                change(common)
                assert common.cas("sync", "02-user-workspace").returncode == 0
            place = fresh if block.command in ALONE else common
            said = [f"$ {line}\n{_said(place, line)}" for line in block.lines]
            yield block, "".join(said)
    finally:
        shutil.rmtree(common.source)
        shutil.rmtree(fresh.source)


def _said(place: Place, line: str) -> str:
    """What a command line prints, with all paths as the reader would have them."""
    root = str(place.source)
    environment = place.environment(
        PATH=f"{root}/bin:{os.environ['PATH']}", HOME=str(place.path), TZ="UTC",
        LC_ALL="C.UTF-8", PYTHONUNBUFFERED="1",
    )  # fmt: skip
    done = subprocess.run(
        ["bash", "-c", line.replace(":/", f":{root}/")], cwd=place.path, env=environment,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        timeout=SECONDS,
    )  # fmt: skip
    said = done.stdout.decode().replace(root, "").replace(f"  {root[1:]}/", "  ")
    return LOG_LINE.sub("", said)


@pytest.fixture(scope="module")
def said() -> dict[Block, str]:
    """What each block should be."""
    return dict(outputs(MANUAL.read_text()))


@pytest.mark.parametrize("name", [name for name in COMMANDS if name not in WITHOUT])
def test_what_the_manual_shows_is_what_is_printed(name: str, said: dict[Block, str]) -> None:
    own = [block for block in said if block.command == name]
    assert any(re.search(rf"\bcas {name}\b", line) for block in own for line in block.lines)
    for block in own:
        assert comparable(block.text) == comparable(said[block])


def test_only_what_varies_is_let_pass() -> None:
    table = "tier     wire  held\nfirst  1.2 MB   5 B\nof 2026-01-02 03:04:05\nok  3 B\n"
    other = "tier    wire  held\nfirst  17 kB   5 B\nof 2027-01-02 03:04:05\nok  3 B\n"
    assert comparable(table) == comparable(other)
    assert comparable(table) != comparable(other.replace("5 B", "6 B"))
    assert comparable(table) != comparable(other.replace("3 B", "4 B"))
    assert comparable(table) != comparable(other.replace("first", "second"))


def rewrite(path: Path) -> None:
    """Put into the manual what is printed now, where that differs in more than what varies."""
    manual = path.read_text()
    for block, now in outputs(manual):
        if comparable(block.text) != comparable(now):
            manual = manual.replace(f"```console\n{block.text}```", f"```console\n{now}```")
    path.write_text(manual)


if __name__ == "__main__":
    rewrite(MANUAL)
