"""What the tests over SSH share."""

import re
from pathlib import Path

import pytest

from cas.transport import channel, ssh
from tests.real.sshd import Server
from tests.transport.ends import LIMIT_SECONDS


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the attempts at a busy server."""
    monkeypatch.setattr(ssh, "RETRY_SECONDS", (0.01, 0.02))


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a server that takes a while to tell how a command ended."""
    monkeypatch.setattr(channel, "LAST_WORDS_SECONDS", LIMIT_SECONDS / 2)


@pytest.fixture
def keyless(sshd: Server, tmp_path: Path) -> Path:
    """A config for the server that names no key."""
    file = tmp_path / "keyless"
    file.write_text(re.sub(".*IdentityFile.*\n", "", sshd.config.read_text()))
    return file
