"""The pool of connections, over sessions that do as they are told."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from cas.errors import HostKeyError, TransportError
from cas.sftp import pool as pools
from cas.sftp.pool import CRAWLING_SIZE, JOBS_FIRST, LOSSES_LIMIT, SILENT_SECONDS, Pool
from cas.transport.sftp import SftpSession

LIMIT_SECONDS = 120.0


class Session:
    """One connection; jobs in these tests look at it themselves. `looks` counts how often somebody
    has asked what has come."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.came = 100
        self.looks = 0
        self.bytes_out = 10
        self.host_key = b"key"
        self.closed = False

    @property
    def bytes_in(self) -> int:
        self.looks += 1
        return self.came

    async def close(self) -> None:
        self.closed = True


class Dialer:
    """Makes sessions; `refusal` is raised instead while it is set, and `refused` counts that."""

    def __init__(self) -> None:
        self.made: list[Session] = []
        self.refusal: TransportError | None = None
        self.refused = 0

    async def connect_sftp(self) -> SftpSession:
        if self.refusal is not None:
            self.refused += 1
            raise self.refusal
        self.made.append(Session(len(self.made)))
        return cast(SftpSession, self.made[-1])


Test = Callable[[Dialer, Pool], Awaitable[None]]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pools, "RETRY_SECONDS", (0.01, 0.05))
    monkeypatch.setattr(pools, "WATCH_SECONDS", 0.02)


def run(test: Test, *, lanes: int = 3, **limits: float) -> Dialer:
    async def body() -> Dialer:
        dialer = Dialer()
        pool = Pool(dialer, await dialer.connect_sftp(), lanes, **limits)
        try:
            await asyncio.wait_for(test(dialer, pool), LIMIT_SECONDS)
        finally:
            await pool.close()
        assert all(session.closed for session in dialer.made)
        return dialer

    return asyncio.run(body())


def number_of(session: SftpSession) -> int:
    return cast(Any, session).number  # type: ignore[no-any-return]


