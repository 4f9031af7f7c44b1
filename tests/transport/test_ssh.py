"""SSH against real servers: the ways there, the bytes, and shells that are odd."""

import asyncio
import contextlib
import os
import shutil
import signal
import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from cas.errors import TransportError
from cas.transport.base import Transport
from cas.transport.ssh import SshDialer
from tests.real import processes
from tests.real.sshd import Server, running_sshd
from tests.real.users import throwaway_user
from tests.transport import far
from tests.transport.ends import (
    dialer,
    far_ids,
    is_running,
    limited,
    receive_all,
    receive_exactly,
    receive_some,
    send_until_refused,
    until,
)

MIB = 1024 * 1024


@pytest.fixture(scope="module")
def hop() -> Iterator[Server]:
    """A server on the way to another."""
    with running_sshd(alias="hop") as server:
        yield server


async def reaches(host: str, *files: Path) -> Transport:
    """An echo there, which works."""
    transport = await SshDialer(host, ["cat"], config_paths=files).connect()
    await transport.send(b"hello")
    assert b"hello" == await receive_exactly(transport, 5)
    return transport


def logins(server: Server) -> int:
    """How many there were so far."""
    return server.log.count("Accepted publickey")


def sessions_are_over(server: Server) -> bool:
    return [] == processes.descendants(server.pid)


# The ways there.


@limited
async def test_a_jump_host(sshd: Server, hop: Server, tmp_path: Path) -> None:
    file = tmp_path / "config"
    file.write_text(f"Include {sshd.config}\nInclude {hop.config}\nHost far\n  ProxyJump hop\n")
    before = logins(hop)
    transport = await reaches("far", file)
    assert before + 1 == logins(hop)
    await transport.close()
    await until(lambda: sessions_are_over(hop) and sessions_are_over(sshd))


@limited
async def test_several_jump_hosts_with_users_and_ports(
    sshd: Server, hop: Server, tmp_path: Path
) -> None:
    file = tmp_path / "config"
    path = f"{hop.user}@hop:{hop.port},hop"
    file.write_text(f"Include {sshd.config}\nInclude {hop.config}\nHost far\n  ProxyJump {path}\n")
    before = logins(hop)
    await (await reaches("far", file)).close()
    assert before + 2 == logins(hop)


@limited
async def test_a_jump_host_of_a_jump_host(sshd: Server, hop: Server, tmp_path: Path) -> None:
    file = tmp_path / "config"
    file.write_text(
        "Host far\n  ProxyJump middle\n"
        f"Host middle\n  HostName {hop.host}\n  HostKeyAlias [{hop.host}]:{hop.port}\n"
        "  ProxyJump hop\n"
        f"{hop.config.read_text().replace('Host hop', 'Host hop middle')}"
        f"{sshd.config.read_text()}"
    )
    before = logins(hop)
    await (await reaches("far", file)).close()
    assert before + 2 == logins(hop)


@limited
async def test_a_proxy_command(sshd: Server, hop: Server, tmp_path: Path) -> None:
    file = tmp_path / "config"
    proxy = f"ssh -F {hop.config} -W %h:%p hop 2>{tmp_path}/stderr"
    file.write_text(f"Host far\n  ProxyCommand {proxy}\nInclude {sshd.config}\n")
    transport = await reaches("far", file)
    assert transport.bytes_in > 1000 < transport.bytes_out
    await transport.close()
    await until(lambda: sessions_are_over(hop) and sessions_are_over(sshd))


@limited
async def test_a_proxy_command_that_does_not_end_by_itself(
    sshd: Server, hop: Server, tmp_path: Path
) -> None:
    file, script, pid = tmp_path / "config", tmp_path / "proxy", tmp_path / "pid"
    script.write_text(f"echo $$ >{pid}; ssh -F {hop.config} -W $1:$2 hop; exec sleep 600")
    file.write_text(f"Host far\n  ProxyCommand sh {script} %h %p\nInclude {sshd.config}\n")
    transport = await reaches("far", file)
    await transport.close()
    assert not is_running(int(pid.read_text()))


@limited
async def test_an_address_goes_before_the_config(sshd: Server, tmp_path: Path) -> None:
    file = tmp_path / "config"
    text = sshd.config.read_text()
    file.write_text(text.replace(f"User {sshd.user}", "User nobody").replace("Port ", "Port 1"))
    await (await reaches(f"{sshd.user}@far:{sshd.port}", file)).close()


@limited
async def test_a_name_with_several_addresses(sshd: Server, tmp_path: Path) -> None:
    file = tmp_path / "config"
    known_as = f"HostKeyAlias [{sshd.host}]:{sshd.port}"
    file.write_text(f"HostName localhost\n{known_as}\nInclude {sshd.config}\n")
    await (await reaches("far", file)).close()


@limited
async def test_known_hosts_of_the_system_hashed_and_among_rubbish(
    sshd: Server, tmp_path: Path
) -> None:
    known = tmp_path / "known%hosts"
    shutil.copyfile(sshd.directory / "known_hosts", known)
    hash_names(known)
    known.write_text(f"|1|rubbish\n\n# a remark\n@odd x y\n{known.read_text()}")
    file = tmp_path / "config"
    file.write_text(
        f"Host far\n  UserKnownHostsFile {tmp_path}/none\n"
        f"  GlobalKnownHostsFile {tmp_path}/known%%hosts\nInclude {sshd.config}\n"
    )
    await (await reaches("far", file)).close()


