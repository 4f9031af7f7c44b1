"""The way to a source that offers SFTP only: a dialer whose far end is an agent in this process.

That agent speaks the protocol as any other, so nothing on the client's side knows the difference.
It scans by `cas.sftp.scan`, and reads what is wanted from what was staged. The bytes that are
counted are those of the SFTP connections, not what the client and this agent say to each other.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass

from cas.agent.serve import Agent
from cas.agent.spool import Spool
from cas.errors import SourceError, TransportError
from cas.ignore import Matcher
from cas.messages import Scan
from cas.pull.silence import GIVE_UP_SECONDS
from cas.sftp import commands
from cas.sftp.here import Here
from cas.sftp.pool import Pool
from cas.sftp.remote import PROBE_SECONDS, Remote
from cas.sftp.scan import SftpScanner
from cas.sftp.shelf import Opener, Shelf
from cas.store.memory_index import MemoryScanCache
from cas.store.store import Store
from cas.transport.address import parse_address
from cas.transport.base import Transport
from cas.transport.memory import pair
from cas.transport.sftp import SftpSession
from cas.transport.ssh import SshDialer
from cas.transport.within import within

LANES = 8
STAGING = "staging"  # below the store
CLOSING_SECONDS = 15.0
TRIPS = 3
AHEAD = 0  # the number of a scan whose pages nobody asked for yet


@dataclass(frozen=True, slots=True)
class Trial:
    """What a server is like: seconds to connect and of a round trip, where a session begins, and
    whether commands are run."""

    connecting: float
    trip: float
    home: bytes
    runs_commands: bool


class SftpDialer:
    """Makes connections by `ssh` to `host`, `lanes` of them; see `Dialer`. `source` is the source's
    name in the plan. `store` is what is held, and where what comes is staged and kept if `keeps`;
    both are set before a scan is ordered."""

    def __init__(
        self,
        ssh: SshDialer,
        host: str,
        source: str,
        *,
        lanes: int | None = None,
        give_up: float = GIVE_UP_SECONDS,
    ) -> None:
        self.name = f"{host} (sftp)"
        self.store: Store | None = None
        self.keeps = False
        self.source = source
        self._ssh = ssh
        self._address = parse_address(host)
        self._lanes = lanes or LANES
        self._give_up = give_up

    async def connect(self) -> Transport:
        """See `Dialer.connect`."""
        first = await self._ssh.connect_sftp()
        pool = Pool(self._ssh, first, self._lanes, give_up=self._give_up)
        return SftpLane(self, pool)

    async def try_out(self) -> Trial:
        """Connect once, see what there is, and hang up. Raises as `connect` does."""
        began = time.monotonic()
        session = await self._ssh.connect_sftp()
        try:
            connecting = time.monotonic() - began
            trips = []
            for _ in range(TRIPS):
                began = time.monotonic()
                home = await session.real(b".")
                trips.append(time.monotonic() - began)
            return Trial(connecting, min(trips), home, await _runs_commands(session))
        except OSError as error:
            raise TransportError(
                f"the server refuses: {error.strerror}", where=self.name
            ) from error
        finally:
            await session.close()

    def attaching(self, _name: str) -> None:
        """No further lane to the agent: its connections are many as it is."""

    def facts(self) -> Sequence[tuple[str, str]]:
        """What is known of the far end."""
        user = self._address.user or ""
        return (("host", self._address.host), ("user", user), ("platform", "SFTP only"))


async def _runs_commands(session: SftpSession) -> bool:
    command, expected = commands.probe()
    try:
        return await session.run(command, b"", len(expected) + 1, PROBE_SECONDS) == expected
    except OSError:
        return False


class SftpLane:
    """A `Transport` to an agent in this process, whose wire are the connections of `pool`."""

    def __init__(self, dialer: SftpDialer, pool: Pool) -> None:
        self._pool = pool
        self._site = _Site(dialer, pool)
        self._ours, theirs = pair()
        cache = MemoryScanCache()
        self._agent = Agent(cache, self._site, self._site.scanner, facts=dialer.facts)
        self._tasks = [
            asyncio.create_task(self._agent.lane(theirs)),
            asyncio.create_task(self._agent.watch()),
        ]

    @property
    def bytes_in(self) -> int:
        """See `Transport.bytes_in`: of all connections."""
        return self._pool.bytes_in

    @property
    def bytes_out(self) -> int:
        """See `Transport.bytes_out`: of all connections."""
        return self._pool.bytes_out

    async def send(self, data: bytes) -> None:
        """See `Transport.send`."""
        await self._ours.send(data)

    async def receive(self) -> bytes:
        """See `Transport.receive`."""
        return await self._ours.receive()

    async def close(self) -> None:
        """See `Transport.close`."""
        await self._ours.close()
        self._agent.close()
        await self._pool.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        # Nobody else may stage files there before this agent's threads have ended.
        with contextlib.suppress(asyncio.TimeoutError):
            await within(asyncio.shield(self._site.closed), CLOSING_SECONDS)

    def complaints(self) -> str:
        """See `Transport.complaints`: an SFTP server has nothing to say."""
        return ""


class _Site:
    """What the agent in this process is handed: `Reach`, and what scans."""

    def __init__(self, dialer: SftpDialer, pool: Pool) -> None:
        self._dialer = dialer
        self._loop = asyncio.get_running_loop()
        self._remote = Remote(pool, self._loop)
        self._guard = threading.Lock()
        self._opened: tuple[Here, Shelf | None] | None = None
        self.closed = self._loop.create_future()

    def scanner(self, order: Scan, spool: Spool) -> SftpScanner:
        """See `ScannerOf`."""
        here, shelf = self._places()
        roots, rules = order.roots, Matcher(order.exclude, order.include)
        if order.scan == AHEAD:
            # What would be fetched could not be stored yet, and takes the room of what can.
            roots, shelf = (), None
        return SftpScanner(
            roots, rules, spool, order.tier, remote=self._remote, shelf=shelf, here=here
        )

    def opener(self) -> Opener:
        """See `Reach.opener`."""
        shelf = self._places()[1]
        if shelf is None:
            raise SourceError("nothing was fetched", where=self._dialer.name)
        return Opener(shelf)

    def close(self) -> None:
        """See `Reach.close`: the agent's last thread has ended."""
        if self._opened is not None and self._opened[1] is not None:
            self._opened[1].close()
        with contextlib.suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self._tell_closed)

    def _tell_closed(self) -> None:
        if not self.closed.done():
            self.closed.set_result(None)

    def _places(self) -> tuple[Here, Shelf | None]:
        """What is held of the source, and where what comes of it is staged, if it is kept. Raises
        SourceError when there is no store."""
        with self._guard:
            if self._opened is None:
                self._opened = _places_in(self._dialer)
            return self._opened


def _places_in(dialer: SftpDialer) -> tuple[Here, Shelf | None]:
    if dialer.store is None:
        raise SourceError("there is no store to compare it with", where=dialer.name)
    here = Here(dialer.store, dialer.source)
    if not dialer.keeps:
        return here, None
    return here, Shelf(dialer.store.layout.root / STAGING / dialer.source, here.holds_all)
