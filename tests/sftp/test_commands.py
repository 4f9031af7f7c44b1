"""Commands at the far end, over a real sshd."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from cas.transport.sftp import SftpSession
from cas.transport.ssh import SshDialer
from tests.real.sshd import Server

LIMIT_SECONDS = 120.0


async def _session(server: Server) -> SftpSession:
    return await SshDialer(server.alias, None, config_paths=[server.config]).connect_sftp()


def test_what_a_command_says_of_its_input(sshd: Server) -> None:
    async def run() -> bytes:
        session = await _session(sshd)
        try:
            return await session.run("cat", b"said", 100, LIMIT_SECONDS)
        finally:
            await session.close()

    assert b"said" == asyncio.run(run())


def test_a_command_that_ends_before_it_is_given_anything(
    sshd: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may be so quick: a server that allows no commands ends each at once."""

    async def run() -> bytes:
        session = await _session(sshd)
        connection: Any = session._connection
        create = connection.create_process

        async def ended(*words: object, **options: object) -> object:
            process = await create(*words, **options)
            await process.wait_closed()
            return process

        monkeypatch.setattr(connection, "create_process", ended)
        try:
            return await session.run("echo said", b"input", 100, LIMIT_SECONDS)
        finally:
            await session.close()

    assert b"said\n" == asyncio.run(run())
