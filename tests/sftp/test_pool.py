"""The pool of connections, over sessions that do as they are told."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, cast

import pytest

from cas.errors import HostKeyError, TransportError
from cas.sftp import pool as pools
from cas.sftp.pool import LOSSES_LIMIT, Pool
from cas.transport.sftp import SftpSession


class Session:
    """One connection; jobs in these tests look at it themselves."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.bytes_in = 100
        self.bytes_out = 10
        self.host_key = b"key"
        self.closed = False

    async def close(self) -> None:
        self.closed = True


class Dialer:
    """Makes sessions; `refusal` is raised instead while it is set."""

    def __init__(self) -> None:
        self.made: list[Session] = []
        self.refusal: TransportError | None = None

    async def connect_sftp(self) -> SftpSession:
        if self.refusal is not None:
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
            await asyncio.wait_for(test(dialer, pool), 20)
        finally:
            await pool.close()
        assert all(session.closed for session in dialer.made)
        return dialer

    return asyncio.run(body())


def number_of(session: SftpSession) -> int:
    return cast(Any, session).number  # type: ignore[no-any-return]


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


def test_one_over_which_something_comes_is_not() -> None:
    async def test(_: Dialer, pool: Pool) -> None:
        async def work(session: SftpSession) -> int:
            for _ in range(20):
                await asyncio.sleep(0.05)
                cast(Any, session).bytes_in += 10
            return number_of(session)

        assert 0 == await pool.do(work)

    run(test, lanes=1, silent=0.3)


def test_keepalives_alone_do_not_keep_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pools, "CRAWLING_SECONDS", 0.3)

    async def test(_: Dialer, pool: Pool) -> None:
        async def work(session: SftpSession) -> int:
            while number_of(session) == 0:
                await asyncio.sleep(0.02)
                cast(Any, session).bytes_in += 10
            return number_of(session)

        assert 1 == await pool.do(work)

    run(test, lanes=1)


def test_the_server_may_take_its_time_over_a_command() -> None:
    async def test(_: Dialer, pool: Pool) -> None:
        async def work(session: SftpSession) -> int:
            await asyncio.sleep(1)
            return number_of(session)

        assert 0 == await pool.do(work, is_long=True)

    run(test, lanes=1, silent=0.1, give_up=0.3)


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
        await asyncio.sleep(0.3)
        assert not working.done()
        dialer.refusal = None
        assert 1 == await working

    run(test, give_up=10)


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

        async def slow(_: SftpSession) -> None:
            await asyncio.sleep(0.02)
            order.append("bulk")

        async def quick(_: SftpSession) -> None:
            order.append("asked")

        bulk = [asyncio.ensure_future(pool.do(slow)) for _ in range(100)]
        await asyncio.sleep(0.01)
        await asyncio.to_thread(lambda: pool.ask(quick).result())
        assert order.index("asked") < 60
        await asyncio.gather(*bulk)

    run(test, lanes=1)
