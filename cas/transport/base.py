"""What the engine asks of a connection to a far end, and nothing about the protocol on it.

A transport carries bytes in order and keeps no message boundaries. It is used by one event loop,
by one receiving task and any number of sending ones. Three implementations run the same
conformance suite (`tests/transport/`): `memory.pair`, `child.ChildDialer`, `ssh.SshDialer`; and
`pipes.PipeTransport` is the agent's end of the latter two. Something else (a relay's object
store, SFTP) plugs in as one more `Dialer`; a further lane to a running agent is the same dialer
with another command.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

RECEIVE_LIMIT = 256 * 1024  # the most bytes that one `receive` returns
ATTACH = "--attach"  # what is added to the agent's command for a further lane, and its name
TAIL_LIMIT = 8 * 1024  # what is kept of the far end's standard error


class Transport(Protocol):
    """An open connection. All of it may be called again after an error, and fails again."""

    @property
    def bytes_in(self) -> int:
        """Bytes that came over the wire so far, the connection's own overhead included as far as
        it can be counted; TCP and IP headers and what TCP sends twice never are."""

    @property
    def bytes_out(self) -> int:
        """Bytes that went over the wire so far, counted as `bytes_in` is."""

    async def send(self, data: bytes) -> None:
        """Hand all of `data` over; the bytes of two tasks' sends do not mix.

        Waits while the far end reads slower than we send: only a bounded number of bytes (3 MiB)
        is ever under way. What was handed over is not known to have arrived. Raises
        TransportError when the connection is lost or closed; some of `data` may have gone then,
        and when it is cancelled.
        """

    async def receive(self) -> bytes:
        """The next bytes, at most RECEIVE_LIMIT; b"" at the end of the stream, and for ever after.

        Raises TransportError when the connection is lost or was closed here. A far end that was
        killed looks like either. One that is cancelled has taken nothing.
        """

    async def close(self) -> None:
        """End the connection and release everything; bytes not received yet are lost.

        Wakes those that wait in `send` and `receive`. Takes a few seconds at most, raises nothing,
        and may be called any number of times.
        """

    def complaints(self) -> str:
        """The end of what the far end wrote on standard error and how it exited, fit to be shown;
        "" if there is nothing. Complete once `close` has returned."""


@runtime_checkable
class Proved(Protocol):
    """A connection whose far end has proved who it is."""

    host_key: str  # its fingerprint: "SHA256:..."


class Dialer(Protocol):
    """Makes connections to one far end, as many as are asked for."""

    @property
    def name(self) -> str:
        """What the far end is called in messages: "npu (ssh)", "this machine"."""

    async def connect(self) -> Transport:
        """A new connection. Raises TransportError, HostKeyError or LoginError, which say what to
        do; UsageError if it can never work."""

    def attaching(self, name: str) -> Dialer | None:
        """What makes further connections to the agent of this name, which one of `connect`'s began;
        None where one connection is as good as several."""


class Tail:
    """The last TAIL_LIMIT bytes of a text that a far end writes and that may never end."""

    __slots__ = ("_cut", "_kept")

    def __init__(self) -> None:
        self._kept = bytearray()
        self._cut = False

    def add(self, data: bytes) -> None:
        """Append, and forget what is now too old."""
        self._kept += data
        if len(self._kept) > TAIL_LIMIT:
            del self._kept[:-TAIL_LIMIT]
            self._cut = True

    def text(self, ended: str = "") -> str:
        """Whole lines of it, and one more that says how the far end ended; fit for a terminal."""
        kept = bytes(self._kept)
        if self._cut:
            kept = kept.partition(b"\n")[2] or kept
        lines = kept.decode("utf-8", "backslashreplace").splitlines()
        shown = [printable(line.rstrip()) for line in [*lines, ended]]
        return "\n".join(line for line in shown if line)


def printable(line: str) -> str:
    """A line of a text that is not ours, its control characters spelt out."""
    return "".join(
        char if char.isprintable() or char == "\t" else ascii(char)[1:-1] for char in line
    )
