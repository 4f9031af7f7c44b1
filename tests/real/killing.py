"""A sync over a real sshd that is killed again and again, and what must hold after each kill."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from cas.frame import SEGMENT_STORED_LIMIT
from cas.pack import read_records
from cas.pull.sync import BUDGET
from tests.real.relay import Relay

SYNC = (sys.executable, "-m", "cli", "sync")
ALLOWANCE = 2 * SEGMENT_STORED_LIMIT  # login, pages, and segments that were not whole yet


@dataclass(slots=True)
class Kills:
    """What was seen of each run: bytes that came in it, bytes that were in the packs afterwards
    and not before."""

    came: list[int] = field(default_factory=list)
    gained: list[int] = field(default_factory=list)

    @property
    def lost(self) -> list[int]:
        """Bytes of each run that came and were not kept."""
        return [came - gained for came, gained in zip(self.came, self.gained, strict=True)]


def kill_often(
    job: Path, env: dict[str, str], relay: Relay, *, kills: int, most: int, seed: int
) -> Kills:
    """Start `cas sync` in `job` and SIGKILL it at a random moment, `kills` times; then let it end.

    The moment is some milliseconds after a random number of bytes, up to `most`, has come: on a
    busy machine, seconds would kill nothing but start-ups. A run may also end before. Asserts that
    what came and was not kept is no more than may be under way.
    """
    rng = random.Random(seed)
    seen = Kills()
    for _ in range(kills):
        came, kept = relay.down, stored_bytes(job)
        process = subprocess.Popen(SYNC, cwd=job, env=env, stdout=subprocess.DEVNULL, stderr=-3)
        target = came + rng.randrange(most)
        while relay.down < target and process.poll() is None:
            time.sleep(0.005)
        time.sleep(rng.uniform(0, 0.1))
        process.kill()
        process.wait()
        relay.settle()
        seen.came.append(relay.down - came)
        seen.gained.append(stored_bytes(job) - kept)
        assert seen.lost[-1] <= BUDGET + ALLOWANCE
    done = subprocess.run(SYNC, cwd=job, env=env, capture_output=True, text=True, timeout=600)
    assert (0, "") == (done.returncode, "" if not done.returncode else done.stderr)
    return seen


def stored_bytes(job: Path) -> int:
    """The bytes of all packs now."""
    packs = job / "store" / "packs"
    return sum(path.stat().st_size for path in packs.iterdir()) if packs.exists() else 0


def stored_twice(job: Path) -> int:
    """Bytes of content chunks that lie in the packs more than once: fetched again for nothing."""
    seen: set[bytes] = set()
    twice = 0
    for path in sorted((job / "store" / "packs").iterdir()):
        fd = os.open(path, os.O_RDONLY)
        size = os.fstat(fd).st_size
        for record in read_records(lambda n, at, fd=fd: os.pread(fd, n, at), size):
            segment = record.segment
            if segment is None or segment.meta:
                continue
            for id_, length in zip(segment.ids, segment.lengths, strict=True):
                twice += length if id_ in seen else 0
                seen.add(id_)
        os.close(fd)
    return twice


def write_plan(job: Path, config: Path, host: str, tiers: Sequence[tuple[str, Path]]) -> None:
    """A plan of one source over SSH, whose agent is this very cas."""
    lines = [
        'store = "store"',
        "[source.far]",
        f'host = "{host}"',
        f'ssh_config = "{config}"',
        f'agent = "{sys.executable} -m cli serve"',
    ]
    for name, path in tiers:
        lines += ["[[tier]]", f'name = "{name}"', 'source = "far"', f'paths = ["{path}"]']
    (job / "plan.toml").write_text("\n".join(lines) + "\n")


def restore_and_check(job: Path, env: dict[str, str], sums: Path, tiers: Sequence[str]) -> None:
    """Restore all tiers and let sha256sum compare them with `sums`, made at the source."""
    command = (sys.executable, "-m", "cli", "restore", *tiers, "--to", "restored")
    subprocess.run(command, cwd=job, env=env, check=True, capture_output=True, timeout=600)
    subprocess.run(
        ("sha256sum", "--quiet", "-c", str(sums)), cwd=job / "restored", check=True, timeout=600
    )
