"""Several SFTP connections, fed from one queue.

What is to be asked of the server is a *job*: it works on any session, and may be begun again on
another as often as sessions are lost, since all of them only read. Whoever is free takes the next
job; nothing goes in step. A connection has as many jobs under way as come back about as soon as
one alone would (`_Depth`): a long link is not left empty, and a slow one not filled with what would
only wait in it, and be waited for when all the others are done.

A connection over which nothing has come for `SILENT_SECONDS` while something is under way, or
hardly more than keepalives for `CRAWLING_SECONDS`, is closed, and what it had goes back to the head
of the queue. It is made again after 1, 2, 4, 8, 15 seconds. While everything is silent that goes
on, until nothing has come back for `give_up` seconds; then all that waits fails.

For one event loop; `ask` may be called from other threads.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import errno
import time
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from cas.errors import HostKeyError, TransportError
from cas.pull.silence import GIVE_UP_SECONDS
from cas.pull.silence import REFUSED_SECONDS as RETRY_SECONDS
from cas.transport.sftp import SftpSession

SILENT_SECONDS = 25.0
CRAWLING_SECONDS, CRAWLING_SIZE = 120.0, 4096
WATCH_SECONDS = 1.0
LOGINS_AT_ONCE = 7  # OpenSSH begins to refuse at ten
LOSSES_LIMIT = 8  # connections that one job may lose: it may be what loses them
JOBS_FIRST, JOBS_LEAST, JOBS_MOST = 4, 2, 32  # under way on a connection
QUICK, SLOW = 2.0, 4.0  # times the least that a job took of late
DEPTH_SECONDS = 20.0  # "of late"
SOLO_SECONDS = 1.0  # that one connection is given to be done with all there is to do

T = TypeVar("T")
Work = Callable[[SftpSession], Awaitable[T]]


class Dials(Protocol):
    """Makes connections (`ssh.SshDialer`)."""

    async def connect_sftp(self) -> SftpSession:
        """A new one. Raises TransportError."""


@dataclass(slots=True, eq=False)
class _Job:
    """`is_long`: the server may take as long as it likes over it, and send nothing meanwhile.
    `is_bulk`: how long it takes says how much the connection bears."""

    work: Work[Any]
    answer: asyncio.Future[Any]
    is_long: bool
    is_bulk: bool
    losses: int = 0


class Bell:
    """Wakes all who wait for it at this moment."""

    def __init__(self) -> None:
        self._waiting: list[asyncio.Future[None]] = []

    def ring(self) -> None:
        waiting, self._waiting = self._waiting, []
        for waiter in waiting:
            if not waiter.done():
                waiter.set_result(None)

    def rung(self) -> asyncio.Future[None]:
        """Done when it rings next."""
        waiter = asyncio.get_running_loop().create_future()
        self._waiting.append(waiter)
        return waiter


class Pool:
    """Up to `lanes` connections, of which `first` is there already; the others are made when there
    is work for them. Call `close`."""

    def __init__(
        self,
        dialer: Dials,
        first: SftpSession,
        lanes: int,
        *,
        give_up: float = GIVE_UP_SECONDS,
        silent: float = SILENT_SECONDS,
    ) -> None:
        self.host_key = first.host_key
        self._dialer = dialer
        self._give_up = give_up
        self._silent = silent
        self._loop = asyncio.get_running_loop()
        self._bell = Bell()
        self._first: deque[_Job] = deque()
        self._waiting: deque[_Job] = deque()
        self._under_way: set[_Job] = set()
        self._logins = asyncio.Semaphore(LOGINS_AT_ONCE)
        self._sessions: set[SftpSession] = set()
        self._ended_in = self._ended_out = 0
        self._heard = time.monotonic()
        self._began: float | None = None  # when there was first something to do
        self._failure: TransportError | None = None
        self._last_error = ""
        self._tasks = [
            asyncio.create_task(self._line(first if n == 0 else None)) for n in range(lanes)
        ]
        self._tasks.append(asyncio.create_task(self._watch()))

    @property
    def bytes_in(self) -> int:
        """What has come over all connections, those that have ended included."""
        return self._ended_in + sum(session.bytes_in for session in self._sessions)

    @property
    def bytes_out(self) -> int:
        """What has gone over all connections."""
        return self._ended_out + sum(session.bytes_out for session in self._sessions)

    def ask(self, work: Work[T], *, is_long: bool = False) -> concurrent.futures.Future[T]:
        """As `do`, from another thread, and before all that `do` has put in the queue."""
        doing = self.do(work, is_long=is_long, first=True)
        return asyncio.run_coroutine_threadsafe(doing, self._loop)

    async def do(self, work: Work[T], *, is_long: bool = False, first: bool = False) -> T:
        """What `work` returns, with whichever session it was done in the end. Raises what it
        raises, and TransportError when the server is given up."""
        if self._failure is not None:
            raise self._failure
        if not (self._first or self._waiting or self._under_way):
            self._heard = time.monotonic()
            self._began = self._began or self._heard
        job = _Job(work, self._loop.create_future(), is_long, is_bulk=not first)
        (self._first if first else self._waiting).append(job)
        self._bell.ring()
        result: T = await job.answer
        return result

    async def close(self) -> None:
        """End all connections; whoever waits gets TransportError."""
        self._fail(TransportError("the connection was closed here"))
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    # One connection.

    async def _line(self, session: SftpSession | None) -> None:
        attempt = 0
        while self._failure is None:
            try:
                if session is None:
                    session = await self._connected()
                if await self._serve(session):
                    attempt = 0
            except HostKeyError as error:
                self._fail(error)
            except TransportError as error:
                self._last_error = str(error)
            session = None
            await asyncio.sleep(RETRY_SECONDS[min(attempt, len(RETRY_SECONDS) - 1)])
            attempt += 1

    async def _connected(self) -> SftpSession:
        """A new connection, when there is more to do than the others do."""
        while not self._is_worth_another():
            await asyncio.wait((self._bell.rung(),), timeout=SOLO_SECONDS)
        async with self._logins:
            return await self._dialer.connect_sftp()

    def _is_worth_another(self) -> bool:
        waiting = len(self._first) + len(self._waiting)
        is_busy = bool(waiting or self._under_way)
        for_long = self._began is not None and time.monotonic() - self._began > SOLO_SECONDS
        return waiting > JOBS_LEAST * len(self._sessions) or (is_busy and for_long)

    async def _serve(self, session: SftpSession) -> bool:
        """Take jobs until the connection is lost; whether any was done."""
        self._sessions.add(session)
        running: dict[asyncio.Task[float | None], _Job] = {}
        depth = _Depth()
        watch = _Watch(session, self._silent)
        served = False
        bell = self._bell.rung()
        try:
            while True:
                while len(running) < depth.jobs and (job := self._next()) is not None:
                    running[asyncio.create_task(self._try(job, session))] = job
                if bell.done():
                    bell = self._bell.rung()
                waiting: list[asyncio.Future[Any]] = [bell, *running]
                done, _ = await asyncio.wait(
                    waiting, timeout=WATCH_SECONDS, return_when=asyncio.FIRST_COMPLETED
                )
                for task in [task for task in running if task in done]:
                    seconds = task.result()  # raises TransportError
                    self._under_way.discard(running.pop(task))
                    served = True
                    if seconds is not None:
                        depth.took(seconds)
                watch.look(any(not job.is_long for job in running.values()))
        except TransportError as error:
            self._last_error = str(error)
        finally:
            await self._lost(session, running)
        return served

    def _next(self) -> _Job | None:
        while queue := self._first or self._waiting:
            job = queue.popleft()
            if not job.answer.done():
                self._under_way.add(job)
                return job
        return None

    async def _try(self, job: _Job, session: SftpSession) -> float | None:
        """Do a job; how long it took, None where that says nothing. Raises TransportError when the
        session is lost."""
        began = time.monotonic()
        try:
            result = await job.work(session)
        except TransportError:
            raise
        except Exception as error:  # noqa: BLE001 - whoever waits for it must hear of it
            if not job.answer.done():
                job.answer.set_exception(error)
        else:
            if not job.answer.done():
                job.answer.set_result(result)
        self._heard = time.monotonic()
        return self._heard - began if job.is_bulk else None

    async def _lost(
        self, session: SftpSession, running: dict[asyncio.Task[float | None], _Job]
    ) -> None:
        """Give back what a connection had under way, and release it."""
        for task in running:
            task.cancel()
        for job in reversed(running.values()):
            self._under_way.discard(job)
            if job.answer.done():
                continue
            job.losses += 1
            if job.losses >= LOSSES_LIMIT:
                job.answer.set_exception(OSError(errno.EIO, "the connection was lost each time"))
            else:
                self._first.appendleft(job)
        self._sessions.discard(session)
        self._bell.ring()
        await asyncio.gather(*running, return_exceptions=True)
        await session.close()
        self._ended_in += session.bytes_in
        self._ended_out += session.bytes_out

    # All of them.

    async def _watch(self) -> None:
        while self._failure is None:
            await asyncio.sleep(WATCH_SECONDS)
            now = time.monotonic()
            if not self._all() or (self._under_way and all(job.is_long for job in self._under_way)):
                self._heard = now
            if now - self._heard > self._give_up:
                why = f": {self._last_error}" if self._last_error else ""
                self._fail(TransportError(f"nothing has come for {self._give_up:.0f} s{why}"))

    def _fail(self, error: TransportError) -> None:
        self._failure = self._failure or error
        for job in self._all():
            if not job.answer.done():
                job.answer.set_exception(self._failure)
        self._first.clear()
        self._waiting.clear()
        self._bell.ring()

    def _all(self) -> list[_Job]:
        return [*self._first, *self._waiting, *self._under_way]


class _Watch:
    """Tells a connection that is dead from one that is slow, by the bytes that come."""

    def __init__(self, session: SftpSession, silent: float) -> None:
        self._session = session
        self._silent = silent
        self._begin()

    def _begin(self) -> None:
        now, came = time.monotonic(), self._session.bytes_in
        self._last = self._mark = (now, came)

    def look(self, is_busy: bool) -> None:
        """To be called every second or so. Raises TransportError when it is dead."""
        if not is_busy:
            self._begin()
            return
        now, came = time.monotonic(), self._session.bytes_in
        if came > self._last[1]:
            self._last = (now, came)
        elif now - self._last[0] > self._silent:
            raise TransportError(f"nothing has come for {self._silent:.0f} s")
        if came - self._mark[1] >= CRAWLING_SIZE:
            self._mark = (now, came)
        elif now - self._mark[0] > CRAWLING_SECONDS:
            raise TransportError(f"next to nothing has come for {CRAWLING_SECONDS:.0f} s")


class _Depth:
    """How many jobs a connection has under way: one more as long as they come back as quickly as
    ever, one less when they wait for each other (as Vegas does with packets)."""

    def __init__(self) -> None:
        self.jobs = JOBS_FIRST
        self._least = self._least_before = float("inf")
        self._since = time.monotonic()

    def took(self, seconds: float) -> None:
        """A job came back after so long."""
        now = time.monotonic()
        if now - self._since > DEPTH_SECONDS:
            self._since, self._least_before, self._least = now, self._least, float("inf")
        self._least = min(self._least, seconds)
        least = min(self._least, self._least_before)
        if seconds < QUICK * least + 0.02:
            self.jobs = min(self.jobs + 1, JOBS_MOST)
        elif seconds > SLOW * least:
            self.jobs = max(self.jobs - 1, JOBS_LEAST)
