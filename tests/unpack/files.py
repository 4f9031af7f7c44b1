"""Files to put into archives, and the tools that do."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from pathlib import Path

import pytest

EPOCH = 1_700_000_000


def some_files(seed: int = 1) -> dict[str, bytes]:
    """Names and contents: empty, tiny, of a chunk, of several; some that compress."""
    rng = random.Random(seed)
    words = [rng.randbytes(6).hex().encode() for _ in range(300)]
    return {
        "empty": b"",
        "tiny": b"a few bytes\n",
        "a/small": rng.randbytes(900),
        "a/chunk": rng.randbytes(16_384),
        "a/" + "long-name-" * 9 + "/" + "x" * 120: b" ".join(rng.choices(words, k=400)),
        "b/text": b" ".join(rng.choices(words, k=40_000)),
        "b/random": rng.randbytes(300_000),
        "b/again": b" ".join(rng.choices(words, k=2000)),
        "c/\u00fcn\u00efcode": rng.randbytes(2000),
    }


def write_tree(root: Path, files: dict[str, bytes]) -> Path:
    """`files` below `root`, all as old as each other."""
    for name, data in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    for folder, folders, names in os.walk(root):
        for name in (*folders, *names):
            os.utime(Path(folder, name), (EPOCH, EPOCH))
    return root


def run(*command: str | Path, cwd: Path, data: bytes | None = None) -> bytes:
    """What a tool writes to standard output; without the tool the test is skipped."""
    if shutil.which(command[0]) is None:
        pytest.skip(f"needs {command[0]}")
    done = subprocess.run(command, cwd=cwd, input=data, check=True, capture_output=True, timeout=60)
    return done.stdout
