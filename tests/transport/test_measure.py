"""The kernel's numbers of a connection, and a shell that answers questions."""

from __future__ import annotations

import asyncio
import shutil
import socket
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cas.transport.channel import Channel
from cas.transport.child import ChildDialer
from cas.transport.measure import measure
from cas.transport.ssh import SshDialer
from cas.transport.talk import NoShell, Shell
from cas.transport.tcpinfo import own_state, state_of_host, state_of_ss
from tests.real.sshd import Server, running_sshd
from tests.transport.ends import limited

SS = """\
State Recv-Q Send-Q Local Address:Port    Peer Address:Port Process
ESTAB 0      36     198.18.0.2:22         198.18.0.1:51234
\t ts sack cubic wscale:10,10 rto:404 rtt:201.5/0.9 ato:40 mss:1448 pmtu:1500 rcvmss:536 \
advmss:1448 cwnd:10 ssthresh:7 bytes_sent:1200 bytes_retrans:60 segs_out:512 segs_in:400 \
data_segs_out:500 data_segs_in:20 send 574Kbps lastsnd:4 retrans:0/27 reordering:9 minrtt:200.1
"""


def test_what_ss_says_is_read() -> None:
    state = state_of_ss(SS)
    assert state is not None
    assert (500, 27, 0.2015, 0.2001) == (state.segments, state.again, state.rtt, state.least_rtt)
    assert (1448, 1500, "cubic") == (state.segment_size, state.path_mtu, state.control)
    clean = state_of_ss(SS.replace(" retrans:0/27", ""))
    assert clean is not None
    assert 0 == clean.again


@given(st.text())
def test_any_text_of_ss_is_read(text: str) -> None:
    assert state_of_ss(text + "\n") is None or "data_segs_out" in text
    assert state_of_ss(SS + text) is not None


def test_a_host_counts_all_that_it_sends() -> None:
    names = "Tcp: RtoAlgorithm OutSegs RetransSegs"
    before, after = f"{names}\nTcp: 1 100 7", f"{names}\nTcp: 1 1100 57"
    state = state_of_host(f"Ip: 1\n{before}\n", f"Ip: 1\n{after}\n")
    assert state is not None
    assert (1000, 50) == (state.segments, state.again)
    assert state_of_host("", after) is None
    assert state_of_host(after, before) is None
    assert state_of_host(before, before) is None


def test_our_own_end_is_read_from_its_socket() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        near = socket.create_connection(listener.getsockname())
        far, _ = listener.accept()
        with near, far:
            near.sendall(b"x" * 100)
            far.recv(100)
            state = own_state(near)
    assert state is not None
    assert (1, 0) == (state.segments, state.again)
    assert 0 < state.least_rtt <= 1
    assert state.path_mtu > state.segment_size > 500
    with socket.socket(socket.AF_UNIX) as other:
        assert own_state(other) is None
    assert own_state(None) is None


def test_ss_itself_is_understood() -> None:
    if shutil.which("ss") is None:
        pytest.skip("ss is missing (Debian: iproute2)")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        near = socket.create_connection(listener.getsockname())
        far, _ = listener.accept()
        with near, far:
            near.sendall(b"x" * 100)
            port = near.getsockname()[1]
            said = subprocess.run(
                ["ss", "-tin", f"sport = :{port}"], capture_output=True, text=True, check=True
            ).stdout
    state = state_of_ss(said)
    assert state is not None, said
    assert (1, 0) == (state.segments, state.again)
    assert state.control == Path("/proc/sys/net/ipv4/tcp_congestion_control").read_text().strip()


@limited
async def test_a_shell_answers_each_question_by_itself() -> None:
    transport = await ChildDialer(["sh", "-c", "echo Welcome; exec sh"]).connect()
    shell = Shell(transport, "here")
    assert "one" == await shell.ask("printf one", 60)
    assert "" == await shell.ask(":", 60)
    assert "x" * 5000 == await shell.ask(f"echo {'x' * 5000}", 60)
    with pytest.raises(NoShell):
        await shell.ask("exit", 60)
    await transport.close()


@limited
async def test_a_shell_that_does_not_answer() -> None:
    transport = await ChildDialer(["sleep", "60"]).connect()
    with pytest.raises(asyncio.TimeoutError):
        await Shell(transport, "here").ask(":", 0.1)
    await transport.close()


@limited
async def test_the_library_is_asked_for_the_socket(sshd: Server) -> None:
    dialer = SshDialer("far", ["cat"], config_paths=[sshd.config])
    transport = await dialer.connect()
    assert isinstance(transport, Channel)
    assert own_state(transport.fact("socket")) is not None
    assert "none" == transport.fact("recv_compression")
    assert transport.fact("no such thing") is None
    await transport.close()
    assert transport.fact("socket") is None


@limited
async def test_where_ss_is_missing_the_host_is_asked() -> None:
    tools = ("/bin/cat", "/usr/bin/head", "/bin/sh")
    with running_sshd() as server:
        path = server.directory / "bin"
        path.mkdir()
        for tool in tools:
            (path / tool.rpartition("/")[2]).symlink_to(tool)

        def reach(words: Sequence[str]) -> SshDialer:
            named = ["env", f"PATH={path}", *words]
            return SshDialer("far", named, config_paths=[server.config])

        link = await measure(reach, quick=False)
    assert not link.exact
    assert link.sent is not None
    assert link.sent.segments > 0
    assert [1, 4] == [rate.lanes for rate in link.rates]
    assert all(rate.speed > 0 for rate in link.rates)


@limited
async def test_downloads_that_are_refused_leave_the_rest(sshd: Server) -> None:
    def reach(words: Sequence[str]) -> SshDialer:
        command = words if len(words) == 1 else ["false"]
        return SshDialer("far", command, config_paths=[sshd.config])

    link = await measure(reach, quick=False)
    assert "sends nothing" in link.trouble
    assert [] == link.rates
    assert link.large is not None
