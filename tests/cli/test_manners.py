"""How commands behave at a terminal: they keep to its width and to NO_COLOR; and exact sizes."""

import importlib
import re

import click
import pytest

from cli.main import COMMANDS
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
# All commands that show sizes to compare; whose sums are small where everything is here.
SIZES = [
    ["scan"], ["sync"], ["sync", "--dry-run"], ["adopt", "first/blob"], ["plan"], ["status"],
    ["ls"], ["redundancy"], ["release", "both"], ["audit"], ["log"], ["diff", "first", "second"],
]  # fmt: skip
NOTHING_LEFT = ("plan", "log")
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


@pytest.mark.parametrize("command", SIZES, ids=" ".join)
def test_sizes_can_be_had_to_the_byte(command: list[str], done: Place) -> None:
    words = [str(done.source / word) if word == "first/blob" else word for word in command]
    rounded = done.cas(*words).stdout.decode()
    exact = done.cas(*words, "--bytes").stdout.decode()
    assert re.search(r"\d [kM]?B\b(?!/s)", rounded)
    assert not re.search(r"\d [kM]?B\b(?!/s)", exact)
    assert words[0] in NOTHING_LEFT or re.search(r"\b1,\d{3},\d{3}\b", exact)


def test_whatever_shows_sizes_in_columns_shows_them_to_the_byte() -> None:
    with_option = {
        name for name in COMMANDS
        if any("--bytes" in param.opts for param in _command(name).params)
    }  # fmt: skip
    assert {command[0] for command in SIZES} == with_option
    assert {command[0] for command in TABLES} <= with_option


def _command(name: str) -> click.Command:
    command: click.Command = importlib.import_module(f"cli.commands.{name}").command
    return command


def test_what_is_said_of_a_run_is_broken_between_words(done: Place) -> None:
    run = done.cas("log").stdout.decode().splitlines()[1].split()[0]
    lines = _lines(on_terminal(done, "log", run, columns=50))
    (number,) = [number for number, line in enumerate(lines) if line.startswith("source ")]
    assert lines[number + 1].startswith(" " * 12 + lines[number + 1].strip()[0])
    assert max(cell_width(line) for line in lines if "host key" not in line) <= 50


def _lines(written: str) -> list[str]:
    return [CONTROL.sub("", line) for line in re.split(r"[\r\n]+", written)]
