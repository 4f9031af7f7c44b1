"""What every transport does alike: in memory, to a child, over SSH."""

import asyncio
import contextlib
import hashlib
import os
import signal
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import cast

import pytest

from cas.errors import TransportError
from cas.transport.base import TAIL_LIMIT, Transport
from tests.real.sshd import running_sshd
from tests.transport import far
from tests.transport.ends import (
    ChildEnds,
    Ends,
    MemoryEnds,
    SshEnds,
    far_ids,
    is_running,
    limited,
    receive_all,
    receive_exactly,
    receive_some,
    send_until_refused,
    settled,
    until,
)

MIB = 1024 * 1024
LARGE = 24 * MIB
UNDER_WAY = 6 * MIB  # 3 MiB in the transport; the rest in pipes and in sshd


@pytest.fixture(scope="module")
def ssh_ends() -> Iterator[SshEnds]:
    with running_sshd() as server:
        yield SshEnds(server)


@pytest.fixture
async def memory_ends() -> AsyncIterator[MemoryEnds]:
    memory = MemoryEnds()
    yield memory
    await memory.end()


@pytest.fixture
def child_ends() -> ChildEnds:
    return ChildEnds()


@pytest.fixture(params=["memory_ends", "child_ends", "ssh_ends"])
def ends(request: pytest.FixtureRequest) -> Ends:
    return cast(Ends, request.getfixturevalue(request.param))


@pytest.fixture(params=["child_ends", "ssh_ends"])
def processes(request: pytest.FixtureRequest) -> Ends:
    """Those whose far end is a process."""
    return cast(Ends, request.getfixturevalue(request.param))


@pytest.fixture
async def echo(ends: Ends) -> AsyncIterator[Transport]:
    transport = await ends.connect("echo")
    yield transport
    await transport.close()


@limited
async def test_bytes_come_back_as_they_went(echo: Transport, ends: Ends) -> None:
    total = 0
    for size in (1, 2, 4095, 64 * 1024, 64 * 1024 + 1, 8 * MIB, 1):
        data = far.stream(size)
        _, back = await asyncio.gather(echo.send(data), receive_exactly(echo, size))
        assert data == back
        total += size
    if ends.exact:
        assert (total, total) == (echo.bytes_out, echo.bytes_in)
    else:
        assert min(echo.bytes_out, echo.bytes_in) > total


@limited
async def test_an_empty_send_is_nothing(echo: Transport) -> None:
    await echo.send(b"")
    await echo.send(b"x")
    assert b"x" == await echo.receive()


@limited
async def test_small_sends_keep_their_order(echo: Transport) -> None:
    pieces = [bytes([number % 256]) * (number % 700) for number in range(2000)]
    whole = b"".join(pieces)

    async def send_all() -> None:
        for piece in pieces:
            await echo.send(piece)

    _, back = await asyncio.gather(send_all(), receive_exactly(echo, len(whole)))
    assert whole == back


@limited
async def test_sends_of_several_tasks_do_not_mix(echo: Transport) -> None:
    size = 3 * MIB
    tasks = [asyncio.create_task(echo.send(letter * size)) for letter in (b"a", b"b", b"c")]
    back = await receive_exactly(echo, 3 * size)
    await asyncio.gather(*tasks)
    runs = [back[start : start + size] for start in range(0, 3 * size, size)]
    assert {b"a" * size, b"b" * size, b"c" * size} == set(runs)


@limited
async def test_the_end_of_the_stream_is_seen_and_stays(ends: Ends, tmp_path: Path) -> None:
    transport = await ends.connect("source", str(5 * MIB), str(tmp_path / "progress"))
    assert far.stream(5 * MIB) == await receive_all(transport)
    assert [b"", b""] == [await transport.receive(), await transport.receive()]
    await transport.close()
    assert "" == transport.complaints()


