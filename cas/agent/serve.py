"""The agent: scans and reads at the source for one client, over any number of lanes.

Threads do the work (one scans, some read and compress, one looks recipes up); the event loop
carries messages between the lanes and them. Everything the client asks is idempotent, so a lane
may be lost at any moment. A client that means to have several lanes says so in its HELLO: the agent
then opens a door for them (`cas/agent/door.py`), and outlives all of them. It ends after BYE, when
nothing has come for `SILENCE_SECONDS`, and without a door when its lane does. It writes nowhere but
in its cache, an unlinked temporary file, and the door's directory.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import time
from collections.abc import Callable, Coroutine, Sequence

from cas import __version__, wire
from cas.agent.attach import is_name
from cas.agent.door import Door
from cas.agent.facts import agent_facts
from cas.agent.read import Reach
from cas.agent.roots import RootGuard
from cas.agent.scan import Scanner
from cas.agent.spool import Spool
from cas.agent.work import ScannerOf, Worker
from cas.chunker import IDENTITY
from cas.errors import FormatError, PeerError, SourceError, TransportError
from cas.ignore import Matcher
from cas.interfaces import ScanCache
from cas.messages import (
    FROM_CLIENT,
    LOST,
    MESSAGES,
    PROTOCOL,
    TRUSTED,
    Backlog,
    Beat,
    Bye,
    Credit,
    Doubt,
    Hello,
    Message,
    Piece,
    Refused,
    Scan,
    decode_whole,
    encode_message,
)
from cas.outbox import ALL, Outbox
from cas.pieces import Assembler
from cas.session import Role, Session, State
from cas.transport.base import Transport
from cas.transport.pipes import PipeTransport

SILENCE_SECONDS = 300.0
PROGRESS_SECONDS = 0.5
LANES_LIMIT = 64
HELLO_SECONDS = 90.0  # the client waits for ours for 60
ORDERS_LIMIT = 80 * 2**20  # bytes of the client's messages that are not whole yet


class Agent:
    """Serves one client. `guard` limits what may be read; `silence` is the heartbeat's limit;
    `facts` tells of the source what HELLO says, and `scanner_of` makes what scans it."""

    def __init__(
        self,
        cache: ScanCache,
        guard: Reach,
        scanner_of: ScannerOf,
        *,
        silence: float = SILENCE_SECONDS,
        facts: Callable[[], Sequence[tuple[str, str]]] = agent_facts,
    ) -> None:
        self._silence = silence
        self._facts = facts
        self._loop = asyncio.get_running_loop()
        self._wakers: set[asyncio.Event] = set()
        self._outbox = Outbox(self._wake)
        self._worker = Worker(cache, guard, self._outbox, scanner_of)
        self._heard = time.monotonic()
        self._lanes: dict[int, Transport] = {}
        self._doubts: dict[int, int] = {}  # by lane, the number of the last message on its worth
        self._lane_number = 0
        self._assembler = Assembler(ORDERS_LIMIT)
        self._door: Door | None = None
        self._carried: set[asyncio.Task[None]] = set()
        self._told_backlog = 0
        self._over = asyncio.Event()

    @property
    def has_door(self) -> bool:
        """Whether further lanes may come in."""
        return self._door is not None

    async def lane(self, transport: Transport) -> None:
        """Carry one lane until it ends; returns then, whatever ended it."""
        number, self._lane_number = self._lane_number, self._lane_number + 1
        self._lanes[number] = transport
        self._outbox.lane_opened(number)
        session = Session(Role.AGENT)
        waker = asyncio.Event()
        self._wakers.add(waker)
        waiting = self._loop.call_later(HELLO_SECONDS, self._end_unless_greeted, session, transport)
        sender = None
        try:
            facts = (*self._facts(), ("lane", str(number)), ("lanes", str(LANES_LIMIT)))
            await transport.send(session.greeting(Hello(PROTOCOL, __version__, IDENTITY, facts)))
            sender = asyncio.create_task(self._send(number, transport, session, waker))
            came = 0  # bytes of pieces
            while session.state is not State.CLOSED:
                data = await transport.receive()
                self._heard = time.monotonic()
                session.receive(data)
                before = came
                while (message := session.next_message()) is not None:
                    came += self._take(message, number)
                if came > before:
                    self._outbox.put_now(Credit(came, ALL), number)
                waker.set()
        except TransportError:
            pass  # the client comes back on another lane, or not at all
        except (PeerError, FormatError) as error:
            # The session is closed for its own words; the client is owed the reason all the same.
            with contextlib.suppress(TransportError):
                await transport.send(encode_message(Refused(0, str(error), "", "")))
        finally:
            waiting.cancel()
            if sender is not None:
                sender.cancel()
                await asyncio.gather(sender, return_exceptions=True)
            self._wakers.discard(waker)
            self._outbox.lane_lost(number)
            del self._lanes[number]
            self._doubts.pop(number, None)
            await transport.close()

    async def watch(self) -> None:
        """Say how scans go on, and return when the client has been silent for too long."""
        while time.monotonic() - self._heard < self._silence and not self._over.is_set():
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._over.wait(), PROGRESS_SECONDS)
            self._worker.tell_progress()
            if self._outbox.shared:
                self._tell_backlog()
                self._set_wakers()  # some piece may have been on its way for too long

    def close(self) -> None:
        """End the threads; what they were doing is of no use to anybody any more."""
        self._over.set()
        if self._door is not None:
            self._door.close()
        for task in self._carried:
            task.cancel()
        self._worker.close()

    async def _send(
        self, number: int, transport: Transport, session: Session, waker: asyncio.Event
    ) -> None:
        try:
            while True:
                waker.clear()
                while session.state is State.OPEN:
                    message = self._outbox.take(number)
                    if message is None:
                        break
                    await transport.send(session.send(message))
                await waker.wait()
        finally:
            await transport.close()  # whatever ended this: half a lane is none

    def _end_unless_greeted(self, session: Session, transport: Transport) -> None:
        """The client never got as far as to know of this lane: it will not say that it is lost."""
        if session.state is State.GREETED:
            self._carry_on(transport.close())

    def _wake(self) -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self._set_wakers)

    def _set_wakers(self) -> None:
        for waker in self._wakers:
            waker.set()

    def _take(self, message: Message, lane: int) -> int:
        """Handle what came over a lane; returns how many bytes of pieces it was."""
        if isinstance(message, Piece):
            if message.frame != MESSAGES:
                raise PeerError("the client sent a segment")
            whole = self._assembler.add(message)
            if whole is not None:
                self._handle(_order_in(whole), message.segment)
            return len(message.data)
        if isinstance(message, Hello):
            self._share(dict(message.facts).get("lanes", ""))
        elif isinstance(message, Beat):
            self._outbox.put_now(message, lane)
        elif isinstance(message, Credit):
            self._outbox.allow(lane, message.allowed)
            self._outbox.arrived(lane, message.arrived)
        else:
            self._handle(message)
        return 0

    def _handle(self, message: Message, number: int = 0) -> None:
        """Do what the client asks; `number` says when it did, for lanes keep no order."""
        if isinstance(message, Bye):
            self._over.set()
        elif isinstance(message, Doubt):
            self._doubt(message, number)
        else:
            self._worker.handle(message)

    def _share(self, name: str) -> None:
        """The client means to have several lanes, if it says by which name they ask for us."""
        if not name or self._outbox.shared:
            return
        if not is_name(name):
            raise PeerError("the client's name for its lanes makes no sense")
        self._outbox.shared = True
        # Without a door there is one lane, and pieces all the same.
        with contextlib.suppress(SourceError):
            self._door = Door(name, self._admit, self._over.set)

    def _admit(self, read_fd: int, write_fd: int, connection: socket.socket) -> None:
        if len(self._lanes) >= LANES_LIMIT:
            os.close(read_fd)
            os.close(write_fd)
            connection.close()
            return
        transport = PipeTransport(read_fd, write_fd, "the client")
        self._carry_on(self._carry(transport, connection))

    def _carry_on(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self._carried.add(task)
        task.add_done_callback(self._carried.discard)

    async def _carry(self, transport: Transport, connection: socket.socket) -> None:
        """Carry a lane that came in by the door; it ends with the process that brought it, too."""
        loop = asyncio.get_running_loop()
        lane = asyncio.create_task(self.lane(transport))

        def gone() -> None:
            loop.remove_reader(connection)  # once: its cleaning up is not to be cancelled, too
            lane.cancel()

        loop.add_reader(connection, gone)
        try:
            await asyncio.gather(lane, return_exceptions=True)
        finally:
            loop.remove_reader(connection)
            lane.cancel()
            connection.close()

    def _doubt(self, message: Doubt, number: int) -> None:
        if message.lane not in self._lanes or number < self._doubts.get(message.lane, 0):
            return  # it is gone, or the client has thought better of it
        self._doubts[message.lane] = number
        if message.worth == TRUSTED:
            self._outbox.trust(message.lane)
            return
        self._outbox.doubt(message.lane)
        if message.worth == LOST:
            self._carry_on(self._lanes[message.lane].close())

    def _tell_backlog(self) -> None:
        waiting = self._outbox.waiting
        if bool(waiting) != bool(self._told_backlog) or waiting:
            self._outbox.put_now(Backlog(waiting))
        self._told_backlog = waiting


def _order_in(data: bytes) -> Message:
    """A message of the client that came in pieces."""
    try:
        message = decode_whole(data)
    except FormatError as error:
        raise PeerError(f"the client sent nonsense: {error}") from error
    if not isinstance(message, FROM_CLIENT):
        raise PeerError(f"the client sent {type(message).__name__}")
    return message


def scanner_for(cache: ScanCache, guard: RootGuard) -> ScannerOf:
    """What scans this machine."""

    def scanner_of(order: Scan, spool: Spool) -> Scanner:
        roots = [os.path.abspath(os.path.expanduser(root)) for root in order.roots]
        rules = Matcher(order.exclude, order.include)
        scope = wire.encode([order.exclude, order.include])
        return Scanner(roots, rules, cache, spool, guard=guard, scope=scope)

    return scanner_of


async def serve(
    transport: Transport,
    cache: ScanCache,
    roots: Sequence[bytes] | None = None,
    *,
    silence: float = SILENCE_SECONDS,
) -> None:
    """Serve the client that begins at `transport` until it goes; only below `roots` when they are
    given."""
    guard = RootGuard(roots)
    agent = Agent(cache, guard, scanner_for(cache, guard), silence=silence)
    lane = asyncio.create_task(agent.lane(transport))
    watch = asyncio.create_task(agent.watch())
    try:
        await asyncio.wait((lane, watch), return_when=asyncio.FIRST_COMPLETED)
        if agent.has_door:
            await watch
    finally:
        agent.close()
        watch.cancel()
        lane.cancel()
        await asyncio.gather(lane, watch, return_exceptions=True)
