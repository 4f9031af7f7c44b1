"""The server for tests does what the tests that use it rely on."""

import functools
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.real import processes
from tests.real.sshd import Server, running_sshd
from tests.real.users import banner_shell, throwaway_user
from tests.tools.badlink import BadLink


def test_a_command_runs_with_the_written_config(sshd: Server) -> None:
    ran = subprocess.run(
        ["ssh", "-F", str(sshd.config), sshd.alias, "true"], capture_output=True, timeout=60
    )
    assert (0, b"", b"") == (ran.returncode, ran.stdout, ran.stderr)


def test_bytes_and_exit_codes_cross_unchanged(sshd: Server) -> None:
    data = bytes(range(256)) * 1000
    ran = sshd.ssh("cat; exit 7", data=data)
    assert (7, data) == (ran.returncode, ran.stdout)


def test_another_host_key_is_refused(sshd: Server) -> None:
    with running_sshd() as other:
        known = other.directory / "known_hosts"
        known.write_text((sshd.directory / "host_key.pub").read_text())
        ran = other.ssh("true")
    assert 255 == ran.returncode
    assert b"host key" in ran.stderr.lower()


def test_extra_lines_of_config_win() -> None:
    with running_sshd(extra=["ForceCommand echo forced", "LogLevel DEBUG1"]) as server:
        assert b"forced\n" == server.ssh("echo asked", check=True).stdout
        assert "debug1:" in server.log


def test_nothing_is_left_running() -> None:
    with running_sshd() as server:
        server.ssh("setsid sleep 600 >/dev/null 2>&1 </dev/null &", check=True)
        hanging = subprocess.Popen(server.argv("echo up; exec sleep 600"), stdout=subprocess.PIPE)
        assert hanging.stdout is not None
        assert b"up\n" == hanging.stdout.readline()
        started = [server.pid, *processes.descendants(server.pid), *server.sessions()]
        assert len(started) >= 4
    hanging.communicate(timeout=60)
    assert 255 == hanging.returncode
    assert [] == processes.wait_until_gone(started)
    assert [] == server.sessions()
    assert not server.directory.exists()


@pytest.mark.root
@pytest.mark.parametrize("shell", ["/bin/dash", "/bin/bash", "/usr/bin/tcsh", "/usr/bin/fish"])
def test_users_with_other_shells(sshd: Server, shell: str) -> None:
    with throwaway_user(shell) as user:
        config = sshd.config_for(user.name)
        ran = sshd.ssh("id -un; echo $SHELL", config=config, check=True)
        assert [user.name, shell] == ran.stdout.decode().split()
    assert not user.home.exists()


@pytest.mark.root
def test_a_noisy_start_up_file_is_heard(sshd: Server) -> None:
    with throwaway_user("/bin/bash", {".bashrc": b"echo noise\n"}) as user:
        ran = sshd.ssh("echo answer", config=sshd.config_for(user.name), check=True)
    assert b"noise\nanswer\n" == ran.stdout


@pytest.mark.root
def test_a_shell_with_a_banner_is_heard(sshd: Server, tmp_path: Path) -> None:
    shell = banner_shell(sshd.directory, "Hello")
    with throwaway_user(shell) as user:
        ran = sshd.ssh("echo answer", config=sshd.config_for(user.name), check=True)
    assert b"Hello\nanswer\n" == ran.stdout


@pytest.mark.root
def test_it_can_stand_behind_a_bad_link() -> None:
    if not Path("/dev/net/tun").exists() or shutil.which("ip") is None:
        pytest.skip("a bad link needs /dev/net/tun and iproute2")
    with BadLink(loss=1, rtt=20) as link:
        spawn = functools.partial(link.popen, "server")
        with running_sshd(listen=link.server, spawn=spawn) as server:
            with pytest.raises(ValueError, match="not loopback"):
                server.ssh("true")
            ran = link.run("client", server.argv("echo across"), capture_output=True, timeout=60)
    assert b"across\n" == ran.stdout
