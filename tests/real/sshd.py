"""A real OpenSSH server for tests, on a free port, with keys and files of its own.

    with running_sshd() as server:
        server.ssh("true", check=True)          # OpenSSH's own client
        connect(server.alias, server.config)    # the product, with an ssh config to read

It runs as root (then any user may log in) or as an ordinary user (then only that one). Nothing of
the machine's own configuration is read, on either side. Whatever a session left running ends
with it.
"""

import contextlib
import getpass
import os
import re
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.real import processes

SSHD = "/usr/sbin/sshd"
MARK = "CAS_TEST_SSHD"
Spawn = Callable[..., "subprocess.Popen[Any]"]

# Every line may be overridden by one given as `extra`: sshd takes the first of each keyword.
SERVER_CONFIG = """\
ListenAddress {listen}:{port}
HostKey {directory}/host_key
AuthorizedKeysFile {directory}/authorized_keys_%u {directory}/authorized_keys
PidFile none
UsePAM no
StrictModes no
PermitRootLogin prohibit-password
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitUserEnvironment yes
PrintMotd no
PrintLastLog no
UseDNS no
Subsystem sftp internal-sftp
LogLevel VERBOSE
SetEnv {mark}={token}
"""

CLIENT_CONFIG = """\
Host {alias}
  HostName {host}
  Port {port}
  User {user}
  IdentityFile {directory}/user_key
  IdentitiesOnly yes
  UserKnownHostsFile {directory}/known_hosts
  GlobalKnownHostsFile /dev/null
  StrictHostKeyChecking yes
"""


@dataclass(frozen=True, slots=True)
class Server:
    """A running server: what a client must know to log in, and where its log is."""

    alias: str
    host: str
    port: int
    user: str
    config: Path
    directory: Path
    token: str
    pid: int

    @property
    def log(self) -> str:
        """What sshd has said so far."""
        return (self.directory / "sshd.log").read_text(errors="replace")

    def config_for(self, user: str) -> Path:
        """A client's config like `config`, with the same alias, to log in as another user."""
        path = self.directory / f"ssh_config.{user}"
        text = CLIENT_CONFIG.format(
            alias=self.alias, host=self.host, port=self.port, user=user, directory=self.directory
        )
        path.write_text(text)
        return path

    def argv(self, *command: str, config: Path | None = None) -> list[str]:
        """The command line of OpenSSH's client that runs command there, joined by spaces."""
        return [
            "ssh",
            "-F",
            str(config or self.config),
            "-o",
            "BatchMode=yes",
            self.alias,
            *command,
        ]

    def ssh(
        self, *command: str, config: Path | None = None, check: bool = False, data: bytes = b""
    ) -> subprocess.CompletedProcess[bytes]:
        """Run command there with OpenSSH's client, data on its standard input.

        Only over loopback: a server in a namespace is reached from its link's client side, with
        `argv`; from here the packets would leave the machine.
        """
        if not self.host.startswith("127."):
            raise ValueError(f"{self.host} is not loopback: run argv() on the link's client side")
        argv = self.argv(*command, config=config)
        return subprocess.run(argv, input=data, capture_output=True, check=check, timeout=60)

    def sessions(self) -> list[int]:
        """The ids of what sessions have started and is still running, daemons too."""
        return processes.marked(MARK, self.token)


