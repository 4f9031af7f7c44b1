"""Throwaway users of this machine, with login shells and start-up files as odd as real ones.

Only root can make them. Each has a home of its own, may log in to the server of `running_sshd` with
its key (its password is disabled, not locked: sshd without PAM refuses locked accounts), and is
removed with its home and its processes.
"""

import contextlib
import os
import pwd
import secrets
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.real import processes

SECONDS = 120


@dataclass(frozen=True, slots=True)
class User:
    """An account that exists for one test."""

    name: str
    uid: int
    gid: int
    home: Path


@contextlib.contextmanager
def throwaway_user(
    shell: str = "/bin/dash", files: Mapping[str, bytes] | None = None
) -> Iterator[User]:
    """Make a user with this login shell, and files in its home: {".bashrc": b"echo hello\\n"}.

    Skips the test without root, useradd or that shell.
    """
    if os.geteuid() != 0:
        pytest.skip("making a user needs root")
    for program in ("useradd", "userdel", shell):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is missing")
    name = f"castest-{secrets.token_hex(4)}"
    add = ["useradd", "--create-home", "--no-user-group", "--password", "*", "--shell", shell, name]
    _administer(add)
    try:
        account = pwd.getpwnam(name)
        user = User(name, account.pw_uid, account.pw_gid, Path(account.pw_dir))
        for path, content in (files or {}).items():
            _write(user, user.home / path, content)
        yield user
    finally:
        _remove(name)


def banner_shell(directory: Path, banner: str = "Welcome. All use is recorded.") -> str:
    """A login shell that prints a banner on standard output before it does as it was told.

    directory must be open to other users, as the directory of a `Server` is.
    """
    path = directory / "banner-shell"
    path.write_text(f"#!/bin/sh\necho '{banner}'\nexec /bin/sh \"$@\"\n")
    path.chmod(0o755)
    return str(path)


def _write(user: User, path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    for made in (path, *path.parents):
        if made == user.home:
            break
        os.chown(made, user.uid, user.gid)


def _remove(name: str) -> None:
    uid = pwd.getpwnam(name).pw_uid
    while left := processes.owned(uid):
        processes.kill(left)
        if stuck := processes.wait_until_gone(left):
            pytest.fail(f"processes {stuck} of {name} would not end")
    _administer(["userdel", "--remove", name])


def _administer(command: list[str]) -> None:
    """Run a command that changes /etc/passwd: again while others, who may be tests, are doing so.

    Raises AssertionError with what it says when that does not end.
    """
    end = time.monotonic() + SECONDS
    while (done := subprocess.run(command, capture_output=True, text=True)).returncode:
        assert "try again later" in done.stderr, (command, done.stderr)
        assert time.monotonic() < end, (command, done.stderr)
        time.sleep(0.1)
