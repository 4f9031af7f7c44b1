"""Killed at random moments, restarted, and nothing is lost: over a real sshd."""

from __future__ import annotations

import os
import random
import subprocess
from pathlib import Path

import pytest

from tests.real.killing import kill_often, restore_and_check, stored_twice, write_plan
from tests.real.relay import relayed
from tests.real.sshd import running_sshd

ROOT = Path(__file__).parent.parent.parent
CORPUS = Path(__file__).parent.parent / "tools" / "make_corpus.sh"


def _environment(job: Path) -> dict[str, str]:
    # The agent is started by sshd, in a home of its own: it finds the packages by this path.
    return {**os.environ, "XDG_CACHE_HOME": str(job / "cache"), "PYTHONPATH": str(ROOT)}


def _run(job: Path, tiers: list[tuple[str, Path]], *, kills: int, most: int) -> None:
    job.mkdir()
    sums = job / "sums"
    with sums.open("wb") as out:
        for _, path in tiers:
            subprocess.run(
                f"find {str(path)[1:]} -type f -print0 | sort -z | xargs -0 -r sha256sum",
                shell=True, cwd="/", stdout=out, check=True,
            )  # fmt: skip
    env = _environment(job)
    settings = f"SetEnv PYTHONPATH={ROOT} XDG_CACHE_HOME={job / 'agent-cache'}"
    with running_sshd(extra=[settings]) as server, relayed(server.port) as relay:
        config = job / "ssh_config"
        text = server.config.read_text()
        config.write_text(text.replace(f"Port {server.port}", f"Port {relay.port}"))
        known = (server.directory / "known_hosts").read_text()
        (server.directory / "known_hosts").write_text(
            known + known.replace(f":{server.port}", f":{relay.port}")
        )
        write_plan(job, config, server.alias, tiers)
        seen = kill_often(job, env, relay, kills=kills, most=most, seed=11)
    assert 0 == stored_twice(job)
    assert kills == len(seen.came)
    assert sum(seen.gained) > 0  # some were killed after they had brought something
    restore_and_check(job, env, sums, [name for name, _ in tiers])


def test_killed_a_dozen_times(tmp_path: Path) -> None:
    rng = random.Random(3)
    source = tmp_path / "source"
    words = [rng.randbytes(6).hex() for _ in range(3000)]
    for tier in ("one", "two"):
        for number in range(300):
            path = source / tier / f"d{number % 17}" / f"f{number}"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(" ".join(rng.choices(words, k=rng.randrange(5000))))
        (source / tier / "random").write_bytes(rng.randbytes(25_000_000))
    tiers = [("one", source / "one"), ("two", source / "two")]
    _run(tmp_path / "job", tiers, kills=12, most=8_000_000)


@pytest.mark.big
@pytest.mark.root
def test_the_small_corpus_killed_a_hundred_times(tmp_path: Path) -> None:
    named = os.environ.get("CAS_CORPUS")
    corpus = Path(named) if named else tmp_path / "corpus"
    if not named:
        subprocess.run(["bash", str(CORPUS), "--size", "small", str(corpus)], check=True)
    tiers = [(path.name, path) for path in sorted(corpus.iterdir()) if path.name.startswith("tier")]
    assert 10 == len(tiers)
    _run(tmp_path / "job", tiers, kills=100, most=2_500_000)