class Clock:
    """A clock for the pool that only `pass_by` moves."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._now = 0.0
        self._reads = 0
        patch.setattr(pools, "time", SimpleNamespace(monotonic=self._read))

    def _read(self) -> float:
        self._reads += 1
        return self._now

    async def pass_by(self, seconds: float) -> None:
        """Let time pass, and wait until all who watch have seen that."""
        self._now += seconds
        seen = self._reads
        await until(lambda: self._reads > seen + 4)


async def until(condition: Callable[[], bool]) -> None:
    """Wait for something that comes by itself."""
    while not condition():  # noqa: ASYNC110
        await asyncio.sleep(0.001)


def test_work_is_shared_out_and_none_is_lost() -> None:
    async def test(dialer: Dialer, pool: Pool) -> None:
        async def work(session: SftpSession) -> int:
            await asyncio.sleep(0.01)
            return number_of(session)

        by = await asyncio.gather(*(pool.do(work) for _ in range(200)))
        assert {0, 1, 2} == set(by)

    assert 3 == len(run(test).made)


def test_a_little_work_needs_one_connection() -> None:
    async def test(_: Dialer, pool: Pool) -> None:
        async def work(session: SftpSession) -> int:
            return number_of(session)

        assert 0 == await pool.do(work)

    assert 1 == len(run(test).made)


def test_what_a_lost_connection_had_is_done_by_another() -> None:
    async def test(dialer: Dialer, pool: Pool) -> None:
        done: list[int] = []

        async def work(session: SftpSession) -> None:
            await asyncio.sleep(0.005)
            if number_of(session) in (0, 1):
                raise TransportError("lost")
            done.append(number_of(session))

        await asyncio.gather(*(pool.do(work) for _ in range(50)))
        assert 50 == len(done)
        assert pool.bytes_in == 100 * len(dialer.made)
        assert pool.bytes_out == 10 * len(dialer.made)

    run(test)


def test_an_answer_that_is_an_error_is_an_answer() -> None:
    async def test(_: Dialer, pool: Pool) -> None:
        async def work(_: SftpSession) -> None:
            raise PermissionError(13, "no")

        with pytest.raises(PermissionError):
            await pool.do(work)

    assert 1 == len(run(test).made)


def test_a_job_that_loses_every_connection_is_given_up() -> None:
    async def test(dialer: Dialer, pool: Pool) -> None:
        async def bad(_: SftpSession) -> None:
            raise TransportError("lost")

        async def good(_: SftpSession) -> int:
            return 1

        with pytest.raises(OSError, match="lost each time"):
            await pool.do(bad)
        assert LOSSES_LIMIT <= len(dialer.made) <= LOSSES_LIMIT + 3
        assert 1 == await pool.do(good)

    run(test)


def test_a_silent_connection_is_replaced() -> None:
    async def test(dialer: Dialer, pool: Pool) -> None:
        async def work(session: SftpSession) -> int:
            if number_of(session) == 0:
                await asyncio.sleep(3600)
            return number_of(session)

        assert {0} != {await pool.do(work)}
        assert dialer.made[0].closed

    run(test, lanes=1, silent=0.2)


async def bring(session: SftpSession, clock: Clock, size: int, seconds: float) -> None:
    """Let so much come in so many seconds, and wait until that was seen."""
    one = cast(Session, session)
    one.came += size
    seen = one.looks
    await clock.pass_by(seconds)
    await until(lambda: one.looks > seen)


def test_one_over_which_something_comes_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)

    async def test(_: Dialer, pool: Pool) -> None:
        async def work(session: SftpSession) -> int:
            for _ in range(20):
                await bring(session, clock, CRAWLING_SIZE, SILENT_SECONDS - 1)
            return number_of(session)

        assert 0 == await pool.do(work)

    run(test, lanes=1)


def test_keepalives_alone_do_not_keep_it(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)

    async def test(_: Dialer, pool: Pool) -> None:
        async def work(session: SftpSession) -> int:
            while number_of(session) == 0:
                await bring(session, clock, 10, SILENT_SECONDS - 1)
            return number_of(session)

        assert 1 == await pool.do(work)

    run(test, lanes=1)


def test_the_server_may_take_its_time_over_a_command(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)

    async def test(_: Dialer, pool: Pool) -> None:
        async def work(session: SftpSession) -> int:
            for _ in range(10):
                await clock.pass_by(1000.0)
            return number_of(session)

        assert 0 == await pool.do(work, is_long=True)

    run(test, lanes=1, give_up=300.0)


def test_it_is_given_up_when_nothing_comes_back() -> None:
    async def test(dialer: Dialer, pool: Pool) -> None:
        async def work(_: SftpSession) -> None:
            dialer.refusal = TransportError("no route")
            raise TransportError("lost")

        with pytest.raises(TransportError, match="nothing has come for 0 s: no route"):
            await asyncio.gather(*(pool.do(work) for _ in range(5)))
        with pytest.raises(TransportError):
            await pool.do(work)

    run(test, give_up=0.4)


def test_it_goes_on_when_the_server_is_back() -> None:
    async def test(dialer: Dialer, pool: Pool) -> None:
        async def work(session: SftpSession) -> int:
            if number_of(session) == 0:
                dialer.refusal = TransportError("no route")
                raise TransportError("lost")
            return number_of(session)

        working = asyncio.ensure_future(pool.do(work))
        await until(lambda: dialer.refused > 5)
        assert not working.done()
        dialer.refusal = None
        assert 1 == await working

    run(test, give_up=LIMIT_SECONDS)


def test_another_host_key_ends_it_at_once() -> None:
    async def test(dialer: Dialer, pool: Pool) -> None:
        async def work(_: SftpSession) -> None:
            dialer.refusal = HostKeyError("changed")
            raise TransportError("lost")

        with pytest.raises(HostKeyError):
            await pool.do(work)

    run(test)


def test_closing_wakes_whoever_waits() -> None:
    async def test(_: Dialer, pool: Pool) -> None:
        async def work(_: SftpSession) -> None:
            await asyncio.sleep(3600)

        waiting = [asyncio.ensure_future(pool.do(work)) for _ in range(100)]
        await asyncio.sleep(0.05)
        await pool.close()
        results = await asyncio.gather(*waiting, return_exceptions=True)
        assert {TransportError} == {type(result) for result in results}

    run(test)


def test_what_a_thread_asks_comes_first() -> None:
    async def test(_: Dialer, pool: Pool) -> None:
        order: list[str] = []
        begun, asked = asyncio.Event(), threading.Event()

        async def bulk(_: SftpSession) -> None:
            begun.set()
            await until(asked.is_set)
            order.append("bulk")

        async def quick(_: SftpSession) -> None:
            order.append("asked")

        def ask() -> None:
            asking = pool.ask(quick)
            asked.set()
            asking.result()

        doing = [asyncio.ensure_future(pool.do(bulk)) for _ in range(100)]
        await begun.wait()
        await asyncio.to_thread(ask)
        await asyncio.gather(*doing)
        assert order.index("asked") <= 2 * JOBS_FIRST  # those under way, and some that they let in

    run(test, lanes=1)
