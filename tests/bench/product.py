"""cas as a contestant: plan, store and agent's cache in one directory, run as a user would."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.bench.process import Usage, measured, read_report, wrapped

CAS = (sys.executable, str(Path(__file__).resolve().parents[2] / "cli" / "__main__.py"))


@dataclass(frozen=True, slots=True)
class Cas:
    """`tiers` are directories or files of this machine by name, read through an agent that is a
    child process; `level` is zstd's, by default what cas itself takes for this machine."""

    home: Path
    tiers: Mapping[str, Path]
    level: int | None = None

    @property
    def store(self) -> Path:
        """Where what arrives is kept."""
        return self.home / "store"

    def forget(self) -> None:
        """Begin anew: no store, no cache, only the plan."""
        shutil.rmtree(self.home, ignore_errors=True)
        self.home.mkdir(parents=True)
        agent = json.dumps(" ".join([*wrapped(self.home / "agent.json"), *CAS, "serve"]))
        lines = [
            f"store = {json.dumps(str(self.store))}",
            f"[source.here]\nagent = {agent}",
        ]
        if self.level is not None:
            lines.append(f"level = {self.level}")
        for name, path in self.tiers.items():
            paths = json.dumps([str(path)])
            lines.append(f'[[tier]]\nname = "{name}"\nsource = "here"\npaths = {paths}')
        (self.home / "plan.toml").write_text("\n".join(lines) + "\n")

    def scan(self) -> Usage:
        """`cas scan`: what the tiers would cost."""
        return self._cas("scan", "--json")

    def sync(self) -> Usage:
        """`cas sync` of all tiers."""
        return self._cas("sync", "--json")

    def restore(self, tier: str, to: Path, *options: str) -> Usage:
        """`cas restore` of one tier, whole."""
        return self._cas("restore", tier, "--to", str(to), *options)

    def agent(self) -> Usage:
        """What the agent of the last command used."""
        return read_report(self.home / "agent.json")

    def _cas(self, *arguments: str) -> Usage:
        environment = {"XDG_CACHE_HOME": str(self.home / "cache")}
        return measured([*CAS, *arguments], env=environment, cwd=self.home)


def summary(usage: Usage) -> dict[str, Any]:
    """The summary that `cas scan --json` and `cas sync --json` end with."""
    fields: dict[str, Any] = json.loads(usage.output.splitlines()[-1])
    return fields


def stored_size(directory: Path) -> int:
    """The bytes of all files below `directory`."""
    return sum(
        os.lstat(os.path.join(folder, name)).st_size
        for folder, _, names in os.walk(directory)
        for name in names
    )
