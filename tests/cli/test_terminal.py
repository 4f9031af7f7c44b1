"""The real command on a real terminal (a pty): what it draws, how wide, in which colours."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import termios
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from cli.table import cell_width
from tests.cli.conftest import Place, command_line

CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
COLOUR = re.compile(r"\x1b\[(?:[0-9;]*;)?3[0-9]m")
PLAIN = {"NO_COLOR": "1"}
PERCENT = re.compile(r"(\d+\.\d) % of first")


def on_terminal(
    place: Place,
    *arguments: str,
    columns: int = 80,
    environment: Mapping[str, str] | None = None,
) -> str:
    """Run `cas` on a terminal of so many columns, and all that it wrote there."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    usual = {k: v for k, v in place.environment().items() if k not in ("COLUMNS", "LINES")}
    with subprocess.Popen(
        command_line(*arguments), cwd=place.path,
        env={**usual, "TERM": "xterm-256color", **(environment or {})},
        stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
    ):  # fmt: skip
        os.close(theirs)
        written = bytearray()
        try:
            while data := os.read(ours, 65536):
                written += data
        except OSError:  # Linux says so at the end of a terminal
            pass
        os.close(ours)
    return written.decode()


def test_progress_goes_forward_in_place_and_vanishes(
    place: Place, slow_agent: Callable[[int], str]
) -> None:
    (place.source / "first" / "large").write_bytes(os.urandom(6_000_000))
    plan = place.path / "plan.toml"
    line = f'[source.here]\nagent = "{slow_agent(100_000)}"'
    plan.write_text(plan.read_text().replace("[source.here]", line))
    written = on_terminal(place, "sync", columns=60)
    shown = [float(found) for found in PERCENT.findall(written)]
    assert len(set(shown)) >= 3
    assert shown == sorted(shown)
    assert shown[-1] <= 100
    assert "\x1b[1A" in written
    lines = [CONTROL.sub("", part) for part in re.split(r"[\r\n]+", written)]
    assert max(map(cell_width, lines)) <= 60
    assert written.rpartition("\x1b[2K")[2].count("together") == 1


@pytest.mark.parametrize(
    ("environment", "expected"), [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)]
)
def test_colours(synced: Place, environment: dict[str, str], expected: bool) -> None:
    written = on_terminal(synced, "ls", "nothing", environment=environment)
    assert "no snapshot of this tier is held" in written
    assert bool(COLOUR.search(written)) == expected


def test_a_dumb_terminal_gets_lines(place: Place) -> None:
    written = on_terminal(place, "sync", environment={"TERM": "dumb"})
    assert "first: scanning here" in written
    assert "\x1b" not in written


def test_a_table_gives_up_columns_on_a_narrow_terminal(synced: Place) -> None:
    wide = on_terminal(synced, "status", columns=120, environment=PLAIN).splitlines()
    narrow = on_terminal(synced, "status", columns=50, environment=PLAIN).splitlines()
    assert wide[0].split() == [
        "tier", "scanned", "names", "logical", "unique", "held", "missing", "left", "out",
    ]  # fmt: skip
    assert max(map(len, narrow)) <= 50
    assert {"tier", "held", "missing", "left"} <= set(narrow[0].split())


def test_restore_shows_a_bar_and_leaves_a_line(synced: Place, tmp_path: Path) -> None:
    written = on_terminal(synced, "restore", "first", "--to", f"{tmp_path}/out")
    last = CONTROL.sub("", written).splitlines()[-1]
    assert re.fullmatch(r"5 files \(1\.00 MB\) and \d+ directories restored", last.strip())


def test_the_agent_refuses_a_terminal(synced: Place) -> None:
    assert "not to a terminal" in on_terminal(synced, "serve")
