"""Runs a command and writes down what it used.

    python usage.py REPORT COMMAND [ARGUMENT...]

REPORT becomes JSON: `wall` seconds; `cpu` seconds, user and system, of the command and all that it
waited for; `peak`, the most memory that the command itself had, in bytes. The peak is VmHWM of
/proc, looked at 50 times a second: `ru_maxrss` would count this process before the exec, and the
command's children, and so hide a client behind its agent. Standard input, output and error are the
command's; signals are left to it, so this can stand before `cas serve` in a plan.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

LOOK_SECONDS = 0.02


class Peak:
    """The most memory that a process had, looked at until it is a zombie."""

    def __init__(self, pid: int) -> None:
        self.bytes = 0
        self._status = f"/proc/{pid}/status"
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Look no more."""
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(LOOK_SECONDS):
            with open(self._status, "rb") as file:
                self.bytes = max(self.bytes, _high_water(file.read()))


def _high_water(status: bytes) -> int:
    for line in status.splitlines():
        if line.startswith(b"VmHWM:"):
            return int(line.split()[1]) * 1024
    return 0


def run(command: list[str]) -> tuple[int, dict[str, Any]]:
    """The exit code of `command`, and what it used."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: None)  # the command, in our group, has heard it as well
    started = time.monotonic()
    process = subprocess.Popen(command)
    peak = Peak(process.pid)
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    wall = time.monotonic() - started
    peak.stop()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    report = {"wall": wall, "cpu": used.ru_utime + used.ru_stime, "peak": peak.bytes}
    return process.returncode, report


def main() -> int:
    """See above."""
    code, report = run(sys.argv[2:])
    part = Path(f"{sys.argv[1]}.{os.getpid()}")
    part.write_text(json.dumps(report))
    part.rename(sys.argv[1])
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main())
