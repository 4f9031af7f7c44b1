"""A relay in front of a TCP server on this machine, which counts what it carries."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

CHUNK = 64 * 1024
SETTLING_SECONDS = 60.0


class Relay:
    """Listens on `port` of 127.0.0.1. `down` counts the bytes from the server, `up` those to it.
    `rate` bytes a second are let down at most, when it is set."""

    def __init__(self, target: int, rate: float | None) -> None:
        self._target = target
        self._rate = rate
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.up = 0
        self.down = 0
        self._carrying = 0
        self._change = threading.Condition()
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Accept no more; what runs ends with its connections."""
        self._listener.close()

    def settle(self) -> None:
        """Wait until nothing is carried any more, of a client that has ended, and all is counted.
        Raises AssertionError when that does not come to pass."""
        with self._change:
            assert self._change.wait_for(lambda: not self._carrying, SETTLING_SECONDS)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                try:
                    far = socket.create_connection(("127.0.0.1", self._target))
                except OSError:  # the server is gone
                    near.close()
                    continue
                with self._change:
                    self._carrying += 2
                for source, sink, way in ((near, far, "up"), (far, near, "down")):
                    thread = threading.Thread(target=self._carry, args=(source, sink, way))
                    thread.daemon = True
                    thread.start()

    def _carry(self, source: socket.socket, sink: socket.socket, way: str) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(CHUNK):
                if way == "down" and self._rate is not None:
                    time.sleep(len(data) / self._rate)
                sink.sendall(data)
                with self._change:
                    setattr(self, way, getattr(self, way) + len(data))
        # The other way's thread still reads from these: it sees the end, and closes its own.
        for end in (source, sink):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        sink.close()
        with self._change:
            self._carrying -= 1
            self._change.notify_all()


@contextmanager
def relayed(target: int, *, rate: float | None = None) -> Iterator[Relay]:
    """A relay to the port `target`, closed at the end."""
    relay = Relay(target, rate)
    try:
        yield relay
    finally:
        relay.close()
