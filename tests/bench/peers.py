"""The peers: borg, restic, casync and rsync, each with a repository of its own.

Nothing of the user's own settings or caches is read: each keeps its files in the directory given.
Repositories are made (`begin`) outside of what is measured.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.bench.process import Usage, measured
from tests.bench.product import stored_size
from tests.bench.verdict import Skipped

PASSWORD = "benchmark"
REMOTE_SHELL = '#!/bin/sh\nshift\nexec "$@"\n'  # rsync's -e: HOST COMMAND..., run right here


def require(*tools: str) -> None:
    """Raises Skipped where one is not installed."""
    missing = [tool for tool in tools if shutil.which(tool) is None]
    if missing:
        raise Skipped(f"not installed: {', '.join(missing)}")


def version(tool: str, *arguments: str) -> str:
    """The first line of what it says of its version."""
    done = subprocess.run([tool, *(arguments or ("--version",))], capture_output=True, text=True)
    return (done.stdout or done.stderr).splitlines()[0]


@dataclass(frozen=True, slots=True)
class Borg:
    """`compression` and `encryption` as borg calls them."""

    home: Path
    compression: str = "zstd,3"
    encryption: str = "none"

    def begin(self) -> None:
        """A new repository, empty caches."""
        _clean(self.home)
        self._borg("init", "--encryption", self.encryption, self._repository)

    def create(self, name: str, path: Path) -> Usage:
        """Take `path` in."""
        archive = f"{self._repository}::{name}"
        return self._borg("create", "--compression", self.compression, archive, str(path))

    def extract(self, name: str, to: Path) -> Usage:
        """Write an archive out below `to`, at its whole path."""
        return self._borg("extract", f"{self._repository}::{name}", cwd=to)

    def size(self) -> int:
        """Bytes of the repository."""
        return stored_size(self.home / "repository")

    @property
    def _repository(self) -> str:
        return str(self.home / "repository")

    def _borg(self, *arguments: str, cwd: Path | None = None) -> Usage:
        environment = {
            "BORG_BASE_DIR": str(self.home / "base"),
            "BORG_PASSPHRASE": PASSWORD,
            "BORG_UNKNOWN_UNENCRYPTED_REPO_ACCESS_IS_OK": "yes",
        }
        return measured(["borg", *arguments], env=environment, cwd=cwd)


@dataclass(frozen=True, slots=True)
class Restic:
    """With its own choice of compression (`auto`)."""

    home: Path

    def begin(self) -> None:
        """A new repository, an empty cache."""
        _clean(self.home)
        self._restic("init")

    def create(self, name: str, path: Path) -> Usage:
        """Take `path` in."""
        return self._restic("backup", "--tag", name, str(path))

    def extract(self, name: str, to: Path) -> Usage:
        """Write a snapshot out below `to`, at its whole path."""
        return self._restic("restore", "latest", "--tag", name, "--target", str(to))

    def size(self) -> int:
        """Bytes of the repository."""
        return stored_size(self.home / "repository")

    def _restic(self, *arguments: str) -> Usage:
        environment = {
            "RESTIC_REPOSITORY": str(self.home / "repository"),
            "RESTIC_PASSWORD": PASSWORD,
            "RESTIC_CACHE_DIR": str(self.home / "cache"),
        }
        return measured(["restic", "--quiet", *arguments], env=environment)


@dataclass(frozen=True, slots=True)
class Casync:
    """Directories as .caidx with one store of chunks."""

    home: Path

    def begin(self) -> None:
        """An empty store."""
        _clean(self.home)

    def create(self, name: str, path: Path) -> Usage:
        """Take `path` in."""
        store = self.home / "repository" / "default.castr"
        index = self.home / "repository" / f"{name}.caidx"
        index.parent.mkdir(exist_ok=True)
        return measured(["casync", "make", f"--store={store}", str(index), str(path)])

    def size(self) -> int:
        """Bytes of the chunks and of the index files."""
        return stored_size(self.home / "repository")


@dataclass(frozen=True, slots=True)
class Rsync:
    """`rsync -az` of each tier into a directory of its own, as over a network: the bytes of both
    directions, as it counts them itself."""

    home: Path

    def begin(self) -> None:
        """Empty directories."""
        _clean(self.home)
        shell = self.home / "shell"
        shell.write_text(REMOTE_SHELL)
        shell.chmod(0o755)

    def transferred(self, name: str, path: Path) -> int:
        """Bytes sent and received to copy `path`."""
        command = ["rsync", "-az", "--stats", "-e", str(self.home / "shell")]
        done = measured([*command, f"here:{path}/", f"{self.home / name}/"])
        totals = re.findall(rb"Total bytes (?:sent|received): ([\d,]+)", done.output)
        return sum(int(total.replace(b",", b"")) for total in totals)


def _clean(home: Path) -> None:
    shutil.rmtree(home, ignore_errors=True)
    os.makedirs(home)
