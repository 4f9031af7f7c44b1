"""Who is let in and who is trusted: the config, the host's key, our keys."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from cas.errors import HostKeyError, LoginError, UsageError
from tests.real.sshd import Server, running_sshd
from tests.transport.attempts import failure, make_key, run, works, written
from tests.transport.ends import limited


def fingerprint(public: Path) -> str:
    return run("ssh-keygen", "-l", "-f", str(public)).split()[1]


# The config.


@limited
async def test_a_config_that_is_not_there(tmp_path: Path) -> None:
    error = await failure("far", tmp_path / "none")
    assert isinstance(error, UsageError)
    assert str(tmp_path / "none") in error.what


@limited
async def test_a_config_with_a_mistake(tmp_path: Path) -> None:
    error = await failure("far", written(tmp_path / "config", "", "Port none"))
    assert isinstance(error, UsageError)
    assert f"{tmp_path}/config line 2" in error.what


@limited
async def test_jump_hosts_in_a_circle(tmp_path: Path) -> None:
    error = await failure("far", written(tmp_path / "config", "Host *", "  ProxyJump gate"))
    assert isinstance(error, UsageError)
    assert "circle" in error.what


@pytest.mark.parametrize("line", ["", "Ciphers chacha20-poly1305@openssh.com"])
@limited
async def test_the_cipher(line: str, tmp_path: Path) -> None:
    with running_sshd(extra=["LogLevel DEBUG1"]) as server:
        await works(written(tmp_path / "config", line, f"Include {server.config}"))
        cipher = line.partition(" ")[2] or "aes128-gcm@openssh.com"
        for way in "client->server", "server->client":
            assert f"kex: {way} cipher: {cipher} " in server.log


# The host's key.


@limited
async def test_an_unknown_host_key(sshd: Server, tmp_path: Path) -> None:
    known = tmp_path / "known_hosts"
    file = written(
        tmp_path / "config",
        f"UserKnownHostsFile {known}",
        "StrictHostKeyChecking no",
        f"Include {sshd.config}",
    )
    error = await failure("far", file)
    assert isinstance(error, HostKeyError)
    assert fingerprint(sshd.directory / "host_key.pub") in error.what
    assert f"`ssh -F{file} far`" in error.advice
    scan = f"ssh-keyscan -p {sshd.port} {sshd.host} >> {known}"
    assert f"`{scan}`" in error.advice
    assert not known.exists()

    run("sh", "-c", scan)
    await works(file)


@limited
async def test_nowhere_to_write_a_host_key(sshd: Server, tmp_path: Path) -> None:
    lines = "UserKnownHostsFile /dev/null", "StrictHostKeyChecking no", f"Include {sshd.config}"
    error = await failure("far", written(tmp_path / "config", *lines))
    assert isinstance(error, HostKeyError)
    assert "UserKnownHostsFile that is not /dev/null" in error.advice


@pytest.mark.parametrize("kind", ["ed25519", "ecdsa"])
@limited
async def test_a_changed_host_key(sshd: Server, tmp_path: Path, kind: str) -> None:
    make_key(tmp_path / "other", kind=kind)
    public = (tmp_path / "other.pub").read_text()
    known = written(tmp_path / "known_hosts", "# two", f"[{sshd.host}]:{sshd.port} {public}")
    file = written(tmp_path / "config", f"UserKnownHostsFile {known}", f"Include {sshd.config}")
    error = await failure("far", file)
    assert isinstance(error, HostKeyError)
    assert "CHANGED" in error.what
    assert f"{known}:2 has another" in error.what
    assert f"`ssh-keygen -R '[{sshd.host}]:{sshd.port}' -f {known}`" in error.advice


@limited
async def test_a_revoked_host_key(sshd: Server, tmp_path: Path) -> None:
    public = (sshd.directory / "host_key.pub").read_text()
    known = written(tmp_path / "known_hosts", f"@revoked * {public}")
    with known.open("a") as more:
        more.write((sshd.directory / "known_hosts").read_text())
    file = written(tmp_path / "config", f"UserKnownHostsFile {known}", f"Include {sshd.config}")
    error = await failure("far", file)
    assert isinstance(error, HostKeyError)
    assert "revoked" in error.what


@pytest.mark.parametrize("known", ["rsa", "ecdsa", "ed25519"])
@limited
async def test_a_host_with_several_keys_shows_the_one_that_is_known(
    known: str, tmp_path: Path
) -> None:
    keys = {kind: make_key(tmp_path / kind, kind) for kind in ("rsa", "ecdsa", "ed25519")}
    with running_sshd(extra=[f"HostKey {key}" for key in keys.values()]) as server:
        public = (tmp_path / f"{known}.pub").read_text()
        (server.directory / "known_hosts").write_text(f"[{server.host}]:{server.port} {public}")
        await works(server.config)


@limited
async def test_a_certificate_of_a_known_authority(tmp_path: Path) -> None:
    make_key(tmp_path / "authority")
    make_key(tmp_path / "host")
    sign = ["ssh-keygen", "-q", "-s", str(tmp_path / "authority"), "-I", "x", "-h"]
    run(*sign, "-n", "127.0.0.1", str(tmp_path / "host.pub"))
    certificate = [f"HostKey {tmp_path}/host", f"HostCertificate {tmp_path}/host-cert.pub"]
    with running_sshd(extra=certificate) as server:
        known = server.directory / "known_hosts"
        known.write_text(f"@cert-authority * {(tmp_path / 'authority.pub').read_text()}")
        await works(server.config)
        known.write_text(f"@cert-authority * {(tmp_path / 'host.pub').read_text()}")
        assert isinstance(await failure("far", server.config), HostKeyError)


# The login.


@limited
async def test_a_key_that_is_not_wanted(keyless: Path, sshd: Server, tmp_path: Path) -> None:
    key = make_key(tmp_path / "wrong")
    file = written(tmp_path / "config", f"IdentityFile {key}", f"Include {keyless}")
    error = await failure("far", file)
    assert isinstance(error, LoginError)
    assert f"login of user {sshd.user}; tried {key}" in error.what
    assert "authorized_keys" in error.advice


@limited
async def test_no_key_at_all(keyless: Path, tmp_path: Path) -> None:
    file = written(tmp_path / "config", f"IdentityFile {tmp_path}/none", f"Include {keyless}")
    error = await failure("far", file)
    assert isinstance(error, LoginError)
    assert "no key to offer" in error.what


@pytest.fixture
def locked(sshd: Server, tmp_path: Path) -> Path:
    """The right key, with a passphrase."""
    key = tmp_path / "locked"
    for suffix in ("", ".pub"):
        Path(f"{key}{suffix}").write_text((sshd.directory / f"user_key{suffix}").read_text())
    key.chmod(0o600)
    run("ssh-keygen", "-q", "-p", "-P", "", "-N", "secret", "-f", str(key))
    return key


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[Path]:
    """The socket of an agent with six keys that no server wants."""
    path = tmp_path / "agent"
    started = subprocess.Popen(["ssh-agent", "-D", "-a", str(path)], stdout=subprocess.DEVNULL)
    try:
        while not path.exists():
            assert started.poll() is None
        for number in range(6):
            add(path, make_key(tmp_path / f"other{number}"))
        yield path
    finally:
        started.kill()
        started.wait()


def add(agent: Path, key: Path) -> None:
    run("ssh-add", "-q", str(key), SSH_AUTH_SOCK=str(agent))


@limited
async def test_a_locked_key(keyless: Path, locked: Path, tmp_path: Path) -> None:
    file = written(
        tmp_path / "config",
        "IdentityAgent none",
        f"IdentityFile {locked}",
        f"Include {keyless}",
    )
    error = await failure("far", file)
    assert isinstance(error, LoginError)
    assert f"{locked} has a passphrase" in error.what
    assert f"`ssh-add {locked}`" in error.advice


@pytest.mark.parametrize("only", ["yes", "no"])
@limited
async def test_a_locked_key_that_an_agent_holds_comes_first(
    keyless: Path, locked: Path, agent: Path, sshd: Server, tmp_path: Path, only: str
) -> None:
    add(agent, sshd.directory / "user_key")
    file = written(
        tmp_path / "config",
        f"IdentityAgent {agent}",
        f"IdentityFile {locked}",
        f"IdentitiesOnly {only}",
        f"Include {keyless}",
    )
    await works(file)


@limited
async def test_too_many_keys(keyless: Path, sshd: Server, agent: Path, tmp_path: Path) -> None:
    lines = [f"IdentityAgent {agent}", f"IdentityFile {sshd.directory}/user_key"]
    file = written(tmp_path / "config", *lines, "IdentitiesOnly no", f"Include {keyless}")
    error = await failure("far", file)
    assert isinstance(error, LoginError)
    assert "IdentitiesOnly" in error.advice
    await works(written(tmp_path / "config", *lines, f"Include {keyless}"))
