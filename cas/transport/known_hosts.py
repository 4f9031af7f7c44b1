"""Where a host's key may be written, and the lines there; what they mean is the SSH library's job.

The files are those that ssh reads: UserKnownHostsFile and GlobalKnownHostsFile of the config, or
ssh's defaults for either.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

USER_FILES = ("~/.ssh/known_hosts", "~/.ssh/known_hosts2")
SYSTEM_FILES = ("/etc/ssh/ssh_known_hosts", "/etc/ssh/ssh_known_hosts2")
SIZE_LIMIT = 64 * 1024 * 1024  # of one file; far more than any real one


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a known_hosts file, and where it is."""

    path: Path
    number: int
    text: str

    def __str__(self) -> str:
        return f"{self.path}:{self.number}"


def known_hosts_files(
    user: Sequence[str] | None, system: Sequence[str] | None, tokens: Mapping[str, str]
) -> list[Path]:
    """The files that the config names (None: it names none), whether they exist or not.

    `tokens` are the letters that stand for something after a `%` (ssh_config(5), TOKENS).
    """
    names = [*(USER_FILES if user is None else user), *(SYSTEM_FILES if system is None else system)]
    return [Path(os.path.expanduser(_expand(name, tokens))) for name in names]


def known_hosts_lines(paths: Sequence[Path]) -> Iterator[Line]:
    """Every line that may hold a key. A file that cannot be read is as good as empty, as for ssh:
    then the host is unknown, and the error names the files."""
    for path in paths:
        for number, text in enumerate(_text(path).splitlines(), 1):
            if text.strip() and not text.lstrip().startswith("#"):
                yield Line(path, number, text)


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(SIZE_LIMIT).decode("utf-8", "replace")
    except OSError:
        return ""


def _expand(name: str, tokens: Mapping[str, str]) -> str:
    known = {**tokens, "%": "%"}
    return re.sub("%(.)", lambda match: known.get(match[1], match[0]), name)
