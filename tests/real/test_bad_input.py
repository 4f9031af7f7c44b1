"""What goes wrong for real users, through the real command: one clear line, and nothing is lost."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

CAS = (sys.executable, "-m", "cli")
ROOT = Path(__file__).parent.parent.parent


class Job:
    """A directory with a plan of one tier, and the command."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.source = root / "source"
        self.source.mkdir()
        self.store = root / "store"
        self.plan()

    def plan(self, *, agent: str = "", store: str = "store") -> None:
        text = f'store = "{store}"\n[source.here]\n'
        if agent:
            text += f"agent = '''{agent}'''\n"
        text += f'[[tier]]\nname = "one"\nsource = "here"\npaths = ["{self.source}"]\n'
        (self.root / "plan.toml").write_text(text)

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        env = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "XDG_CACHE_HOME": str(self.root / "cache"),
        }
        return subprocess.run(
            (*CAS, *words), cwd=self.root, env=env, capture_output=True, text=True, timeout=300
        )

    def sync(self) -> dict[str, Any]:
        ran = self.run("sync", "--json")
        assert (0, "") == (ran.returncode, ran.stderr)
        summary: dict[str, Any] = json.loads(ran.stdout.splitlines()[-1])
        return summary


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return Job(tmp_path)


def _one_line(ran: subprocess.CompletedProcess[str]) -> str:
    """The one line of complaint: no traceback, nothing else on standard output."""
    (line,) = [line for line in ran.stderr.splitlines() if line.startswith("cas: ")]
    assert "Traceback" not in ran.stderr
    return line


def test_empty_files_and_an_empty_directory(job: Job) -> None:
    (job.source / "empty").touch()
    (job.source / "nothing").mkdir()
    job.sync()
    assert 0 == job.run("restore", "one", "--to", "back").returncode
    back = job.root / "back" / str(job.source)[1:]
    assert 0 == (back / "empty").stat().st_size
    assert (back / "nothing").is_dir()


def test_a_sparse_file_of_a_tebibyte(job: Job) -> None:
    path = job.source / "huge"
    with path.open("wb") as file:
        file.truncate(2**40)
        file.seek(2**39)
        file.write(b"in the middle")
    job.sync()
    assert 0 == job.run("restore", "one", "--to", "back").returncode
    back = job.root / "back" / str(path)[1:]
    assert 2**40 == back.stat().st_size
    assert back.stat().st_blocks < 1000
    with back.open("rb") as file:
        file.seek(2**39)
        assert b"in the middle" == file.read(13)


def test_a_far_end_that_speaks_nonsense(job: Job) -> None:
    (job.source / "file").write_bytes(b"content")
    job.plan(agent="head -c 200000 /dev/urandom")
    ran = job.run("sync")
    assert 1 == ran.returncode
    assert "agent" in _one_line(ran)
    job.plan(agent="sh -c 'echo Permission denied, says the shell >&2; exit 7'")
    ran = job.run("sync")
    assert 1 == ran.returncode
    assert "Permission denied, says the shell" in ran.stderr
    job.plan()
    job.sync()


def test_a_far_end_that_is_another_version(job: Job) -> None:
    hello = (
        "from cas.messages import *; import sys, time; "
        'sys.stdout.buffer.write(MARKER + encode_message(Hello(7, "9.9", "x", ()))); '
        "sys.stdout.flush(); time.sleep(1)"
    )
    (job.root / "agent.py").write_text(hello)
    job.plan(agent=f"{sys.executable} {job.root / 'agent.py'}")
    ran = job.run("sync")
    assert 1 == ran.returncode
    assert "protocol 7" in _one_line(ran)
    assert "update cas here" in _one_line(ran)


def test_a_store_of_a_newer_version(job: Job) -> None:
    job.sync()
    (job.store / "format").write_text("cas store 2\n")
    for words in (("sync",), ("status",), ("ls",)):
        ran = job.run(*words)
        assert 1 == ran.returncode
        assert "cas store 2" in _one_line(ran)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=12m", "tmpfs", str(disk)], capture_output=True
    )
    if mounted.returncode:
        pytest.skip("a small disk cannot be mounted here")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


@pytest.mark.root
def test_a_full_disk(job: Job, small_disk: Path) -> None:
    job.plan(store=str(small_disk / "store"))
    for number in range(4):
        (job.source / f"random{number}").write_bytes(os.urandom(6_000_000))
    ran = job.run("sync")
    assert 1 == ran.returncode
    assert "disk is full" in _one_line(ran)
    assert 0 == job.run("status", "--json").returncode
    subprocess.run(["mount", "-o", "remount,size=60m", str(small_disk)], check=True)
    (tier,) = job.sync()["tiers"]
    assert tier["complete"]
    assert tier["fetched"] < 24_000_000  # what was stored before the disk was full is not fetched
    assert 0 == job.run("restore", "one", "--to", "back").returncode


def test_an_agent_confined_to_a_directory(job: Job) -> None:
    inside = job.source / "inside"
    inside.mkdir()
    (inside / "file").write_bytes(b"seen")
    (job.source / "secret").write_bytes(b"not to be seen")
    job.plan(agent=f"{sys.executable} -m cli serve --root {inside}")
    ran = job.run("sync")
    assert 3 == ran.returncode
    listed = job.run("ls", "one", "--json").stdout
    assert "secret" not in listed


def test_a_source_that_is_not_there(job: Job) -> None:
    job.source.rmdir()
    ran = job.run("sync")
    assert 3 == ran.returncode
    assert str(job.source)[1:] in ran.stdout + ran.stderr


@pytest.mark.big
def test_a_file_of_four_gibibytes(job: Job) -> None:
    path = job.source / "large"
    with path.open("wb") as file:
        for _ in range(4096):
            file.write(os.urandom(2**20))
        file.write(b"and a little more")
    job.sync()
    assert 0 == job.run("restore", "one", "--to", "back").returncode
    assert 0 == subprocess.run(["cmp", path, job.root / "back" / str(path)[1:]]).returncode


@pytest.mark.big
def test_two_hundred_thousand_small_files(job: Job) -> None:
    for number in range(200_000):
        path = job.source / f"d{number // 1000}"
        if not number % 1000:
            path.mkdir()
        (path / f"f{number}").write_bytes(b"%d" % number)
    job.sync()
    again = job.sync()
    assert again["wire_in"] + again["wire_out"] < 64 * 200_000
    assert 0 == job.run("restore", "one", "--to", "back").returncode
    back = job.root / "back" / str(job.source)[1:]
    assert 0 == subprocess.run(["diff", "-r", "-q", job.source, back]).returncode
