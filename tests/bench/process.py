"""Runs the contestants: one command measured, and several in turns."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

USAGE = Path(__file__).with_name("usage.py")
# What an installed program does not have: it finds its modules compiled.
NOT_A_USERS = ("PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED", "PYTHONPATH")


@dataclass(frozen=True, slots=True)
class Usage:
    """What a command used: seconds, and bytes of memory at its peak (its own, not its children's).
    `cpu` counts what it waited for too. `output` is its standard output."""

    wall: float
    cpu: float
    peak: int = 0
    output: bytes = b""


class CommandFailed(Exception):
    """A contestant did not do what it was asked."""


def wrapped(report: Path) -> list[str]:
    """What to put before a command so that its usage is written to `report`."""
    return [sys.executable, "-S", str(USAGE), str(report)]


def read_report(report: Path) -> Usage:
    """What `wrapped` wrote."""
    fields = json.loads(report.read_text())
    return Usage(fields["wall"], fields["cpu"], fields["peak"])


def measured(
    command: Sequence[str | Path],
    *,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    allowed: Sequence[int] = (0,),
) -> Usage:
    """Run `command`, with `env` added to a user's. Raises CommandFailed unless it ends as
    `allowed`."""
    with tempfile.TemporaryDirectory(prefix="cas-bench-usage.") as directory:
        report = Path(directory, "usage.json")
        done = subprocess.run(
            [*wrapped(report), *map(str, command)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env={**_environment(), **(env or {})},
            cwd=cwd,
        )
        if done.returncode not in allowed:
            said = done.stderr.decode("utf-8", "replace").strip()[-2000:]
            words = " ".join(map(str, command))
            raise CommandFailed(f"exit code {done.returncode} of {words}\n{said}")
        usage = read_report(report)
    return Usage(usage.wall, usage.cpu, usage.peak, done.stdout)


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name not in NOT_A_USERS}


def in_turns(rounds: int, contestants: Mapping[str, Callable[[], Usage]]) -> dict[str, Usage]:
    """Each contestant's best wall and best CPU time of `rounds`, run A B C, B C A, C A B: a slow
    minute of the machine meets them all, and none is always the first. What was written is flushed
    before each, so that none pays for another."""
    names = list(contestants)
    runs: dict[str, list[Usage]] = {name: [] for name in names}
    for number in range(rounds):
        shift = number % len(names)
        for name in names[shift:] + names[:shift]:
            os.sync()
            runs[name].append(contestants[name]())
    return {name: _best(usages) for name, usages in runs.items()}


def _best(usages: Sequence[Usage]) -> Usage:
    return Usage(
        min(usage.wall for usage in usages),
        min(usage.cpu for usage in usages),
        max(usage.peak for usage in usages),
        usages[-1].output,
    )