@contextlib.contextmanager
def running_sshd(
    *,
    extra: Sequence[str] = (),
    listen: str = "127.0.0.1",
    alias: str = "far",
    user: str | None = None,
    spawn: Spawn = subprocess.Popen,
) -> Iterator[Server]:
    """Start a server, wait until it listens, and end it and all its sessions afterwards.

    extra are lines of sshd_config, put first and so stronger than ours ("MaxStartups 2"). spawn
    starts the process: to have it in a namespace, give it BadLink.popen bound to the server's side,
    and the address there as listen. Skips the test where OpenSSH's server or client is missing.
    """
    for program in (SSHD, "ssh", "ssh-keygen"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is missing (Debian: openssh-server, openssh-client)")
    directory = Path(tempfile.mkdtemp(prefix="cas-sshd-"))
    try:
        directory.chmod(0o755)  # other users' sessions read authorized_keys in it
        _make_keys(directory)
        token = secrets.token_hex(8)
        process, port = _start(directory, [*extra], listen, token, spawn)
        try:
            yield _server(directory, alias, listen, port, user, token, process.pid)
        finally:
            _end(process, token)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _make_keys(directory: Path) -> None:
    for name in ("host_key", "user_key"):
        keygen = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f"]
        subprocess.run([*keygen, str(directory / name)], check=True, timeout=60)
    shutil.copyfile(directory / "user_key.pub", directory / "authorized_keys")
    # For whoever runs the tests a home without start-up files: what theirs do is slow, and some
    # take locks that a session which is killed leaves behind.
    home = directory / "home"
    home.mkdir()
    public = (directory / "user_key.pub").read_text()
    own = directory / f"authorized_keys_{getpass.getuser()}"
    own.write_text(f'environment="HOME={home}" {public}')
    own.chmod(0o644)
    (directory / "authorized_keys").chmod(0o644)


def _server(
    directory: Path, alias: str, listen: str, port: int, user: str | None, token: str, pid: int
) -> Server:
    public = (directory / "host_key.pub").read_text()
    (directory / "known_hosts").write_text(f"[{listen}]:{port} {public}")
    user = user or getpass.getuser()
    config = directory / "ssh_config"
    server = Server(alias, listen, port, user, config, directory, token, pid)
    server.config_for(user).rename(config)
    return server


def _start(
    directory: Path, extra: list[str], listen: str, token: str, spawn: Spawn
) -> tuple["subprocess.Popen[Any]", int]:
    """Try free ports until one is still free when sshd wants it."""
    if os.geteuid() == 0:
        os.makedirs(
            "/run/sshd", mode=0o755, exist_ok=True
        )  # where its unprivileged half is locked in
    if _version() >= (9, 8):
        extra.append("PerSourcePenalties no")  # all tests come from one address
    for _ in range(10):
        port = _free_port()
        config = SERVER_CONFIG.format(
            listen=listen, port=port, directory=directory, mark=MARK, token=token
        )
        (directory / "sshd_config").write_text("\n".join([*extra, config]))
        process = _launch(directory, spawn)
        if _listens(directory, process):
            return process, port
        log = (directory / "sshd.log").read_text(errors="replace")
        if "Address already in use" not in log:
            pytest.fail(f"sshd did not start:\n{log}")
    pytest.fail("sshd found no free port in ten tries")


def _launch(directory: Path, spawn: Spawn) -> "subprocess.Popen[Any]":
    log = directory / "sshd.log"
    log.write_bytes(b"")
    argv = [SSHD, "-D", "-f", str(directory / "sshd_config"), "-E", str(log)]
    return spawn(
        argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


def _listens(directory: Path, process: "subprocess.Popen[Any]") -> bool:
    """Wait for the line in its log: a connection to try would need the server's namespace."""
    deadline = time.monotonic() + 60
    while process.poll() is None:
        if b"Server listening on" in (directory / "sshd.log").read_bytes():
            return True
        if time.monotonic() > deadline:
            process.kill()
        time.sleep(0.01)
    return False


def _end(process: "subprocess.Popen[Any]", token: str) -> None:
    """Stop it, so that it starts no more sessions; kill the tree below it, then the daemons."""
    if process.poll() is None:
        process.send_signal(signal.SIGSTOP)
        tree = processes.descendants(process.pid)
        process.kill()
        processes.kill(tree)
        processes.wait_until_gone(tree)
    process.wait(timeout=60)
    while left := processes.marked(MARK, token):
        processes.kill(left)
        if stuck := processes.wait_until_gone(left):
            pytest.fail(f"processes {stuck} of the test's sshd would not end")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _version() -> tuple[int, int]:
    said = subprocess.run(["ssh", "-V"], capture_output=True, text=True, timeout=60).stderr
    found = re.search(r"OpenSSH_(\d+)\.(\d+)", said)
    return (int(found[1]), int(found[2])) if found else (0, 0)
