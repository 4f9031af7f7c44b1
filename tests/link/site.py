"""A real sshd at the far end of a bad link, and cas run at the near end.

    with bad_site(tmp_path, loss=5, rtt=200, rate="400K") as site:
        site.plan({"one": source})
        running = site.sync("--lanes", "8")
        site.link.stall(20)
        running.wait()

Both ends have a network namespace of their own with nothing in it but the link
(tests/tools/badlink.py), and the kernel's own TCP; they share the file system. Logins get a home
of their own, without start-up files, and a PATH in which `cas` is this very one.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path

from tests.link.running import Running
from tests.real.sshd import SSHD, Server, running_sshd
from tests.tools.badlink import SERVER, BadLink

ROOT = Path(__file__).resolve().parents[2]
RELAY_PRIORITY = -10  # a busy machine is no part of the link
CAS = (sys.executable, str(ROOT / "cli" / "__main__.py"))


@lru_cache
def missing() -> str:
    """Why there can be no bad link here; "" if there can."""
    if os.geteuid() != 0:
        return "a bad link needs root"
    for program in (SSHD, "ssh", "ip", "nsenter", "setpriv", "unshare"):
        if shutil.which(program) is None:
            return f"a bad link needs {program}"
    if subprocess.run(["unshare", "--net", "true"], capture_output=True).returncode:
        return "a bad link needs network namespaces, and none may be made here"
    with contextlib.suppress(OSError):
        os.close(os.open("/dev/net/tun", os.O_RDWR))
        return ""
    return "a bad link needs /dev/net/tun, and it cannot be opened here"


@dataclass(frozen=True, slots=True)
class Site:
    """A link with a server behind it; `job` is where plan, store and caches are."""

    link: BadLink
    server: Server
    job: Path

    def plan(self, tiers: Mapping[str, Path], *lines: str) -> None:
        """Write the plan: one source with these tiers, `lines` added to the source."""
        text = [
            'store = "store"',
            "[source.far]",
            f'host = "{self.server.alias}"',
            f'ssh_config = "{self.server.config}"',
            *lines,
        ]
        for name, path in tiers.items():
            text += ["[[tier]]", f'name = "{name}"', 'source = "far"', f'paths = ["{path}"]']
        (self.job / "plan.toml").write_text("\n".join(text) + "\n")

    def sync(self, *options: str) -> Running:
        """Start `cas sync --json` at the near end."""
        process = self.link.popen(
            "client",
            [*CAS, "sync", "--json", *options],
            cwd=self.job,
            env=self._environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        return Running(process)

    def cas(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run another command of cas to its end, here where no link is needed."""
        env = self._environment()
        command = (*CAS, *words)
        return subprocess.run(command, cwd=self.job, env=env, capture_output=True, text=True)

    def near(self, command: Sequence[str], **kw: object) -> subprocess.Popen[bytes]:
        """Start any command at the near end."""
        return self.link.popen("client", command, cwd=self.job, **kw)

    def ports(self) -> list[int]:
        """The near end's ports of the connections that are up."""
        listed = self.link.run("client", ["ss", "-Htn"], capture_output=True, text=True, check=True)
        lines = [line.split() for line in listed.stdout.splitlines()]
        return [int(fields[3].rpartition(":")[2]) for fields in lines if fields[0] == "ESTAB"]

    def delivered(self) -> int:
        """Bytes of packets that have come down the link, all of TCP/IP's counted."""
        return int(self.link.stats()["down"]["tx_bytes"])

    def check(self, tiers: Mapping[str, Path]) -> str:
        """What is not right with these tiers in the store, "" if nothing: by `cas verify`, and by
        `cas restore` and sha256sum of each file beside its source."""
        verified = self.cas("verify")
        if verified.returncode:
            return f"cas verify: exit code {verified.returncode}\n{verified.stderr}"
        back = self.job / "restored"
        shutil.rmtree(back, ignore_errors=True)
        restored = self.cas("restore", *tiers, "--to", str(back))
        if restored.returncode:
            return f"cas restore: exit code {restored.returncode}\n{restored.stderr}"
        return "".join(_differing(path, back) for path in tiers.values())

    def _environment(self) -> dict[str, str]:
        names = ("HOME", "PATH", "LANG")
        kept = {name: os.environ[name] for name in names if name in os.environ}
        return {**kept, "XDG_CACHE_HOME": str(self.job / "cache")}


@contextlib.contextmanager
def bad_site(job: Path, *, sshd: Sequence[str] = (), **link: float | str) -> Iterator[Site]:
    """A link with these options of badlink.py, a server with these lines of sshd_config first.
    Everything that was started in it ends with it."""
    home, programs = job / "far-home", job / "far-bin"
    home.mkdir(parents=True)
    programs.mkdir()
    program = programs / "cas"
    program.write_text(f'#!/bin/sh\nexec {" ".join(CAS)} "$@"\n')
    program.chmod(0o755)
    path = f"{programs}:{os.defpath}:/usr/sbin"
    settings = f"SetEnv HOME={home} PATH={path} XDG_CACHE_HOME={home / 'cache'}"
    with BadLink(None, **link) as made:
        os.setpriority(os.PRIO_PROCESS, made.pid, RELAY_PRIORITY)
        spawn = partial(made.popen, "server")
        with running_sshd(extra=[*sshd, settings], listen=SERVER, spawn=spawn) as server:
            yield Site(made, server, job)


def _differing(source: Path, restored: Path) -> str:
    """What sha256sum says of the restored files beside those of the source."""
    sums = subprocess.run(
        f"find {source} -type f -print0 | sort -z | xargs -0 -r sha256sum",
        shell=True, check=True, capture_output=True,
    ).stdout.replace(b"  /", b"  ")  # fmt: skip
    if not sums:
        return f"{source} has no files\n"
    command = ("sha256sum", "--quiet", "-c", "-")
    done = subprocess.run(command, cwd=restored, input=sums, capture_output=True)
    return (done.stdout + done.stderr).decode() if done.returncode else ""