def hash_names(known: Path) -> None:
    argv = ["ssh-keygen", "-q", "-H", "-f", str(known)]
    subprocess.run(argv, check=True, capture_output=True)
    assert known.read_text().startswith("|1|")


# The bytes.


@limited
async def test_every_byte_of_the_stream_is_counted(sshd: Server, tmp_path: Path) -> None:
    async with counting_relay(sshd) as (port, counted):
        file = tmp_path / "config"
        known_as = f"HostKeyAlias [{sshd.host}]:{sshd.port}"
        file.write_text(f"Host far\n  Port {port}\n  {known_as}\nInclude {sshd.config}\n")
        transport = await reaches("far", file)
        data = far.stream(5 * MIB)
        await asyncio.gather(transport.send(data), receive_exactly(transport, len(data)))
        await until(lambda: counted == [transport.bytes_out, transport.bytes_in])
        assert min(counted) > len(data)
        await transport.close()


@contextlib.asynccontextmanager
async def counting_relay(server: Server) -> AsyncIterator[tuple[int, list[int]]]:
    """A port that leads to the server, and what went through it: [to it, from it]."""
    counted = [0, 0]

    async def relay(way: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(MIB):
                counted[way] += len(data)
                writer.write(data)
                await writer.drain()
        writer.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        to_reader, to_writer = await asyncio.open_connection(server.host, server.port)
        await asyncio.gather(relay(0, reader, to_writer), relay(1, to_reader, writer))

    listener = await asyncio.start_server(serve, server.host)
    try:
        yield listener.sockets[0].getsockname()[1], counted
    finally:
        listener.close()
        await listener.wait_closed()


@pytest.mark.parametrize("side", ["client", "server"])
@limited
async def test_new_keys_every_megabyte(side: str, tmp_path: Path) -> None:
    limit = "RekeyLimit 1M"
    with running_sshd(extra=[limit] if side == "server" else []) as server:
        file = tmp_path / "config"
        file.write_text(f"Host far\n  {limit}\n" if side == "client" else "")
        transport = await dialer(server, "echo", config_paths=[file, server.config]).connect()
        data = far.stream(50 * MIB)
        _, back = await asyncio.gather(transport.send(data), receive_exactly(transport, len(data)))
        assert data == back
        await transport.close()


@limited
async def test_a_banner_before_the_login_is_no_part_of_the_stream(tmp_path: Path) -> None:
    banner = tmp_path / "banner"
    banner.write_text("All use is recorded.\n" * 100)
    with running_sshd(extra=[f"Banner {banner}"]) as server:
        await (await reaches("far", server.config)).close()


@limited
async def test_a_killed_session_of_the_server_is_noticed(sshd: Server) -> None:
    transport = await dialer(sshd, "linger").connect()
    _, parent, _ = far_ids(await receive_some(transport))
    assert parent in processes.descendants(sshd.pid)
    os.kill(parent, signal.SIGKILL)
    with pytest.raises(TransportError, match="connection was lost"):
        await receive_all(transport)
    with pytest.raises(TransportError, match="connection was lost"):
        await send_until_refused(transport)
    await transport.close()


@limited
async def test_a_command_that_is_not_there(sshd: Server) -> None:
    transport = await SshDialer("far", ["/no/such"], config_paths=[sshd.config]).connect()
    assert b"" == await receive_all(transport)
    await transport.close()
    *said, how = transport.complaints().splitlines()
    assert "exit status 127" == how
    assert "/no/such" in said[0]


# Login shells.

ARGUMENTS = ["it's", "a\\b", "!!", "$HOME", "`id`", "*", "~", "", "-n", "a;b|c&d<e>f(g){h}", "#"]
NOISE = b"echo noise; echo complaint >/dev/stderr\n"
START_UP = {
    "/bin/dash": ".profile",
    "/bin/bash": ".bashrc",
    "/usr/bin/zsh": ".zshenv",
    "/usr/bin/tcsh": ".tcshrc",
    "/usr/bin/fish": ".config/fish/config.fish",
}


@pytest.mark.root
@pytest.mark.parametrize("shell", START_UP)
@limited
async def test_odd_login_shells(sshd: Server, shell: str) -> None:
    script = 'printf "<%s>" "$@"; cat'
    with throwaway_user(shell, {START_UP[shell]: NOISE}) as user:
        file = sshd.config_for(user.name)
        command = ["sh", "-c", script, "sh", *ARGUMENTS]
        transport = await SshDialer("far", command, config_paths=[file]).connect()
        expected = "".join(f"<{argument}>" for argument in ARGUMENTS).encode()
        data = bytearray()
        while not data.endswith(expected):
            data += await receive_some(transport)
        await transport.send(bytes(range(256)))
        assert bytes(range(256)) == await receive_exactly(transport, 256)
        await transport.close()
