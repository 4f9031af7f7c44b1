"""A real browser without a window, driven over a pipe by the DevTools protocol: messages are JSON,
each ended by a NUL (`--remote-debugging-pipe`: it reads descriptor 3 and writes descriptor 4)."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--headless=new", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--disable-dev-shm-usage", "--hide-scrollbars", "--proxy-server=127.0.0.1:9",
)  # fmt: skip
SECONDS = 300
LOADED = "document.readyState === 'complete'"


class Browser:
    """One page of it. `said` is everything on its console, and every exception."""

    def __init__(self, to: int, back: int) -> None:
        self._to = to
        self._back = back
        self._number = 0
        self._session = ""
        self._waiting = b""
        self.said: list[str] = []

    def begin(self) -> None:
        """Open an empty page."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Ask for something; its result."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                result: dict[str, Any] = answer["result"]
                return result
            self._note(answer)

    def open(self, path: Path, width: int = 1280, *, dark: bool = False) -> None:
        """Show a file in a window of this width."""
        self.size(width)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self.call("Page.navigate", url=path.absolute().as_uri())
        end = time.monotonic() + SECONDS
        while not self.run(LOADED) or self.run("location.href") == "about:blank":
            assert time.monotonic() < end, "the page does not load"
            time.sleep(0.05)

    def size(self, width: int, height: int = 900) -> None:
        """Make the window so large."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=1, mobile=width < 600)  # fmt: skip

    def run(self, script: str) -> Any:
        """The value of an expression in the page."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True,
                           awaitPromise=True)  # fmt: skip
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def point(self, x: float, y: float) -> None:
        """Point at a place in the window."""
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def picture(self, path: Path) -> None:
        """The whole page as PNG."""
        data = self.call("Page.captureScreenshot", captureBeyondViewport=True)["data"]
        path.write_bytes(base64.b64decode(data))

    def paper(self, path: Path) -> None:
        """The page as it is printed, as PDF."""
        data = self.call("Page.printToPDF", printBackground=True)["data"]
        path.write_bytes(base64.b64decode(data))

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._waiting:
            ready, _, _ = select.select([self._back], [], [], SECONDS)
            piece = os.read(self._back, 1 << 20) if ready else b""
            assert piece, "the browser says nothing any more"
            self._waiting += piece
        line, _, self._waiting = self._waiting.partition(b"\0")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _note(self, event: dict[str, Any]) -> None:
        parameters = event.get("params", {})
        if event.get("method") == "Runtime.exceptionThrown":
            self.said.append(json.dumps(parameters["exceptionDetails"]))
        elif event.get("method") == "Log.entryAdded":
            self.said.append(json.dumps(parameters["entry"]))
        elif event.get("method") == "Runtime.consoleAPICalled":
            self.said.append(json.dumps(parameters["args"]))
        elif event.get("method") == "Network.requestWillBeSent":
            url = parameters["request"]["url"]
            if not url.startswith(("file:", "data:", "about:", "blob:")):
                self.said.append(f"asked for {url}")


@contextlib.contextmanager
def browsing() -> Iterator[Browser]:
    """A browser for the block; the test is skipped where none is installed."""
    name = next(filter(None, map(shutil.which, NAMES)), None)
    if name is None:
        pytest.skip("no browser here: apt-get install chromium")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
        ours, theirs = _pipes()
        process = subprocess.Popen(
            ["bash", "-c", f'exec "$0" "$@" 3<&{theirs[0]} 4>&{theirs[1]}', name, *FLAGS,
             f"--user-data-dir={home}", "about:blank"],
            pass_fds=theirs, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, env={**os.environ, "HOME": home}, start_new_session=True,
        )  # fmt: skip
        try:
            for end in theirs:
                os.close(end)
            browser = Browser(ours[1], ours[0])
            browser.begin()
            yield browser
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            for end in ours:
                os.close(end)


def _pipes() -> tuple[tuple[int, int], tuple[int, int]]:
    """What we read and write, and what the browser does."""
    read_to, write_to = os.pipe()
    read_back, write_back = os.pipe()
    return (read_back, write_to), (read_to, write_back)
