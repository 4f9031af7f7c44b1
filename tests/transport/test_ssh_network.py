"""Why there is no SSH connection: the network, who else listens, a server with too much to do."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from cas.errors import LoginError, TransportError
from cas.transport import ssh
from cas.transport.ssh import SshDialer, SshTimeouts
from tests.real.sshd import Server, running_sshd
from tests.transport.attempts import failure, works, written
from tests.transport.ends import limited, until

IMPATIENT = SshTimeouts(connect=0.3, login=0.3)
PATIENT = SshTimeouts(connect=2.0, login=2.0)  # time enough to come as far as it is to come


@limited
async def test_a_port_where_nothing_listens(sshd: Server, tmp_path: Path) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        file = written(tmp_path / "config", f"Port {port}", f"Include {sshd.config}")
        error = await failure("far", file)
    assert isinstance(error, TransportError)
    assert f"far (ssh): 127.0.0.1 port {port} refuses connections" in str(error)


@limited
async def test_a_port_where_nothing_listens_at_any_address(tmp_path: Path) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        lines = "Host far", "  HostName localhost", f"  Port {port}"
        error = await failure("far", written(tmp_path / "config", *lines))
    assert f"localhost port {port} refuses connections" in error.what


@pytest.mark.parametrize("name", ["a..b", f"{'x' * 64}.invalid"])
@limited
async def test_a_name_that_is_none(tmp_path: Path, name: str) -> None:
    file = written(tmp_path / "config", "Host far", f"  HostName {name}")
    error = await failure("far", file)
    assert f"{name} cannot be resolved" in error.what


@limited
async def test_no_address_of_the_wanted_kind(tmp_path: Path) -> None:
    lines = "Host far", "  HostName 127.0.0.1", "  AddressFamily inet6"
    error = await failure("far", written(tmp_path / "config", *lines))
    assert "127.0.0.1 cannot be resolved" in error.what


@limited
async def test_a_host_that_does_not_answer(tmp_path: Path) -> None:
    with socket.socket() as full, contextlib.ExitStack() as waiting:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        port = full.getsockname()[1]
        for _ in range(3):  # what fits in the queue of a listener that accepts nothing
            client = waiting.enter_context(socket.socket())
            client.setblocking(False)
            client.connect_ex(("127.0.0.1", port))
        lines = "Host far", "  HostName 127.0.0.1", f"  Port {port}"
        error = await failure("far", written(tmp_path / "config", *lines), IMPATIENT)
    assert "no answer from 127.0.0.1" in error.what


@contextlib.asynccontextmanager
async def server_that_says(text: bytes, *, hang_up: bool) -> AsyncIterator[list[str]]:
    """Something that listens, and the lines of a config that lead there."""
    closing = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(text)
        if not hang_up:
            await closing.wait()
        writer.close()

    listener = await asyncio.start_server(serve, "127.0.0.1")
    port = listener.sockets[0].getsockname()[1]
    try:
        yield ["Host far", "  HostName 127.0.0.1", f"  Port {port}"]
    finally:
        closing.set()
        listener.close()
        await listener.wait_closed()


@pytest.mark.parametrize(
    ("text", "stage", "mtu"),
    [(b"", "greeting", False), (b"SSH-2.0-Slow\r\n", "key exchange", True)],
)
@limited
async def test_a_host_that_falls_silent(tmp_path: Path, text: bytes, stage: str, mtu: bool) -> None:
    async with server_that_says(text, hang_up=False) as lines:
        error = await failure("far", written(tmp_path / "config", *lines), PATIENT)
    assert f"the {stage} does not come to an end" in error.what
    assert mtu == ("MTU" in error.advice)


@pytest.mark.parametrize(
    "text", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b"SSH-1.5-Old\r\n", b"x" * 10_000, b""]
)
@limited
async def test_a_port_where_something_else_listens(tmp_path: Path, text: bytes) -> None:
    async with server_that_says(text, hang_up=True) as lines:
        error = await failure("far", written(tmp_path / "config", *lines))
    assert isinstance(error, TransportError)
    assert "far (ssh): 127.0.0.1 port" in str(error)


@limited
async def test_a_jump_host_that_gets_no_further(sshd: Server, tmp_path: Path) -> None:
    lines = "Host near", "  ProxyJump far", "  HostName 127.0.0.1", "  Port 1"
    error = await failure("near", written(tmp_path / "config", f"Include {sshd.config}", *lines))
    assert "refused" in error.what


@limited
async def test_a_jump_host_that_refuses_us(keyless: Path, tmp_path: Path) -> None:
    lines = "IdentityAgent none", f"IdentityFile {tmp_path}/none", f"Include {keyless}"
    file = written(tmp_path / "config", "Host near", "  ProxyJump far", "Host *", *lines)
    error = await failure("near", file)
    assert isinstance(error, LoginError)
    assert "near (ssh), by way of far" == error.where


@limited
async def test_a_proxy_command_that_fails(tmp_path: Path) -> None:
    command = "ProxyCommand echo no way >&2"
    error = await failure("far", written(tmp_path / "config", "Host far", command))
    assert "the ProxyCommand ended: no way" in error.what


@limited
async def test_giving_up_closes_what_was_open(tmp_path: Path) -> None:
    ended = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert (await reader.readline()).startswith(b"SSH-2.0-")
        connecting.cancel()
        await reader.read()
        writer.close()
        ended.set()

    listener = await asyncio.start_server(serve, "127.0.0.1")
    port = listener.sockets[0].getsockname()[1]
    file = written(tmp_path / "config", "Host far", "  HostName 127.0.0.1", f"  Port {port}")
    dialer = SshDialer("far", ["cat"], config_paths=[file])
    connecting = asyncio.create_task(dialer.connect())
    with pytest.raises(asyncio.CancelledError):
        await connecting
    await ended.wait()
    listener.close()
    await listener.wait_closed()


# A busy server.


@limited
async def test_a_busy_server_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ssh, "RETRIES", 10_000)  # as many as it takes sshd to see that one has gone
    with running_sshd(extra=["MaxStartups 1"]) as server, socket.socket() as other:
        other.connect((server.host, server.port))
        other.recv(100)
        connecting = asyncio.create_task(works(server.config))
        await until(lambda: "MaxStartups" in server.log)
        other.close()
        await connecting


@limited
async def test_a_server_that_stays_busy() -> None:
    with running_sshd(extra=["MaxStartups 1"]) as server, socket.socket() as other:
        other.connect((server.host, server.port))
        other.recv(100)
        error = await failure("far", server.config)
    assert isinstance(error, TransportError)
    assert "MaxStartups" in error.advice


@limited
async def test_a_server_without_sessions() -> None:
    with running_sshd(extra=["MaxSessions 0"]) as server:
        error = await failure("far", server.config)
    assert "does not start the command" in error.what
