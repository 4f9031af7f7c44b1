"""A lost index is made anew by the command, and goes on being used."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import ROOT, SECONDS


@pytest.fixture
def job(tmp_path: Path) -> Path:
    source = tmp_path / "source"
    source.mkdir()
    for number in range(20):
        (source / f"f{number}").write_bytes(b"%d" % number * 9000)
    (tmp_path / "plan.toml").write_text(
        f'store = "store"\n[source.here]\n[[tier]]\nname = "one"\nsource = "here"\n'
        f'paths = ["{source}"]\n'
    )
    assert 0 == _cas(tmp_path, "sync").returncode
    return tmp_path


def _cas(job: Path, *words: str) -> subprocess.CompletedProcess[str]:
    env = {"PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": str(job / "cache"), "PATH": "/usr/bin:/bin"}
    command = (sys.executable, "-m", "cli", *words)
    return subprocess.run(
        command, cwd=job, env=env, capture_output=True, text=True, timeout=SECONDS
    )


def test_a_lost_index_is_made_anew(job: Path) -> None:
    shutil.rmtree(job / "store" / "index")
    lost = _cas(job, "status")
    assert 12 == lost.returncode
    assert "cas repair --rebuild-index" in lost.stderr
    done = _cas(job, "repair", "--rebuild-index", "--json")
    assert (0, "") == (done.returncode, done.stderr)
    told = json.loads(done.stdout)
    assert (1, 1, []) == (told["snapshots"], told["complete"], told["problems"])
    again = json.loads(_cas(job, "sync", "--json").stdout.splitlines()[-1])
    assert 0 == again["tiers"][0]["to_fetch"]
    assert 0 == _cas(job, "restore", "one", "--to", "back").returncode
    back = job / "back" / str(job / "source")[1:]
    assert 0 == subprocess.run(["diff", "-r", job / "source", back]).returncode


def test_an_index_that_is_there_is_kept_beside_the_new_one(job: Path) -> None:
    assert 0 == _cas(job, "repair", "--rebuild-index").returncode
    assert 1 == len([*(job / "store").glob("index.old-*")])


def test_damage_is_listed_and_the_rest_goes_on(job: Path) -> None:
    (snapshot,) = (job / "store" / "snapshots").iterdir()
    snapshot.write_bytes(snapshot.read_bytes()[:-1])
    done = _cas(job, "repair", "--rebuild-index")
    assert 12 == done.returncode
    assert "a snapshot is damaged" in done.stderr
    assert 0 == _cas(job, "sync").returncode


def test_what_to_repair_must_be_said(job: Path) -> None:
    assert 2 == _cas(job, "repair").returncode
