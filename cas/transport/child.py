"""The agent as a child process of ours: how a source on this machine is reached.

The child has a session of its own, so that Ctrl-C at the terminal reaches only us and we say when
it ends: by closing its standard input, and if that is not heard, by signals to its process group.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import signal
from collections.abc import Mapping, Sequence
from contextlib import ExitStack

from cas.errors import TransportError, UsageError
from cas.transport.base import ATTACH, Transport
from cas.transport.pipes import PipeTransport, StandardError
from cas.transport.within import within

PIPE_SIZE = 1024 * 1024  # as much as Linux gives any user (fs.pipe-max-size)
GRACE_SECONDS = 2.0  # to exit once its standard input ended, and again after SIGTERM


class ChildDialer:
    """Starts `argv` anew for every connection. `env` is its whole environment; None: ours. One
    connection is enough on the same machine, unless it `takes_lanes`."""

    def __init__(
        self,
        argv: Sequence[str],
        env: Mapping[str, str] | None = None,
        *,
        name: str = "this machine",
        grace_seconds: float = GRACE_SECONDS,
        takes_lanes: bool = False,
    ) -> None:
        if not argv:
            raise UsageError("the command to start the agent is empty", where=name)
        self.name = name
        self._argv = list(argv)
        self._env = env
        self._grace = grace_seconds
        self._takes_lanes = takes_lanes

    def attaching(self, name: str) -> ChildDialer | None:
        """See `Dialer.attaching`."""
        if not self._takes_lanes:
            return None
        argv = [*self._argv, ATTACH, name]
        return ChildDialer(argv, self._env, name=self.name, grace_seconds=self._grace)

    async def connect(self) -> Transport:
        """See `Dialer.connect`."""
        with ExitStack() as theirs, ExitStack() as ours:
            stdin, to_child = _pipe(theirs, ours)
            from_child, stdout = _pipe(ours, theirs)
            complaints, stderr = _pipe(ours, theirs)
            try:
                process = await asyncio.create_subprocess_exec(
                    *self._argv,
                    stdin=stdin,
                    stdout=stdout,
                    stderr=stderr,
                    env=self._env,
                    start_new_session=True,
                )
            except OSError as error:
                raise TransportError(
                    f"{self._argv[0]} cannot be started: {error.strerror}", where=self.name
                ) from error
            ours.pop_all()
        pipes = PipeTransport(from_child, to_child, self.name)
        return _ChildTransport(process, pipes, StandardError(complaints), self._grace)


class _ChildTransport:
    """The pipes to a child, and the child."""

    def __init__(
        self,
        process: asyncio.subprocess.Process,
        pipes: PipeTransport,
        stderr: StandardError,
        grace: float,
    ) -> None:
        self._process = process
        self._pipes = pipes
        self._stderr = stderr
        self._grace = grace
        self.send = pipes.send
        self.receive = pipes.receive

    @property
    def bytes_in(self) -> int:
        return self._pipes.bytes_in

    @property
    def bytes_out(self) -> int:
        return self._pipes.bytes_out

    async def close(self) -> None:
        """See `Transport.close`."""
        await self._pipes.close()
        try:
            await end_process(self._process, self._grace)
        finally:
            self._stderr.close()

    def complaints(self) -> str:
        """See `Transport.complaints`."""
        return self._stderr.text(_how_it_ended(self._process.returncode))


async def end_process(process: asyncio.subprocess.Process, grace: float) -> None:
    """Let a process that leads its own group exit by itself, then ask it, then kill the group;
    `grace` seconds each time. It may be gone already."""
    try:
        if await _exits(process, grace):
            return
        _signal(process, signal.SIGTERM)
        if await _exits(process, grace):
            return
    finally:  # cancelled, too: no other would take note of its end
        if process.returncode is None:
            _signal(process, signal.SIGKILL)
            await _exits(process, grace)


async def _exits(process: asyncio.subprocess.Process, seconds: float) -> bool:
    try:
        await within(process.wait(), seconds)
    except asyncio.TimeoutError:
        return False
    return True


def _signal(process: asyncio.subprocess.Process, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, number)


def _how_it_ended(status: int | None) -> str:
    if not status:
        return ""
    if status > 0:
        return f"exit status {status}"
    known = {number.value: number.name for number in signal.Signals}
    return f"ended by {known.get(-status, f'signal {-status}')}"


def _pipe(reader: ExitStack, writer: ExitStack) -> tuple[int, int]:
    """A large pipe, each end closed with its stack."""
    read_fd, write_fd = os.pipe()
    reader.callback(os.close, read_fd)
    writer.callback(os.close, write_fd)
    with contextlib.suppress(OSError):  # over the user's share of pipe memory it stays small
        fcntl.fcntl(write_fd, fcntl.F_SETPIPE_SZ, PIPE_SIZE)
    return read_fd, write_fd
