"""A sync through the real command over a real sshd: what a user with a host sees."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.real.killing import write_plan
from tests.real.sshd import Server, running_sshd

ROOT = Path(__file__).parent.parent.parent
AGENT = f"{sys.executable} -m cli serve"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    source = tmp_path / "source"
    for name in ("open", "closed"):
        (source / name).mkdir(parents=True)
        (source / name / "file").write_text(f"{name}\n" * 10_000)
    return source


def _cas(job: Path, *words: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": str(job / "cache")}
    command = (sys.executable, "-m", "cli", *words)
    return subprocess.run(command, cwd=job, env=env, capture_output=True, text=True, timeout=300)


def _settings(job: Path, *more: str) -> Sequence[str]:
    return [f"SetEnv PYTHONPATH={ROOT} XDG_CACHE_HOME={job / 'agent-cache'}", *more]


def _plan(job: Path, server: Server, source: Path) -> None:
    write_plan(job, server.config, server.alias, [("one", source)])


def test_a_tier_comes_over_ssh_and_back(tmp_path: Path, source: Path) -> None:
    with running_sshd(extra=_settings(tmp_path, "RekeyLimit 64K")) as server:
        (source / "large").write_bytes(os.urandom(3_000_000))
        _plan(tmp_path, server, source)
        ran = _cas(tmp_path, "sync")
    assert (0, "complete" in ran.stdout) == (ran.returncode, True), ran.stderr
    assert 0 == _cas(tmp_path, "restore", "one", "--to", "back").returncode
    back = tmp_path / "back" / str(source)[1:]
    assert 0 == subprocess.run(["diff", "-r", source, back]).returncode


def test_a_forced_command_confines_the_key(tmp_path: Path, source: Path) -> None:
    forced = f"ForceCommand {AGENT} --root {source / 'open'}"
    with running_sshd(extra=_settings(tmp_path, forced)) as server:
        write_plan(
            tmp_path, server.config, server.alias,
            [("in", source / "open"), ("out", source / "closed")],
        )  # fmt: skip
        ran = _cas(tmp_path, "sync")
    assert 3 == ran.returncode
    assert str(source / "closed") in ran.stdout + ran.stderr
    assert "file" in _cas(tmp_path, "ls", "in").stdout
    assert "file" not in _cas(tmp_path, "ls", "out").stdout


def test_a_host_without_cas_is_told_apart(tmp_path: Path, source: Path) -> None:
    with running_sshd() as server:
        _plan(tmp_path, server, source)
        plan = tmp_path / "plan.toml"
        plan.write_text(plan.read_text().replace(AGENT, "/nowhere/cas serve"))
        ran = _cas(tmp_path, "sync")
    assert 1 == ran.returncode
    (line,) = [line for line in ran.stderr.splitlines() if line.startswith("cas: ")]
    assert "/nowhere/cas" in line
    assert "cas must be installed there" in ran.stderr


def test_an_unknown_host_is_not_trusted(tmp_path: Path, source: Path) -> None:
    with running_sshd() as server:
        _plan(tmp_path, server, source)
        (server.directory / "known_hosts").write_text("")
        ran = _cas(tmp_path, "sync")
    assert 1 == ran.returncode
    assert "ssh" in ran.stderr
    assert "key" in ran.stderr
    assert "Traceback" not in ran.stderr
