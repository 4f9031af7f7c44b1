"""Putting an agent on a host: look, choose, send, start; each step over a connection of its own.

A connection that is lost while sending is made anew, and goes on from what has come, as long as
each brings something.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from cas import __version__
from cas.bootstrap.choose import usable_directory, usable_pythons
from cas.bootstrap.far import (
    ANSWER_LIMIT,
    END,
    PREFIXES,
    FarEnd,
    FarPython,
    parse_probe,
    probe_script,
)
from cas.bootstrap.kit import Kit, make_kit, pack_kit
from cas.bootstrap.lacking import first_that_works
from cas.bootstrap.launch import launcher_name, start_launcher
from cas.bootstrap.origins import Wheels
from cas.bootstrap.receive import MARK
from cas.errors import SourceError, TransportError
from cas.messages import Bye, Hello
from cas.plan import Source
from cas.pull.lane import open_lane
from cas.transport.base import Dialer, printable
from cas.transport.talk import Talk, run_script
from cli import output, wiring

PROBE_SECONDS = 120.0  # some hosts have many Pythons, on slow disks
SILENCE_SECONDS = 120.0
ATTEMPTS_IN_VAIN = 3
PAUSE_SECONDS = 2.0
PIECE = 64 * 1024
TALK_SECONDS = 5.0  # between lines that say how far it is
KEPT = "what has come is kept, and the same command goes on"
SHELL = ("sh",)
RECEIVE = "import sys;exec(sys.stdin.buffer.read(int(sys.argv[1])))"


@dataclass(frozen=True, slots=True)
class Job:
    """What is asked for. `reach` makes a dialer for a command on the host called `name`."""

    name: str
    reach: Callable[[Sequence[str]], Dialer]
    wheels: Wheels
    clean: bool = False
    prefixes: str = PREFIXES
    tell: Callable[[str], None] = lambda _text: None


def job_for(source: Source, name: str, wishes: wiring.Wishes, wheels: Path | None = None) -> Job:
    """To put one on the host of `source`, which the user calls `name`."""
    return Job(
        name,
        lambda words: wiring.ssh_dialer(source, words, wishes),
        Wheels(wheels),
        tell=_Talker(),
    )


class _Talker:
    """Says each new step at once, and how far one is every few seconds."""

    def __init__(self) -> None:
        self._last = 0.0

    def __call__(self, text: str) -> None:
        now = time.monotonic()
        if "%" not in text or now - self._last >= TALK_SECONDS:
            self._last = now
            output.say(output.printable(text))


@dataclass(slots=True)
class Placed:
    """What has come of it. `sent` counts bytes of the archive, `kept` those of an earlier try."""

    far: FarEnd
    python: FarPython
    kit: Kit
    directory: str
    launcher: str = ""
    removed: Sequence[str] = ()
    size: int = 0
    sent: int = 0
    kept: int = 0
    hello: Hello | None = None

    @property
    def agent(self) -> tuple[str, ...]:
        """The command that starts it."""
        return start_launcher(self.launcher)


async def bootstrap(job: Job) -> Placed:
    """Do it. Raises SourceError when the host or this installation lacks something, FormatError for
    a bad wheel, TransportError."""
    placed = await _plan(job)
    await _deliver(job, placed)
    job.tell("starting it there")
    lane = await open_lane(job.reach(placed.agent))
    try:
        placed.hello = lane.peer
        await lane.send(Bye())
    finally:
        await lane.close()
    return placed


async def _plan(job: Job) -> Placed:
    """See what the host is like, and put together what it needs."""
    job.tell(f"looking at {job.name}")
    script = probe_script(__version__, job.prefixes)
    answer = await run_script(
        job.reach(SHELL), script, end=END.encode(), limit=ANSWER_LIMIT, seconds=PROBE_SECONDS
    )
    far = parse_probe(answer, job.name)
    pythons = usable_pythons(far, job.name)
    directory = usable_directory(far, job.name).path
    python, gathered = await asyncio.to_thread(first_that_works, pythons, job.wheels, job.name)
    kit = await asyncio.to_thread(make_kit, gathered)
    return Placed(far, python, kit, f"{directory}/agent")


async def _deliver(job: Job, placed: Placed) -> None:
    """Have the kit there, whole; over several connections if it must be."""
    delivery = _Delivery(job, placed)
    vain = 0
    while True:
        before = placed.sent
        try:
            return await delivery.attempt()
        except TransportError as error:
            vain = 0 if placed.sent > before else vain + 1
            if not delivery.begun or vain >= ATTEMPTS_IN_VAIN:
                raise
            job.tell(f"{error.what}; going on")
        await asyncio.sleep(PAUSE_SECONDS)


class _Delivery:
    """One kit on its way. `begun`: a connection has got as far as the receiving script."""

    def __init__(self, job: Job, placed: Placed) -> None:
        self._job = job
        self._placed = placed
        self._archive = b""
        self._offered = False
        self.begun = False

    async def attempt(self) -> None:
        """One connection. Raises TransportError, SourceError."""
        script = resources.files("cas.bootstrap").joinpath("receive.py").read_bytes()
        words = [self._placed.python.path, "-I", "-S", "-c", RECEIVE, str(len(script))]
        dialer = self._job.reach(words)
        transport = await dialer.connect()
        talk = Talk(transport, dialer.name, MARK.encode())
        try:
            await transport.send(script)
            await talk.say(self._order())
            answer = await self._hear(talk)
            if answer.get("state") == "absent":
                answer = await self._send(talk, transport.send, answer)
            self._placed.launcher = str(answer["launcher"])
            self._placed.removed = [str(name) for name in answer["removed"]]
        finally:
            await transport.close()

    def _order(self) -> dict[str, object]:
        placed = self._placed
        return {
            "directory": placed.directory,
            "name": placed.kit.name,
            "manifest": hashlib.sha256(placed.kit.manifest).hexdigest(),
            "launcher": launcher_name(),
            "python": placed.python.path,
            "clean": self._job.clean,
        }

    async def _hear(self, talk: Talk) -> dict[str, Any]:
        """The next line that says something new, errors raised."""
        answer = await talk.hear(SILENCE_SECONDS)
        if answer.get("state") == "there":
            answer = await talk.hear(SILENCE_SECONDS)
        if "error" in answer:
            raise SourceError(printable(str(answer["error"])), where=self._job.name)
        self.begun = True
        return answer

    async def _send(self, talk: Talk, send: Any, absent: dict[str, Any]) -> dict[str, Any]:
        """Send what is missing of the archive; the host's last word."""
        self._archive = self._archive or await asyncio.to_thread(pack_kit, self._placed.kit)
        archive, have = self._archive, absent.get("have")
        offset = have if isinstance(have, int) and 0 <= have <= len(archive) else 0
        if hashlib.sha256(archive[:offset]).hexdigest() != absent.get("sha256"):
            offset = 0
        self._placed.size = len(archive)
        if not self._offered:
            self._offered, self._placed.kept = True, offset
        self._note(offset)
        digest = hashlib.sha256(archive).hexdigest()
        await talk.say({"offset": offset, "size": len(archive), "sha256": digest})
        sending = asyncio.create_task(_send_from(send, archive, offset))
        try:
            return await self._follow(talk, offset)
        finally:
            sending.cancel()
            with contextlib.suppress(asyncio.CancelledError, TransportError):
                await sending

    async def _follow(self, talk: Talk, offset: int) -> dict[str, Any]:
        """Hear how far it has come, until it is done."""
        size = len(self._archive)
        while (answer := await self._hear(talk)).get("state") == "receiving":
            offset = max(offset, min(int(answer["have"]), size))
            self._note(offset)
            self._job.tell(f"{100 * offset // size} % of the agent is there")
        return answer

    def _note(self, have: int) -> None:
        """So much of the archive is there."""
        self._placed.sent = max(self._placed.sent, have - self._placed.kept)


async def _send_from(send: Any, archive: bytes, offset: int) -> None:
    for start in range(offset, len(archive), PIECE):
        await send(archive[start : start + PIECE])
