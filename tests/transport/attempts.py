"""Connecting over SSH with a config of the test's own: it works, or says why not."""

import os
import subprocess
from pathlib import Path

import pytest

from cas.errors import CasError
from cas.transport.ssh import SshDialer, SshTimeouts


async def works(file: Path) -> None:
    """The host `far` of this config can be logged in to."""
    transport = await SshDialer("far", ["true"], config_paths=[file]).connect()
    assert b"" == await transport.receive()
    await transport.close()


async def failure(host: str, file: Path, timeouts: SshTimeouts | None = None) -> CasError:
    """Why no connection comes about."""
    with pytest.raises(CasError) as caught:
        await SshDialer(host, ["cat"], config_paths=[file], timeouts=timeouts).connect()
    assert caught.value.where.startswith(host)
    return caught.value


def written(file: Path, *lines: str) -> Path:
    """The file, with these lines."""
    file.write_text("\n".join(lines) + "\n")
    return file


def make_key(path: Path, kind: str = "ed25519") -> Path:
    """A new key pair."""
    run("ssh-keygen", "-q", "-t", kind, "-N", "", "-f", str(path))
    return path


def run(*argv: str, **environment: str) -> str:
    """What the program says."""
    whole = {**os.environ, **environment}
    return subprocess.run(argv, env=whole, capture_output=True, text=True, check=True).stdout
