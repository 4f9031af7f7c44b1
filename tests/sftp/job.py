"""A job directory with a plan whose source is a real sshd, and the real command run in it."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cas.entry import Entry
from cli import wiring
from tests.real.relay import Relay, relayed
from tests.real.sshd import Server, running_sshd

ROOT = Path(__file__).parent.parent.parent
ONLY_SFTP = "ForceCommand internal-sftp"
OLD = 1_500_000_000  # seconds: long settled


@dataclass(frozen=True, slots=True)
class Job:
    """`directory` has the plan; `far` is the server it names, reached through `relay`."""

    directory: Path
    far: Server
    relay: Relay
    config: Path

    @property
    def environment(self) -> dict[str, str]:
        """What the command runs with."""
        cache = str(self.directory / "cache")
        return {**os.environ, "PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": cache}

    def plan(self, tiers: Mapping[str, Path | str], *more: str, via: str = 'via = "sftp"') -> None:
        """Write a plan with these tiers; `more` are lines of the source."""
        lines = ['store = "store"', "[source.far]", f'host = "{self.far.alias}"', via]
        lines += [f'ssh_config = "{self.config}"', *more]
        for name, path in tiers.items():
            lines += ["[[tier]]", f'name = "{name}"', 'source = "far"', f'paths = ["{path}"]']
        (self.directory / "plan.toml").write_text("\n".join(lines) + "\n")

    def command(self, *words: str) -> Sequence[str]:
        """The command line."""
        return (sys.executable, "-m", "cli", *words)

    def cas(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a command to its end."""
        return subprocess.run(
            self.command(*words), cwd=self.directory, env=self.environment,
            capture_output=True, text=True, timeout=300,
        )  # fmt: skip

    def sync(self, *words: str, code: int = 0) -> dict[str, Any]:
        """Run `cas sync`, which must end with this exit code; its summary."""
        ran = self.cas("sync", "--json", *words)
        assert code == ran.returncode, ran.stderr
        summary: dict[str, Any] = json.loads(ran.stdout.splitlines()[-1])
        return summary

    def entries(self, tier: str) -> dict[bytes, Entry]:
        """What is held of a tier, by path."""
        with wiring.reading(self.directory / "store") as store:
            _, snapshot = store.latest(tier)
            return {entry.path: entry for entry in store.entries(snapshot)}

    def restored(self, tier: str, to: str = "back") -> Path:
        """The root directory under which a tier is restored."""
        ran = self.cas("restore", tier, "--to", to)
        assert 0 == ran.returncode, ran.stderr
        return self.directory / to


@contextlib.contextmanager
def job_in(
    directory: Path, *settings: str, rate: float | None = None, user: str | None = None
) -> Iterator[Job]:
    """A job in `directory`, and a server with these settings. Commands that it runs find a home
    without start-up files."""
    directory.mkdir(exist_ok=True)
    (directory / "home").mkdir(exist_ok=True)
    settings = (*settings, f"SetEnv HOME={directory / 'home'}")
    with (
        running_sshd(extra=settings, user=user) as server,
        relayed(server.port, rate=rate) as relay,
    ):
        config = directory / "ssh_config"
        text = server.config.read_text()
        config.write_text(text.replace(f"Port {server.port}", f"Port {relay.port}"))
        known = server.directory / "known_hosts"
        known.write_text(known.read_text().replace(f":{server.port}", f":{relay.port}"))
        yield Job(directory, server, relay, config)


def settle(top: Path) -> None:
    """Give everything at and below `top` an old time, each another one."""
    for number, path in enumerate(sorted(top.rglob("*"), reverse=True)):
        os.utime(path, (OLD, OLD + number), follow_symlinks=False)
    os.utime(top, (OLD, OLD))


def sums_below(top: Path) -> dict[str, str]:
    """The SHA-256 of each regular file, by its path from there."""
    return {
        str(path.relative_to(top)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(top.rglob("*"))
        if path.is_file() and not path.is_symlink()
    }
