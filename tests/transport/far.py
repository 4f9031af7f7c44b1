"""The far end of the conformance suite: a program over its standard input and output.

echo                   sends back what it gets
source SIZE PROGRESS   sends `stream(SIZE)`; the file PROGRESS says how much of it is gone
sink SIZE GATE         reads nothing until the file GATE is there, then SIZE bytes, and answers
                       with their SHA-256
complain               writes 1 MiB of lines on standard error, then "done", and exits with 3
linger                 answers with its own id, its parent's and its session's, and reads on
deaf                   as linger, but hears neither the end of its input nor SIGTERM
"""

import hashlib
import os
import random
import signal
import sys
import time
from pathlib import Path

BLOCK = 64 * 1024
COMPLAINTS = 50_000


def stream(size: int) -> bytes:
    """The bytes that a source sends and a sink is sent."""
    return random.Random(size).randbytes(size)


def complaint(number: int) -> str:
    """A line of a far end in trouble."""
    return f"line {number:07} \x1b[31mred"


def main(mode: str, *arguments: str) -> int:
    """Play the part; the exit status."""
    if mode == "echo":
        while data := os.read(0, BLOCK):
            _write(data)
    elif mode == "source":
        _source(int(arguments[0]), Path(arguments[1]))
    elif mode == "sink":
        _sink(int(arguments[0]), Path(arguments[1]))
    elif mode == "complain":
        sys.stderr.writelines(complaint(number) + "\n" for number in range(COMPLAINTS))
        sys.stderr.flush()
        _write(b"done")
        return 3
    else:
        _linger(deaf=mode == "deaf")
    return 0


def _source(size: int, progress: Path) -> None:
    data = stream(size)
    for start in range(0, size, BLOCK):
        _write(data[start : start + BLOCK])
        progress.write_text(str(start + BLOCK))


def _sink(size: int, gate: Path) -> None:
    while not gate.exists():
        time.sleep(0.01)
    seen = hashlib.sha256()
    while size and (data := os.read(0, min(BLOCK, size))):
        seen.update(data)
        size -= len(data)
    _write(seen.hexdigest().encode())


def _linger(*, deaf: bool) -> None:
    if deaf:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    _write(f"{os.getpid()} {os.getppid()} {os.getsid(0)}\n".encode())
    while os.read(0, BLOCK):
        pass
    while deaf:
        signal.pause()


def _write(data: bytes) -> None:
    while data:
        data = data[os.write(1, data) :]


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
