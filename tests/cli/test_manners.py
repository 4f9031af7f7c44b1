"""How commands behave at a terminal: they keep to its width and to NO_COLOR; and exact sizes."""

import re

import pytest

from cli.table import cell_width
from tests.cli.conftest import Place, make_place
from tests.cli.test_terminal import COLOUR, CONTROL, on_terminal

TABLES = (
    ["scan"],
    ["plan"],
    ["status"],
    ["ls"],
    ["redundancy"],
    ["release", "both"],
    ["audit"],
    ["audit", "--from", "here"],
    ["log"],
    ["log", "--snapshots"],
)
IDS = [" ".join(table) for table in TABLES]


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """A place where everything was fetched; runs may be added."""
    made = make_place(tmp_path_factory.mktemp("done"))
    assert made.cas("sync").returncode == 0
    return made


@pytest.mark.parametrize("arguments", TABLES, ids=IDS)
def test_a_table_keeps_to_a_narrow_terminal(arguments: list[str], done: Place) -> None:
    written = on_terminal(done, *arguments, columns=50)
    table = [line for line in _lines(written) if re.search(r"\S  +\S", line)]
    assert len(table) >= 2
    assert max(map(cell_width, table)) <= 50


@pytest.mark.parametrize("arguments", TABLES, ids=IDS)
def test_titles_are_bold_on_a_terminal_that_wants_it(arguments: list[str], done: Place) -> None:
    assert "\x1b[1m" in on_terminal(done, *arguments)
    said = on_terminal(done, *arguments, environment={"NO_COLOR": "1"})
    assert not COLOUR.search(said)
    assert b"\x1b" not in done.cas(*arguments).stdout


@pytest.mark.parametrize("name", ["plan", "status", "ls", "redundancy", "release", "audit", "log"])
def test_sizes_can_be_had_to_the_byte(name: str, done: Place) -> None:
    names = ["both"] if name == "release" else []
    rounded = done.cas(name, *names).stdout.decode()
    exact = done.cas(name, "--bytes", *names).stdout.decode()
    assert re.search(r"\d [kM]?B\b(?!/s)", rounded)
    assert not re.search(r"\d [kM]?B\b(?!/s)", exact)
    assert name in ("plan", "log") or re.search(r"\b1,\d{3},\d{3}\b", exact)


def test_what_is_said_of_a_run_is_broken_between_words(done: Place) -> None:
    run = done.cas("log").stdout.decode().splitlines()[1].split()[0]
    lines = _lines(on_terminal(done, "log", run, columns=50))
    (number,) = [number for number, line in enumerate(lines) if line.startswith("source ")]
    assert lines[number + 1].startswith(" " * 12 + lines[number + 1].strip()[0])
    assert max(cell_width(line) for line in lines if "host key" not in line) <= 50


def _lines(written: str) -> list[str]:
    return [CONTROL.sub("", line) for line in re.split(r"[\r\n]+", written)]
