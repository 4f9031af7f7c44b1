"""An agent in this process that takes any number of lanes, and lanes that can be meddled with."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine

from cas.agent.attach import NO_AGENT
from cas.agent.roots import RootGuard
from cas.agent.serve import Agent, scanner_for
from cas.errors import TransportError
from cas.interfaces import ScanCache
from cas.transport.base import Transport
from cas.transport.memory import MemoryTransport, pair


class Meddled:
    """A transport that can be frozen, so that nothing passes until it thaws, and cut."""

    def __init__(self, inner: MemoryTransport) -> None:
        self._inner = inner
        self._passes = asyncio.Event()
        self._passes.set()
        self._is_cut = False
        self.host_key = ""

    @property
    def bytes_in(self) -> int:
        return self._inner.bytes_in

    @property
    def bytes_out(self) -> int:
        return self._inner.bytes_out

    @property
    def is_frozen(self) -> bool:
        """Whether nothing passes."""
        return not self._passes.is_set()

    def freeze(self) -> None:
        """Let nothing pass."""
        self._passes.clear()

    def thaw(self) -> None:
        """Let all pass again."""
        self._passes.set()

    async def cut(self) -> None:
        """Lose the connection, and what is under way on it."""
        self._is_cut = True
        self._passes.set()
        await self._inner.close()

    async def send(self, data: bytes) -> None:
        await self._passes.wait()
        self._check()
        await self._inner.send(data)

    async def receive(self) -> bytes:
        await self._passes.wait()
        self._check()
        try:
            data = await self._inner.receive()
        except TransportError:
            self._check()
            raise
        await self._passes.wait()
        return data

    async def close(self) -> None:
        self._passes.set()
        await self._inner.close()

    def complaints(self) -> str:
        return ""

    def _check(self) -> None:
        if self._is_cut:
            raise TransportError("the connection was lost: cut")


class ManyLanes:
    """A `Dialer` whose agent lets further lanes in by a call instead of its door. `lanes` are all
    lanes there ever were, `agents` how many there were of those."""

    name = "the test's source"

    def __init__(self, cache: ScanCache) -> None:
        self._cache = cache
        self._agent: Agent | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self.lanes: list[Meddled] = []
        self.agents = 0
        self.asked_for: list[str] = []  # by which names lanes would ask for the agent

    def attaching(self, name: str) -> _Further:
        """See `Dialer.attaching`."""
        self.asked_for.append(name)
        return _Further(self)

    async def connect(self) -> Transport:
        """A lane to a new agent."""
        guard = RootGuard(None)
        self._agent = Agent(self._cache, guard, scanner_for(self._cache, guard))
        self.agents += 1
        self._start(self._watch(self._agent))
        return self.further()

    def further(self) -> Meddled:
        """One more lane to the agent."""
        if self._agent is None:
            raise TransportError(NO_AGENT)
        near, far = pair()
        self._start(self._agent.lane(far))
        self.lanes.append(Meddled(near))
        return self.lanes[-1]

    async def end(self) -> None:
        """End the agents that are left, with their lanes, and wait for that."""
        self._agent = None  # it lets nobody in any more
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _start(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _watch(self, agent: Agent) -> None:
        try:
            await agent.watch()
        finally:
            agent.close()
            self._agent = None if self._agent is agent else self._agent


class _Further:
    name = ManyLanes.name

    def __init__(self, source: ManyLanes) -> None:
        self._source = source

    def attaching(self, name: str) -> None:
        del name

    async def connect(self) -> Transport:
        return self._source.further()
