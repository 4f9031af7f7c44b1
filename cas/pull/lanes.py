"""All connections to one agent, as one: whatever is sent goes over some lane, whatever comes over
any is received.

The first lane starts the agent. If it can be reached over more of them, it is told a name by which
they ask for it, and from then on both ends deliver over whichever lane is free (`cas/outbox.py`);
`minder.py` opens, watches and replaces them. Bytes of lanes that are gone are counted on.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections import deque
from collections.abc import Coroutine
from hashlib import sha256

from cas.errors import CasError, FormatError, PeerError, TransportError
from cas.messages import (
    LOST,
    MESSAGES,
    Backlog,
    Beat,
    Bye,
    Credit,
    Doubt,
    Message,
    Missed,
    Page,
    Piece,
    Progress,
    Recipes,
    Refused,
    Scanned,
    Want,
    decode_whole,
)
from cas.outbox import ALL, Outbox
from cas.pieces import Assembler
from cas.pull.lane import Lane, open_lane, within
from cas.pull.member import Member
from cas.pull.minder import BEAT_SECONDS, LaneOptions, Minder
from cas.pull.state import LaneState, SourceState, SyncState
from cas.transport.base import Dialer, Proved

INBOX_SIZE = 8 * 2**20  # bytes that were received and not taken yet: then we read no further
MESSAGES_SIZE = 256 * 2**20  # of messages that are not whole yet
MESSAGE_SIZE = 1024  # about what one takes in memory, besides what is listed in it
LISTED_SIZE = 128  # of each thing in a list, besides its text
GOODBYE_SECONDS = 1.0


def agent_name(client: bytes) -> str:
    """A name for an agent of this client: its key stays the same from run to run."""
    return f"{sha256(client).hexdigest()[:16]}-{os.urandom(16).hex()}"


class Lanes:
    """The connections to the agent that `dialer` starts. `agent` is what it is to be called, "" if
    one lane is all that is wanted. `lane` is the number of the lane that brought what `receive`
    gave last, `host` what the source calls itself."""

    def __init__(
        self, dialer: Dialer, source: str, agent: str, options: LaneOptions, state: SyncState
    ) -> None:
        self.name = dialer.name
        self.host = ""
        self.lane = 0
        self.members: dict[int, Member] = {}
        self.outbox = Outbox(self._wake)
        self.outbox.shared = True
        self.backlog = 0
        self.brought = 0  # bytes of pieces that had not come before
        self.is_awaited = False  # whether the agent has something to do for us
        self._dialer = dialer
        self._attaching = dialer.attaching(agent) if agent else None
        self._facts = (("lanes", agent),) if self._attaching is not None else ()
        self.source = source
        self._options = options
        self._state = state
        self._only: Lane | None = None  # the lane, when there is to be one
        self._minder: Minder | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._ending: set[asyncio.Task[None]] = set()  # closes lanes that are gone
        self._assembler = Assembler(MESSAGES_SIZE)
        self._inbox: deque[tuple[Message, int]] = deque()
        self._inbox_size = 0
        self._arrival = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()
        self._failure: BaseException | None = None
        self._gone = (0, 0)  # bytes in and out of lanes that have ended
        self._told = (0, 0)
        self._closing = False
        self._paid = 0.0  # when what has come over a single lane has had its time

    @property
    def best(self) -> int | None:
        """How many lanes did best, when that is known."""
        return self._minder.best if self._minder is not None else None

    @property
    def is_full(self) -> bool:
        """Whether more was received than is taken: then nothing is read."""
        return not self._room.is_set()

    async def open(self) -> None:
        """Start the agent. Raises TransportError, PeerError."""
        shown = LaneState(self.source, 0, heard=time.monotonic())
        self._state.lanes.append(shown)
        try:
            lane = await open_lane(self._dialer, self._facts, silence=self._patience)
        except BaseException:
            self._state.lanes.remove(shown)
            raise
        self.host = lane.host
        self._introduce(lane)
        if self._attaching is None or "lanes" not in lane.facts:
            shown.state = "up"
            self._known.connections += 1
            self._only = lane
            self._start(self._beat(lane, shown))
            return
        self._minder = Minder(self, self._attaching, self._options, self._state, self.source)
        try:
            self.add(lane, shown, time.monotonic() - shown.heard)
        except CasError:
            self._state.lanes.remove(shown)
            await lane.close()
            raise
        self._start(self._minder.mind())

    async def send(self, message: Message) -> None:
        """Send a message over whichever lane takes it. Raises TransportError when there is only one
        and it is lost."""
        if self._only is not None:
            await self._only.send(message)
            return
        if isinstance(message, Want) and self._minder is not None:
            self._minder.expect()
        self.outbox.put_message(message)

    async def receive(self) -> Message:
        """The next message, whichever lane brings it. Raises TransportError when the source is
        given up or its agent is gone, PeerError when it breaks the protocol. May be cancelled at
        any moment."""
        if self._only is not None:
            return await self._receive_only(self._only)
        while not self._inbox:
            if self._failure is not None:
                raise self._failure
            self._arrival.clear()
            await self._arrival.wait()
        message, self.lane = self._inbox.popleft()
        self._inbox_size -= _size(message)
        if self._inbox_size <= INBOX_SIZE // 2:
            self._room.set()
        return message

    @property
    def is_far(self) -> bool:
        """Whether the link is likely to be what takes the time."""
        return self._minder is not None

    async def _receive_only(self, lane: Lane) -> Message:
        """The next message of the one lane; where there is a limit, not before what came last has
        had its time: what is not read stops the far end."""
        await asyncio.sleep(max(0.0, self._paid - time.monotonic()))
        message = await lane.receive()
        limit = self._options.limit() if isinstance(message, Piece) else None
        if limit is not None:
            self._paid = max(self._paid, time.monotonic()) + _size(message) / max(limit, 1)
        return message

    def progress(self) -> None:
        """Something useful has come: the far end is not merely answering."""
        if self._minder is not None:
            self._minder.progress()

    def came_again(self, size: int) -> None:
        """So many bytes of what was received had come before."""
        self.brought -= size

    def since(self) -> tuple[int, int]:
        """Bytes in and out, over all lanes, since this was last asked."""
        transports = [lane.transport for lane in self._open]
        now = (
            self._gone[0] + sum(transport.bytes_in for transport in transports),
            self._gone[1] + sum(transport.bytes_out for transport in transports),
        )
        told, self._told = self._told, now
        return now[0] - told[0], now[1] - told[1]

    async def goodbye(self) -> None:
        """Tell the agent that nothing more is needed, as far as it can be told quickly."""
        self._closing = True  # lanes that end now are not lost
        goodbyes = (within(GOODBYE_SECONDS, lane.send(Bye())) for lane in self._open)
        await asyncio.gather(*goodbyes, return_exceptions=True)

    async def close(self) -> None:
        """End all lanes and what minds them."""
        self._closing = True
        for task in self._tasks:
            task.cancel()
        try:
            await asyncio.gather(*self._tasks, return_exceptions=True)
        finally:
            self._state.lanes[:] = [s for s in self._state.lanes if s.source != self.source]
            await asyncio.gather(*(lane.close() for lane in self._open), *self._ending)

    def add(self, lane: Lane, shown: LaneState, seconds: float) -> None:
        """One more lane is up, after so many seconds. Raises PeerError when the agent does not
        number it, TransportError when all are being ended."""
        if self._closing:
            raise TransportError("no more lanes are needed", where=self.name)
        said = lane.facts.get("lane", "")
        number = int(said) if said.isdecimal() and len(said) < len("1000000") else -1
        if number < 0 or number in self.members:
            raise PeerError("the agent gave a lane no number of its own", where=self.name)
        now = time.monotonic()
        shown.number, shown.state, shown.heard = number, "up", now
        if self._minder is None:
            return
        member = self.members[number] = Member(lane, number, shown, now)
        self._known.connections += 1
        self._known.lanes = max(self._known.lanes, len(self.members))
        self.outbox.lane_opened(number)
        self.outbox.allow(number, ALL)
        self._minder.opened(member, now, seconds=seconds)
        member.tasks = (self._start(self._read(member)), self._start(self._write(member)))

    def lost(self, member: Member, why: str) -> None:
        """A lane has ended, or is given up: others take what it had."""
        if self._closing or self.members.pop(member.number, None) is None:
            return
        if self._minder is not None:
            self._minder.ended(member)
        self.outbox.lane_lost(member.number)
        self.outbox.put_message(Doubt(member.number, LOST))
        transport = member.lane.transport
        self._gone = (self._gone[0] + transport.bytes_in, self._gone[1] + transport.bytes_out)
        self._state.lanes[:] = [shown for shown in self._state.lanes if shown is not member.shown]
        if member.retired is None:
            self._known.lost += 1
        self.note(f"lane {member.number} is gone: {why}")
        for task in member.tasks:
            if task is not asyncio.current_task():
                task.cancel()
        # Not by whoever noticed: that may be cancelled, and half closed is open.
        ending = asyncio.create_task(member.lane.close())
        self._ending.add(ending)
        ending.add_done_callback(self._ending.discard)

    @property
    def _known(self) -> SourceState:
        return self._state.sources.setdefault(self.source, SourceState())

    def _introduce(self, lane: Lane) -> None:
        """Take down who answered."""
        known, facts = self._known, lane.facts
        known.host, known.cas, known.protocol = lane.host, lane.peer.version, lane.peer.protocol
        known.python, known.system = facts.get("python", ""), facts.get("platform", "")
        if isinstance(lane.transport, Proved):
            known.host_key = lane.transport.host_key
        known.lanes = max(known.lanes, 1)

    def fail(self, error: BaseException) -> None:
        """All is over: whoever receives is told."""
        if self._failure is None:
            self._failure = error
        self._arrival.set()

    def note(self, text: str) -> None:
        """Something worth a line has happened."""
        self._state.note(f"{self.source}: {text}")

    @property
    def _patience(self) -> float | None:
        """How long a lane may be silent before it ends by itself: with others, it is for the
        minder to judge."""
        return self._options.give_up or None if self._attaching is not None else None

    @property
    def _open(self) -> list[Lane]:
        if self._only is not None:
            return [self._only]
        return [member.lane for member in self.members.values()]

    def _start(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        """What nobody expected to end must not end unheard."""
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self.fail(error)

    async def _read(self, member: Member) -> None:
        try:
            while True:
                message = await member.lane.receive()
                self._take(member, message, time.monotonic())
                await self._room.wait()
        except FormatError as error:
            self.fail(PeerError(f"the far end sent nonsense: {error}", where=self.name))
        except TransportError as error:
            self.lost(member, str(error))
        except CasError as error:
            self.fail(error)

    async def _write(self, member: Member) -> None:
        try:
            while True:
                member.waker.clear()
                while (message := self.outbox.take(member.number)) is not None:
                    await member.lane.send(message)
                await member.waker.wait()
        except TransportError as error:
            self.lost(member, str(error))

    def _take(self, member: Member, message: Message, now: float) -> None:
        if isinstance(message, Piece):
            member.came(len(message.data), now)
            self.brought += len(message.data)
            if self._minder is not None:
                self._minder.credit(member, now)
            if message.frame != MESSAGES:
                self._put(message, member.number)
                return
            whole = self._assembler.add(message)
            if whole is not None:
                self._put(decode_whole(whole), member.number)
        elif isinstance(message, Credit):
            self.outbox.arrived(member.number, message.arrived)
        elif isinstance(message, Beat):
            member.answered(message.number, now)
        elif isinstance(message, Backlog):
            self.backlog = message.size
        elif isinstance(message, (Progress, Refused)):
            self._put(message, member.number)
        else:
            raise PeerError(f"the agent sent {type(message).__name__} in one", where=self.name)

    def _put(self, message: Message, lane: int) -> None:
        self._inbox.append((message, lane))
        self._inbox_size += _size(message)
        if self._inbox_size > INBOX_SIZE:
            self._room.clear()
        self._arrival.set()

    def _wake(self) -> None:
        for member in self.members.values():
            member.waker.set()

    async def _beat(self, lane: Lane, shown: LaneState) -> None:
        """Let the agent know, over its one lane, that we are there."""
        number = 0
        with contextlib.suppress(TransportError):  # the receiving side says so
            while True:
                await asyncio.sleep(BEAT_SECONDS)
                number += 1
                shown.bytes_in, shown.heard = lane.transport.bytes_in, lane.heard
                await lane.send(Beat(number))


def _size(message: Message) -> int:
    """About how many bytes of memory it takes."""
    if isinstance(message, Piece):
        return len(message.data)
    if isinstance(message, Page):
        return MESSAGE_SIZE + len(message.encoded)
    if isinstance(message, Recipes):
        return MESSAGE_SIZE + sum(LISTED_SIZE + len(one) for one in message.encoded)
    if isinstance(message, Scanned):
        return MESSAGE_SIZE + sum(2 * LISTED_SIZE + len(one.path) for one in message.problems)
    if isinstance(message, Missed):
        return MESSAGE_SIZE + sum(LISTED_SIZE + len(reason) for _, reason in message.chunks)
    return MESSAGE_SIZE
