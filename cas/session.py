"""One lane's conversation as a machine that eats bytes and gives messages: no socket, no clock.

`receive(data)` takes what arrived, `next_message()` gives the next whole message or None,
`send(message)` gives the bytes to be written. What may be said when is the table below, drawn in
docs/protocol.md; anything else raises PeerError (the far end's fault) or UsageError (ours), after
which the session is closed.
"""

from __future__ import annotations

from enum import Enum

from cas.errors import FormatError, PeerError, UsageError
from cas.messages import (
    FROM_AGENT,
    FROM_CLIENT,
    HEADER,
    MARKER,
    Bye,
    Hello,
    Message,
    decode_message,
    encode_message,
    limit_of,
)

NOISE_LIMIT = 64 * 1024


class Role(Enum):
    """Which end this is."""

    CLIENT = "client"
    AGENT = "agent"


class State(Enum):
    """Where the conversation is."""

    WAITING = "waiting for the marker"
    GREETED = "waiting for HELLO"
    OPEN = "open"
    CLOSED = "closed"


_SENDS = {Role.CLIENT: FROM_CLIENT, Role.AGENT: FROM_AGENT}
_RECEIVES = {Role.CLIENT: FROM_AGENT, Role.AGENT: FROM_CLIENT}


class Session:
    """One end of a lane. `noise` is what came before the marker."""

    def __init__(self, role: Role) -> None:
        self.role = role
        self.state = State.WAITING if role is Role.CLIENT else State.GREETED
        self.noise = b""
        self._said_hello = False
        self._buffer = bytearray()
        self._at = 0  # everything before it in the buffer was read
        self._ended = False

    def greeting(self, hello: Hello) -> bytes:
        """The agent's first bytes."""
        return MARKER + self.send(hello)

    def receive(self, data: bytes) -> None:
        """Take bytes from the far end; empty ones mean its stream has ended."""
        self._ended = self._ended or not data
        self._buffer += data

    def send(self, message: Message) -> bytes:
        """The bytes of `message`; raises UsageError when it may not be sent now."""
        hello = isinstance(message, Hello)
        legal = (hello and not self._said_hello) or (not hello and self.state is State.OPEN)
        waiting = self.role is Role.CLIENT and self.state is State.WAITING
        if not legal or waiting or not isinstance(message, _SENDS[self.role]):
            raise UsageError(f"{type(message).__name__} cannot be sent: {self.state.value}")
        if hello:
            self._said_hello = True
        if isinstance(message, Bye):
            self.state = State.CLOSED
        return encode_message(message)

    def next_message(self) -> Message | None:
        """The next message, or None until more bytes have come; raises PeerError."""
        try:
            message = self._next()
        except FormatError as error:
            self.state = State.CLOSED
            raise PeerError(f"the far end sent nonsense: {error}") from error
        if message is not None:
            self._step(message)
        elif self._ended:
            self._close()
        return message

    def _next(self) -> Message | None:
        if self.state is State.CLOSED:
            return None
        if self.state is State.WAITING and not self._find_marker():
            return None
        ready = len(self._buffer) - self._at
        if ready < HEADER.size:
            self._compact()
            return None
        size, kind, flags, zero = HEADER.unpack_from(self._buffer, self._at)
        if size > limit_of(kind) or zero:
            raise FormatError(f"a message of type {kind} and {size} bytes")
        if ready < HEADER.size + size:
            self._compact()
            return None
        start = self._at + HEADER.size
        body = bytes(memoryview(self._buffer)[start : start + size])
        self._at = start + size
        return decode_message(kind, flags, body)

    def _compact(self) -> None:
        # Only when more bytes are needed: once for each `receive`, so that it stays linear.
        del self._buffer[: self._at]
        self._at = 0

    def _find_marker(self) -> bool:
        at = self._buffer.find(MARKER)
        if at < 0:
            if len(self._buffer) > NOISE_LIMIT:
                self.state = State.CLOSED
                raise PeerError(
                    f"no agent answered; it began: {_readable(self._buffer[:200])}",
                    advice="is cas installed there, and does the login shell print very much?",
                )
            return False
        self.noise = bytes(self._buffer[:at])
        self._at = at + len(MARKER)
        self.state = State.GREETED
        return True

    def _step(self, message: Message) -> None:
        hello = isinstance(message, Hello)
        expected = State.GREETED if hello else State.OPEN
        if self.state is not expected or not isinstance(message, _RECEIVES[self.role]):
            state, self.state = self.state, State.CLOSED
            raise PeerError(f"the far end sent {type(message).__name__} while {state.value}")
        if hello:
            self.state = State.OPEN
        if isinstance(message, Bye):
            self.state = State.CLOSED

    def _close(self) -> None:
        # A message cut off by the end of the stream is a lost connection, not nonsense.
        if self.state is State.WAITING:
            self.noise = bytes(self._buffer[:NOISE_LIMIT])
        self.state = State.CLOSED


def _readable(data: bytes | bytearray) -> str:
    return data.decode("utf-8", "replace").encode("unicode_escape").decode("ascii")
