"""Several connections to one agent over a real sshd: straight, through a jump host, and with a key
that may run nothing but the agent."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.real.killing import write_plan
from tests.real.sshd import Server, running_sshd

ROOT = Path(__file__).parent.parent.parent
AGENT = f"{sys.executable} -m cli serve"
LANES = 3
SIZE = 60_000_000


@pytest.fixture
def source(tmp_path: Path) -> Path:
    source = tmp_path / "source"
    source.mkdir()
    for number in range(6):
        (source / f"{number}").write_bytes(os.urandom(SIZE // 6))
    return source


def _settings(job: Path, *more: str) -> list[str]:
    return [f"SetEnv PYTHONPATH={ROOT} XDG_CACHE_HOME={job / 'agent-cache'}", *more]


def _sync(job: Path) -> list[dict[str, Any]]:
    """What `cas sync` tells while it fetches over LANES lanes, slowly until all of them are up."""
    env = {**os.environ, "PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": str(job / "cache")}
    cas = (sys.executable, "-m", "cli")
    words = ("sync", "--json", "--level", "1", "--lanes", str(LANES), "--bwlimit", "1M")
    events = []
    with (
        (job / "talk").open("w+") as talk,
        subprocess.Popen(
            (*cas, *words), cwd=job, env=env, stdout=subprocess.PIPE, stderr=talk, text=True
        ) as process,
    ):
        assert process.stdout is not None
        is_limited = True
        for line in process.stdout:
            events.append(json.loads(line))
            if is_limited and events[-1].get("lanes") == LANES:
                is_limited = False
                subprocess.run((*cas, "limit", "off"), cwd=job, env=env, check=True)
        talk.seek(0)
        assert 0 == process.wait(), (talk.read(), events[-5:])
    subprocess.run((*cas, "restore", "one", "--to", "back"), cwd=job, env=env, check=True)
    return events


def _check(events: list[dict[str, Any]], job: Path, source: Path) -> None:
    lanes = [event["lanes"] for event in events if event["event"] == "progress"]
    assert max(lanes) == LANES
    assert [] == [event["text"] for event in events if event["event"] == "note"]
    back = job / "back" / str(source)[1:]
    assert 0 == subprocess.run(["diff", "-r", source, back]).returncode


def _plan(job: Path, server: Server, source: Path) -> None:
    write_plan(job, server.config, server.alias, [("one", source)])


def test_lanes_share_the_way(tmp_path: Path, source: Path) -> None:
    with running_sshd(extra=_settings(tmp_path)) as server:
        _plan(tmp_path, server, source)
        events = _sync(tmp_path)
    _check(events, tmp_path, source)


def test_lanes_go_through_a_jump_host(tmp_path: Path, source: Path) -> None:
    with running_sshd(extra=_settings(tmp_path)) as server, running_sshd(alias="hop") as hop:
        config = tmp_path / "config"
        includes = f"Include {server.config}\nInclude {hop.config}\n"
        config.write_text(f"{includes}Host {server.alias}\n  ProxyJump hop\n")
        write_plan(tmp_path, config, server.alias, [("one", source)])
        events = _sync(tmp_path)
        assert hop.log.count("Accepted publickey") >= LANES
    _check(events, tmp_path, source)


def test_a_key_that_may_run_nothing_else_has_lanes_too(tmp_path: Path, source: Path) -> None:
    forced = f"ForceCommand {AGENT} --root {source}"
    with running_sshd(extra=_settings(tmp_path, forced)) as server:
        _plan(tmp_path, server, source)
        events = _sync(tmp_path)
    _check(events, tmp_path, source)
