"""A running `cas sync --json`: its events with the time at which each came."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Point:
    """How far the run was at a moment: seconds since it was started, plain bytes durable here, wire
    bytes that had come."""

    at: float
    fetched: int
    wire_in: int


class Running:
    """Reads the events as they come, in a thread of its own."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.started = time.monotonic()
        self.events: list[tuple[float, dict[str, Any]]] = []
        self.said = ""  # on standard error, when it has ended
        self.cpu = 0.0  # seconds, as last seen
        self._readers = [
            threading.Thread(target=work, daemon=True) for work in (self._read, self._hear)
        ]
        for reader in self._readers:
            reader.start()

    @property
    def points(self) -> list[Point]:
        """All progress events so far."""
        return [
            Point(at, event["fetched"], event["wire_in"])
            for at, event in list(self.events)
            if event.get("event") == "progress"
        ]

    @property
    def now(self) -> Point:
        """The last of them."""
        return (self.points or [Point(0.0, 0, 0)])[-1]

    @property
    def age(self) -> float:
        """Seconds since it was started."""
        return time.monotonic() - self.started

    @property
    def lanes(self) -> int:
        """How many lanes were open at the last progress event."""
        events = [event for _, event in list(self.events) if event.get("event") == "progress"]
        return int(events[-1].get("lanes", 1)) if events else 0

    @property
    def notes(self) -> list[str]:
        """What it had to say of lost connections and the like."""
        events = list(self.events)
        return [f"{at:.0f} s: {e['text']}" for at, e in events if e.get("event") == "note"]

    @property
    def summary(self) -> dict[str, Any]:
        """The last event of a run that has ended; {} if it was killed."""
        last = self.events[-1][1] if self.events else {}
        return last if last.get("event") == "summary" else {}

    @property
    def fetched_again(self) -> int:
        """Wire bytes of segments that came twice, of the tiers that have ended."""
        return sum(tier["fetched_again"] for tier in self.summary.get("tiers", []))

    def until(self, what: Callable[[Point], bool], seconds: float) -> float | None:
        """Wait until `what` holds of the last progress, or the run has ended; its age then. None
        if that takes longer than `seconds`, or the run ends before."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            for point in self.points[::-1][:3]:
                if what(point):
                    return point.at
            if self.process.poll() is not None:
                return None
            time.sleep(0.1)
        return None

    def rate(self, begin: float, end: float) -> float:
        """Wire bytes a second that came between two ages."""
        inside = [point for point in self.points if begin <= point.at <= end]
        if len(inside) < 2:
            return 0.0
        first, last = inside[0], inside[-1]
        return (last.wire_in - first.wire_in) / (last.at - first.at)

    def wait(self, seconds: float = 600) -> int:
        """Its exit code; it is killed, and the code is -9, if it takes longer."""
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
        self._finish()
        return self.process.returncode

    def stop(self) -> int:
        """Interrupt it as Ctrl-C does; its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        return self.wait(60)

    def _finish(self) -> None:
        self.process.wait()
        for reader in self._readers:
            reader.join(60)
        for stream in (self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.events.append((self.age, json.loads(line)))
            self._look_at_cpu()

    def _hear(self) -> None:
        assert self.process.stderr is not None
        self.said = self.process.stderr.read()

    def _look_at_cpu(self) -> None:
        try:
            with open(f"/proc/{self.process.pid}/stat", "rb") as file:
                user, system = file.read().rpartition(b")")[2].split()[11:13]
        except OSError:
            return
        self.cpu = max(self.cpu, (int(user) + int(system)) / os.sysconf("SC_CLK_TCK"))