@limited
async def test_a_sender_waits_for_a_slow_reader(ends: Ends, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    transport = await ends.connect("sink", str(LARGE), str(gate))
    data = far.stream(LARGE)
    handed_over = 0

    async def send_all() -> None:
        nonlocal handed_over
        for start in range(0, LARGE, far.BLOCK):
            await transport.send(data[start : start + far.BLOCK])
            handed_over = start + far.BLOCK

    sending = asyncio.create_task(send_all())
    assert await settled(lambda: handed_over) <= UNDER_WAY
    assert not sending.done()
    gate.touch()
    await sending
    assert hashlib.sha256(data).hexdigest().encode() == await receive_exactly(transport, 64)
    await transport.close()


@limited
async def test_one_large_send_waits_too(ends: Ends, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    transport = await ends.connect("sink", str(LARGE), str(gate))
    data = far.stream(LARGE)
    sending = asyncio.create_task(transport.send(data))
    assert await settled(lambda: transport.bytes_out) <= UNDER_WAY
    assert not sending.done()
    gate.touch()
    await sending
    assert hashlib.sha256(data).hexdigest().encode() == await receive_exactly(transport, 64)
    await transport.close()


@limited
async def test_a_far_end_waits_for_us(ends: Ends, tmp_path: Path) -> None:
    progress = tmp_path / "progress"
    progress.write_text("0")
    transport = await ends.connect("source", str(LARGE), str(progress))
    first = await receive_some(transport)
    assert await settled(lambda: int(progress.read_text() or "0")) <= UNDER_WAY
    assert transport.bytes_in <= UNDER_WAY
    assert far.stream(LARGE) == first + await receive_all(transport)
    await transport.close()


@limited
async def test_closing_while_the_far_end_sends(ends: Ends, tmp_path: Path) -> None:
    transport = await ends.connect("source", str(LARGE), str(tmp_path / "progress"))
    await receive_some(transport)
    await transport.close()
    for again in (transport.receive(), transport.send(b"x"), transport.send(b"")):
        with pytest.raises(TransportError, match="closed here"):
            await again
    await transport.close()


@limited
async def test_closing_wakes_those_that_wait(ends: Ends, tmp_path: Path) -> None:
    transport = await ends.connect("sink", str(LARGE), str(tmp_path / "gate"))
    tasks = [
        asyncio.create_task(transport.receive()),
        asyncio.create_task(transport.send(bytes(LARGE))),
    ]
    await settled(lambda: transport.bytes_out)
    await asyncio.gather(transport.close(), transport.close())
    for task in tasks:
        with pytest.raises(TransportError, match="closed here"):
            await task


@limited
async def test_a_far_end_that_ended_takes_no_more(ends: Ends, tmp_path: Path) -> None:
    transport = await ends.connect("source", "1", str(tmp_path / "progress"))
    await receive_all(transport)
    with pytest.raises(TransportError):
        await send_until_refused(transport)
    await transport.close()


@limited
async def test_a_killed_far_end_is_noticed(processes: Ends) -> None:
    transport = await processes.connect("linger")
    pid, _, _ = far_ids(await receive_some(transport))
    sending = asyncio.create_task(send_until_refused(transport))
    os.kill(pid, signal.SIGKILL)
    with contextlib.suppress(TransportError):
        assert b"" == await transport.receive()
    with pytest.raises(TransportError):
        await sending
    await transport.close()
    assert "ended by SIGKILL" == transport.complaints()


@limited
async def test_the_end_of_a_long_complaint_is_kept(processes: Ends) -> None:
    transport = await processes.connect("complain")
    assert b"done" == await receive_all(transport)
    await transport.close()
    *lines, how = transport.complaints().splitlines()
    assert "exit status 3" == how
    shown = [far.complaint(number).replace("\x1b", "\\x1b") for number in range(far.COMPLAINTS)]
    assert shown[-len(lines) :] == lines
    assert TAIL_LIMIT - 100 < len("\n".join(lines)) < TAIL_LIMIT * 2


@limited
async def test_the_far_end_ends_with_the_connection(processes: Ends) -> None:
    transport = await processes.connect("linger")
    pid, _, _ = far_ids(await receive_some(transport))
    await transport.close()
    await until(lambda: not is_running(pid))
