"""A real small disk that can be filled."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

BLOCK = 4096


@contextmanager
def small_disk(at: Path, size: str = "4m") -> Iterator[Path]:
    """A file system of `size`, mounted on the new directory `at`."""
    at.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", at], capture_output=True, text=True
    )
    if mounted.returncode:
        pytest.skip(f"cannot mount a small disk: {mounted.stderr.strip()}")
    try:
        yield at
    finally:
        subprocess.run(["umount", at], check=True)


def fill(path: Path) -> None:
    """Leave no room on the disk of `path`."""
    with path.open("wb", buffering=0) as file:
        while os.statvfs(path).f_bavail:
            file.write(bytes(BLOCK))
