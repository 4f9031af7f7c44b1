"""The one line that finds an agent on a host: in the PATH, or where `cas bootstrap` puts one."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from cas.bootstrap.launch import find_agent, launcher_name
from cas.transport.command import remote_command

SHELLS = [shell for shell in ("dash", "bash", "ksh", "tcsh", "fish") if shutil.which(shell)]
WORDS = ("--attach", "a b'c\"d!\\")
SAYS = '#!/bin/sh\necho {name}\nfor word; do printf "%s\\n" "$word"; done\n'


@pytest.fixture
def host(tmp_path: Path) -> Path:
    """A directory with a home, a place for temporary files, and a PATH without cas."""
    for name in ("home", "tmp", "bin"):
        (tmp_path / name).mkdir()
    for tool in ("id", "sh"):
        (tmp_path / "bin" / tool).symlink_to(str(shutil.which(tool)))
    return tmp_path


def _ask(host: Path, shell: str = "sh", **more: str) -> subprocess.CompletedProcess[str]:
    """What a login shell there makes of the command, two words behind it."""
    environment = {
        "PATH": str(host / "bin"), "HOME": str(host / "home"), "TMPDIR": str(host / "tmp"), **more,
    }  # fmt: skip
    text = remote_command([*find_agent("it's npu"), *WORDS])
    login = [str(shutil.which(shell)), "-c", text]
    return subprocess.run(login, env=environment, capture_output=True, text=True, timeout=300)


def _put(directory: Path) -> Path:
    """An agent that says where it is and how it was called."""
    agent = directory / "agent"
    agent.mkdir(parents=True)
    path = agent / launcher_name()
    path.write_text(SAYS.format(name=directory))
    return path


@pytest.mark.parametrize("shell", SHELLS)
def test_without_any_it_says_what_to_do(host: Path, shell: str) -> None:
    ran = _ask(host, shell)
    assert 127 == ran.returncode
    assert "`cas bootstrap it's npu` puts one on this host" in ran.stderr


@pytest.mark.parametrize("shell", SHELLS)
def test_words_behind_it_come_through_every_login_shell(host: Path, shell: str) -> None:
    place = host / "home" / ".cache" / "cas"
    _put(place)
    assert [str(place), "serve", *WORDS] == _ask(host, shell).stdout.splitlines()


def test_a_cas_in_the_path_comes_first(host: Path) -> None:
    _put(host / "home" / ".cache" / "cas")
    cas = host / "bin" / "cas"
    cas.write_text(SAYS.format(name="installed"))
    cas.chmod(0o755)
    assert ["installed", "serve", *WORDS] == _ask(host).stdout.splitlines()


def test_the_order_is_that_in_which_places_are_tried(host: Path) -> None:
    temporary = host / "tmp" / f"cas-{os.geteuid()}"
    places = [host / "cache" / "cas", host / "home" / ".cache" / "cas", temporary]
    for place in reversed(places):
        _put(place)
        assert str(place) == _ask(host, XDG_CACHE_HOME=str(host / "cache")).stdout.split("\n")[0]


@pytest.mark.root
@pytest.mark.parametrize("up", [0, 1, 2])
def test_what_another_user_has_put_there_is_not_run(host: Path, up: int) -> None:
    launcher = _put(host / "tmp" / f"cas-{os.geteuid()}")
    assert 0 == _ask(host).returncode
    os.chown([launcher, *launcher.parents][up], 12345, -1)
    assert 127 == _ask(host).returncode
