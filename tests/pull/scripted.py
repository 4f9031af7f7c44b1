"""An agent that does what a test says, over a transport in memory: what no honest one would."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from cas.chunker import IDENTITY
from cas.entry import Content, Entry, Kind, Owner
from cas.errors import TransportError
from cas.frame import Codec
from cas.ids import digest_of
from cas.messages import (
    PIECE_SIZE,
    PROTOCOL,
    Hello,
    Message,
    Page,
    Piece,
    Scan,
    Scanned,
    Want,
)
from cas.page import encode_page
from cas.plan import Tier
from cas.pull.state import SyncState
from cas.pull.sync import SyncOptions, sync
from cas.segment import SegmentHead, encode_segment
from cas.session import Role, Session
from cas.store.writer import Writer
from cas.transport.base import Dialer, Transport
from cas.transport.memory import pair
from tests.pull.world import World

LIMIT_SECONDS = 120.0

M = TypeVar("M")


class Peer:
    """The agent's end of a lane."""

    def __init__(self, transport: Transport) -> None:
        self.transport = transport
        self._session = Session(Role.AGENT)
        self.heard_end = False

    async def greet(self) -> Scan:
        """Say HELLO, and wait for the order to scan."""
        hello = Hello(PROTOCOL, "0", IDENTITY, ())
        await self.transport.send(self._session.greeting(hello))
        return await self.get(Scan)

    async def send(self, *messages: Message) -> None:
        """Send all of them."""
        for message in messages:
            await self.transport.send(self._session.send(message))

    async def get(self, kind: type[M]) -> M:
        """The next message of a kind, others passed over."""
        while True:
            message = self._session.next_message()
            if isinstance(message, kind):
                return message
            if message is None:
                data = await self.transport.receive()
                if not data:
                    self.heard_end = True
                    raise TransportError("the client has gone")
                self._session.receive(data)

    async def until_gone(self) -> None:
        """Read, and say nothing, until the client has gone."""
        await self.get(Hello)  # a second one never comes


Script = Callable[[Peer], Awaitable[None]]


class ScriptDialer:
    """Each connection runs the next of `scripts`, the last one again and again."""

    name = "the script"

    def __init__(self, *scripts: Script) -> None:
        self._scripts = list(scripts)
        self.connections = 0
        self.failed: list[BaseException] = []
        self._tasks: set[asyncio.Task[None]] = set()

    def attaching(self, name: str) -> None:
        """See `Dialer.attaching`."""
        del name

    async def connect(self) -> Transport:
        """See `Dialer.connect`."""
        near, far = pair()
        script = self._scripts[min(self.connections, len(self._scripts) - 1)]
        self.connections += 1
        task = asyncio.create_task(self._run(script, far))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return near

    async def _run(self, script: Script, far: Transport) -> None:
        try:
            await script(Peer(far))
        except TransportError:
            pass  # the client has seen enough
        except Exception as error:  # noqa: BLE001 - of the script itself: the test must know
            self.failed.append(error)
        finally:
            await far.close()


def run_scripts(world: World, *scripts: Script) -> SyncState:
    """Sync the tier "one" from an agent that follows `scripts`; whatever the sync raises."""
    dialer = ScriptDialer(*scripts)
    try:
        asyncio.run(run_sync(world, dialer, world.tier("one")))
    finally:
        assert not dialer.failed, dialer.failed
    return world.state


async def run_sync(world: World, dialer: Dialer, *tiers: Tier) -> None:
    """Sync tiers, whatever their source, from what `dialer` reaches; ends in `LIMIT_SECONDS`."""
    world.state = SyncState()
    store = world.open()
    writer = Writer(world.layout, world.index)
    dialers = {tier.source: dialer for tier in tiers}
    work = sync(tiers, dialers, store, writer, world.state, SyncOptions(give_up=0.0))
    try:
        await asyncio.wait_for(work, LIMIT_SECONDS)
    finally:
        writer.close()
        store.reader.close()


def file(path: bytes, data: bytes) -> Entry:
    """The entry of a file of one chunk."""
    owner = Owner(0o644, 0, 0, b"", b"")
    content = Content(len(data), digest_of(data), 1)
    return Entry(path, Kind.FILE, owner, 0, len(data), content)


def page(number: int, *entries: Entry, scan: int = 1) -> Page:
    """A page as the agent sends it."""
    return Page(scan, number, encode_page(list(entries)))


def scanned(pages: int, scan: int = 1) -> Scanned:
    """The end of a scan without problems."""
    return Scanned(scan, pages, (), 1, 2)


def segment(
    key: tuple[int, int],
    chunks: Sequence[bytes],
    runs: Sequence[tuple[int, int, int, int]],
    *,
    last: bool = False,
    codec: Codec = Codec.PLAIN,
    payload: bytes | None = None,
) -> list[Piece]:
    """The pieces of a segment; `payload` is the chunks end to end when it is not given."""
    plain = b"".join(chunks)
    head = SegmentHead(codec, len(plain), last, tuple(runs))
    return pieces(key, encode_segment(head, plain if payload is None else payload))


def pieces(key: tuple[int, int], data: bytes) -> list[Piece]:
    """`data` as the pieces of a segment."""
    return [
        Piece(key[0], key[1], at, len(data), data[at : at + PIECE_SIZE])
        for at in range(0, len(data), PIECE_SIZE)
    ]


async def serve_wants(peer: Peer, contents: dict[int, list[bytes]], wants: int) -> None:
    """Answer so many wants with all that `contents` (page number -> chunks) has of them."""
    for frame in range(1, wants + 1):
        want = await peer.get(Want)
        wanted = indexes(want)
        chunks = [contents[want.number][index] for index in wanted]
        runs = [(want.scan, want.number, index, 1) for index in wanted]
        await peer.send(*segment((frame, 0), chunks, runs, last=True))


def indexes(want: Want) -> list[int]:
    """The chunks that a want names."""
    bits = int.from_bytes(want.bitmap, "little")
    return [index for index in range(bits.bit_length()) if bits >> index & 1]
