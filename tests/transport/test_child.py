"""What is special about a child process, and about being one."""

import asyncio
import errno
import os
import sys
from pathlib import Path

import pytest

from cas.errors import TransportError, UsageError
from cas.transport.base import Transport
from cas.transport.child import ChildDialer
from cas.transport.pipes import PipeTransport
from tests.transport.ends import (
    FAR,
    far_ids,
    is_running,
    limited,
    receive_all,
    receive_exactly,
    receive_some,
    until,
)

LARGE = bytes(range(256)) * 4096


async def child(*arguments: str) -> Transport:
    return await ChildDialer([*FAR, *arguments], grace_seconds=1.0).connect()


def python(code: str) -> ChildDialer:
    return ChildDialer([sys.executable, "-c", code])


@limited
async def test_a_terminals_signals_do_not_reach_it() -> None:
    transport = await child("linger")
    pid, parent, session = far_ids(await receive_some(transport))
    assert (os.getpid(), pid) == (parent, session)
    await transport.close()


@limited
async def test_one_that_hears_nothing_is_killed() -> None:
    transport = await child("deaf")
    pid, _, _ = far_ids(await receive_some(transport))
    await transport.close()
    assert not is_running(pid)
    assert "ended by SIGKILL" == transport.complaints()


@limited
async def test_its_children_are_killed_with_it() -> None:
    script = f"{' '.join(FAR)} deaf & trap '' TERM; wait; wait"
    transport = await ChildDialer(["sh", "-c", script], grace_seconds=0.1).connect()
    pid, _, _ = far_ids(await receive_some(transport))
    await transport.close()
    await until(lambda: not is_running(pid))


@limited
async def test_one_that_has_left_a_daemon_does_not_hold_us_up() -> None:
    transport = await ChildDialer(["sh", "-c", "sleep 60 & echo $!"]).connect()
    pid = int(await receive_some(transport))
    await transport.close()
    assert "" == transport.complaints()
    os.kill(pid, 9)


@limited
async def test_closing_is_over_even_if_it_is_cancelled() -> None:
    transport = await ChildDialer([*FAR, "deaf"], grace_seconds=60).connect()
    pid, _, _ = far_ids(await receive_some(transport))
    closing = asyncio.create_task(transport.close())
    await asyncio.sleep(0)
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing
    await until(lambda: not is_running(pid))
    await transport.close()


@limited
async def test_a_program_that_is_not_there() -> None:
    with pytest.raises(TransportError, match="/no/such cannot be started: No such file"):
        await ChildDialer(["/no/such"]).connect()


@limited
async def test_a_program_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(TransportError, match=os.strerror(errno.EACCES)):
        await ChildDialer([str(tmp_path)]).connect()


def test_no_program() -> None:
    with pytest.raises(UsageError):
        ChildDialer([])


@limited
async def test_its_environment_is_what_it_is_given() -> None:
    transport = await ChildDialer(["/usr/bin/env"], {"ONE": "1"}).connect()
    assert b"ONE=1\n" == await receive_all(transport)
    await transport.close()


@limited
async def test_standard_streams_as_a_connection() -> None:
    """The agent's end; what is printed by accident goes to the standard error."""
    transport = await python(
        "import asyncio, sys\n"
        "from cas.transport.pipes import standard_streams\n"
        "async def main():\n"
        "    client = standard_streams()\n"
        "    print('by accident', repr(sys.stdin.read()), flush=True)\n"
        "    while data := await client.receive():\n"
        "        await client.send(data)\n"
        "    await client.close()\n"
        "asyncio.run(main())\n"
    ).connect()
    data = bytes(range(256)) * 4096
    await asyncio.gather(transport.send(data), receive_exactly(transport, len(data)))
    await transport.close()
    assert "by accident ''" == transport.complaints()


@limited
async def test_a_number_that_is_used_again_is_another_file() -> None:
    """A sender that closing wakes must not touch what has its descriptor's number by then."""
    closed, unread = pipe_at(900)
    sending = asyncio.create_task(closed.send(LARGE))
    await until(lambda: closed.bytes_out > 0)
    await closed.close()
    again, reader = pipe_at(900)
    reading = asyncio.create_task(receive_exactly(reader, len(LARGE)))
    await again.send(LARGE)
    assert LARGE == await reading
    with pytest.raises(TransportError, match="closed here"):
        await sending
    for transport in (unread, again, reader):
        await transport.close()


def pipe_at(number: int) -> tuple[PipeTransport, PipeTransport]:
    """Two ends of a pipe, the first writing by this number."""
    reading, writing = os.pipe()
    os.dup2(writing, number)
    os.close(writing)
    writer = PipeTransport(os.open(os.devnull, os.O_RDONLY), number, "pipe")
    return writer, PipeTransport(reading, os.open(os.devnull, os.O_WRONLY), "pipe")
