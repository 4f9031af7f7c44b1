"""docs/cli.md has every command, with an example and all of its options, and nothing else."""

import importlib
import re

import click
import pytest

from cli.main import COMMANDS
from tests.cli.conftest import ROOT

MANUAL = (ROOT / "docs" / "cli.md").read_text()


def test_every_command_has_its_section_and_no_section_lacks_its_command() -> None:
    assert list(COMMANDS) == re.findall(r"^## cas (\S+)$", MANUAL, re.MULTILINE)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_section_has_an_example_and_every_option(name: str) -> None:
    section = re.split(r"^## ", MANUAL.partition(f"## cas {name}\n")[2], flags=re.MULTILINE)[0]
    assert re.search(rf"^    .*\bcas {name}\b", section, re.MULTILINE)
    command: click.Command = importlib.import_module(f"cli.commands.{name}").command
    for parameter in command.params:
        for option in parameter.opts if isinstance(parameter, click.Option) else ():
            assert re.search(rf"{option}\b", section), option
