"""Manual pages, read by the programs that show them: none has anything to complain of."""

import os
import pty
import re
import select
import shutil
import subprocess
from pathlib import Path

import click
import pytest

from cli.main import COMMANDS, main
from cli.manual import EXIT_CODES, escaped
from tests.cli.conftest import ROOT, SECONDS, Place, command_line

NAMES = ("cas", *(f"cas-{name}" for name in COMMANDS))
NO_DATE = "missing date"  # on purpose: the same texts make the same pages


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with all pages."""
    path = tmp_path_factory.mktemp("pages")
    done = Place(path, path).cas("man", "--to", path / "man1")
    assert (done.returncode, done.stdout) == (0, b"")
    return path / "man1"


def _run(*words: str | Path) -> subprocess.CompletedProcess[str]:
    if not shutil.which(str(words[0])):
        pytest.skip(f"{words[0]} is not installed")
    environment = {**os.environ, "LC_ALL": "C.UTF-8", "MANWIDTH": "100", "MANROFFSEQ": ""}
    return subprocess.run(
        list(map(str, words)), env=environment, capture_output=True, text=True, timeout=SECONDS
    )


def test_there_is_a_page_for_cas_and_for_each_command(pages: Path) -> None:
    assert sorted(f"{name}.1" for name in NAMES) == sorted(path.name for path in pages.iterdir())


@pytest.mark.parametrize("name", NAMES)
def test_groff_has_nothing_to_complain_of(name: str, pages: Path) -> None:
    done = _run("groff", "-man", "-ww", "-Tutf8", pages / f"{name}.1")
    assert (done.returncode, done.stderr) == (0, "")


def test_mandoc_has_nothing_to_complain_of(pages: Path) -> None:
    done = _run("mandoc", "-T", "lint", "-W", "warning", *sorted(pages.iterdir()))
    assert [] == [line for line in done.stdout.splitlines() if NO_DATE not in line]


def _letters(text: str) -> str:
    """`text` without what man may break, join or spell in another way."""
    return re.sub(r"[\s`'\b-]+", "", text)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_page_says_what_help_says(name: str, pages: Path) -> None:
    shown = _letters(_run("man", "-l", "-E", "ascii", pages / f"cas-{name}.1").stdout)
    command = main.get_command(click.Context(main), name)
    assert command is not None
    for line in (command.help or "").splitlines():
        assert _letters(re.sub("^ *Examples?:$", "", line)) in shown, line
    for option in command.params:
        if isinstance(option, click.Option):
            assert all(_letters(opt) in shown for opt in option.opts)


def test_the_exit_codes_are_those_of_the_manual() -> None:
    manual = (ROOT / "docs" / "cli.md").read_text()
    rows = [f"| {code} | {text} |" for code, text in EXIT_CODES]
    assert "|---:|---|\n" + "\n".join(rows) + "\n\n" in manual


def test_elsewhere_than_on_a_terminal_a_page_is_roff(tmp_path: Path, pages: Path) -> None:
    done = Place(tmp_path, tmp_path).cas("man", "sync")
    assert done.stdout == (pages / "cas-sync.1").read_bytes()


def test_on_a_terminal_a_page_is_shown_by_man(tmp_path: Path) -> None:
    if not shutil.which("man"):
        pytest.skip("man is not installed")
    controller, terminal = pty.openpty()
    process = subprocess.Popen(
        command_line("man", "ls"), cwd=tmp_path, stdout=terminal, stderr=terminal,
        env=Place(tmp_path, tmp_path).environment(MANPAGER="cat", TERM="dumb"),
    )  # fmt: skip
    os.close(terminal)
    shown = b""
    while b"CAS-LS(1)\r\n" not in shown[200:]:
        assert select.select([controller], [], [], SECONDS)[0], shown
        shown += os.read(controller, 65536)
    assert process.wait(SECONDS) == 0
    os.close(controller)
    assert b"SYNOPSIS" in re.sub(rb".\x08", b"", shown)  # bold is struck twice


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["man", "syn"], b"cas: there is no command 'syn' (did you mean 'sync'?)\n"),
        (["man", "sync", "--to", "x"], b"cas: --to writes all pages (leave the command out)\n"),
    ],
)
def test_what_is_no_command(arguments: list[str], said: bytes, tmp_path: Path) -> None:
    done = Place(tmp_path, tmp_path).cas(*arguments)
    assert (done.returncode, done.stderr) == (2, said)


def test_roff_takes_nothing_for_its_own() -> None:
    assert escaped("a-b\\n 'x' `y` ~/z^") == "a\\-b\\en \\(aqx\\(aq \\(gay\\(ga \\(ti/z\\(ha"
