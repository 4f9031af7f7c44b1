"""Servers that lie, break the protocol, or fall silent: what they can do is cost time."""

from __future__ import annotations

import asyncio
import errno
import os
import struct
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import pytest

from cas.errors import TransportError
from cas.transport.sftp import FILES_OPEN, PIECE, Attributes, Changed, SftpSession
from cas.transport.ssh import SshDialer, SshTimeouts
from tests.sftp import strange
from tests.sftp.job import ROOT
from tests.sftp.strange import (
    ATTRS,
    DATA,
    DIRECTORY,
    FILE,
    HANDLE,
    NAME,
    STATUS,
    Strange,
    attributes,
    name,
    names,
    status,
    strange_server,
    text,
)

T = TypeVar("T")
Ask = Callable[[SftpSession], Awaitable[T]]
SEEN = Attributes(FILE, 1000, 0, 0, 1000)
LIMIT_SECONDS = 120.0


def asked(directory: Path, server: Strange, ask: Ask[T], *, seconds: float = LIMIT_SECONDS) -> T:
    async def run(config: Path) -> T:
        timeouts = SshTimeouts(start=seconds)
        dialer = SshDialer("far", None, config_paths=[config], timeouts=timeouts)
        session = await dialer.connect_sftp()
        try:
            return await asyncio.wait_for(ask(session), LIMIT_SECONDS)
        finally:
            await session.close()

    with strange_server(server, directory) as config:
        return asyncio.run(run(config))


def test_an_honest_one(tmp_path: Path) -> None:
    async def ask(session: SftpSession) -> None:
        assert b"/top" == await session.real(b"/top")
        assert [b"a"] == [listed.name for listed in await session.list(b"/top")]
        assert SEEN == await session.look(b"/top/a")
        assert b"x" * 10 == await session.read(b"/top/a", SEEN, 990, PIECE, strict=True)
        assert b"" == await session.read(b"/top/a", SEEN, 1000, PIECE, strict=True)
        assert (b"x" * 1000, SEEN) == await session.read_small(b"/top/a", 1000)
        with pytest.raises(FileNotFoundError):
            await session.look(b"/top/b")
        other = Attributes(FILE, 1000, 0, 0, 1001)
        with pytest.raises(Changed):
            await session.read(b"/top/a", other, 0, 10, strict=True)
        with pytest.raises(OSError, match=r"."):
            await session.run("true", b"", 10, 5)

    server = Strange()
    asked(tmp_path, server, ask)
    assert 2 == server.requests.count(strange.OPEN) - 1  # `read` keeps it open


def test_one_that_gives_a_part_at_a_time(tmp_path: Path) -> None:
    data = bytes(range(250)) * 4

    def part(rest: bytes) -> bytes:
        offset, size = struct.unpack(">QI", rest[-12:])
        some = data[offset : offset + min(size, 300)]
        return bytes([DATA]) + text(some) if some else bytes([STATUS]) + status(strange.EOF)

    async def ask(session: SftpSession) -> None:
        assert (data, SEEN) == await session.read_small(b"/top/a", 1000)
        assert data[1:] == await session.read(b"/top/a", SEEN, 1, PIECE, strict=True)
        assert data[5:705] == await session.read(b"/top/a", SEEN, 5, 700, strict=True)

    asked(tmp_path, Strange(answers={strange.READ: part}), ask)


@pytest.mark.parametrize(
    "hello",
    [b"", b"\x02", b"\x63" + bytes(4), struct.pack(">BI", 2, 99), b"\x02" + bytes(4), bytes(3000)],
)
def test_one_that_does_not_speak_sftp(tmp_path: Path, hello: bytes) -> None:
    async def ask(_: SftpSession) -> None:
        raise AssertionError

    with pytest.raises(TransportError):
        asked(tmp_path, Strange(hello=hello), ask)


def test_one_that_says_nothing_at_all(tmp_path: Path) -> None:
    async def ask(_: SftpSession) -> None:
        raise AssertionError

    server = Strange(silent=True)
    with pytest.raises(TransportError, match="was not started within 1 s"):
        asked(tmp_path, server, ask, seconds=1.0)


def listing(session: SftpSession) -> Awaitable[object]:
    return session.list(b"/top")


def looking(session: SftpSession) -> Awaitable[object]:
    return session.look(b"/top/a")


def resolving(session: SftpSession) -> Awaitable[object]:
    return session.real(b"/top")


def linking(session: SftpSession) -> Awaitable[object]:
    return session.target(b"/top/a")


def reading(session: SftpSession) -> Awaitable[object]:
    return session.read(b"/top/a", SEEN, 0, 10, strict=False)


LIES: list[tuple[Ask[object], int, bytes]] = [
    (listing, strange.READDIR, bytes([NAME]) + struct.pack(">I", 2**32 - 1)),
    (listing, strange.READDIR, bytes([NAME]) + names(b"\xff\xff\xff\xff")),
    (listing, strange.OPENDIR, bytes([DATA]) + text(b"no handle")),
    (listing, strange.OPENDIR, bytes([HANDLE]) + b"\xff"),
    (looking, strange.LSTAT, bytes([ATTRS]) + struct.pack(">I", 0xFFFFFFFF)),
    (looking, strange.LSTAT, bytes([ATTRS])),
    (looking, strange.LSTAT, bytes([99])),
    (looking, strange.LSTAT, bytes([STATUS]) + status(0)),
    (looking, strange.LSTAT, bytes([STATUS])),
    (resolving, strange.REALPATH, bytes([NAME]) + names()),
    (resolving, strange.REALPATH, bytes([NAME]) + names(name(b"top", attributes(DIRECTORY)))),
    (resolving, strange.REALPATH, bytes([NAME]) + names(name(b"/t\0p", attributes(DIRECTORY)))),
    (linking, strange.READLINK, bytes([NAME]) + names()),
    (reading, strange.READ, bytes([DATA]) + text(b"x" * 11)),
    (reading, strange.READ, bytes([DATA]) + text(b"x" * 3_000_000)),
    (reading, strange.READ, bytes([DATA]) + b"\0\0\0\x0ax"),
    (reading, strange.READ, bytes([DATA]) + b"\0" * (5 * 2**20)),  # a packet that is too long
]


@pytest.mark.parametrize(("ask", "kind", "said"), LIES)
def test_what_makes_no_sense_ends_the_session(
    tmp_path: Path, ask: Ask[object], kind: int, said: bytes
) -> None:
    with pytest.raises(TransportError):
        asked(tmp_path, Strange(answers={kind: lambda _: said}), ask)


def test_errors_are_the_systems(tmp_path: Path) -> None:
    for code, number in ((2, errno.ENOENT), (3, errno.EACCES), (4, errno.EIO), (8, errno.EIO)):
        answers = {strange.LSTAT: lambda _, code=code: bytes([STATUS]) + status(code)}
        with pytest.raises(OSError, match=r".") as caught:
            asked(tmp_path, Strange(answers=answers), looking)
        assert number == caught.value.errno


def test_a_directory_without_end_has_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cas.transport.sftp.NAMES_LIMIT", 1000)
    said = bytes([NAME]) + names(name(b"again", attributes(FILE)))
    with pytest.raises(OSError, match="more than 1000 names"):
        asked(tmp_path, Strange(answers={strange.READDIR: lambda _: said}), listing)


def test_names_without_attributes_are_of_no_kind(tmp_path: Path) -> None:
    said = iter([bytes([NAME]) + names(name(b"n", bytes(4))), bytes([STATUS]) + status(1)])
    server = Strange(answers={strange.READDIR: lambda _: next(said)})

    async def ask(session: SftpSession) -> None:
        (listed,) = await session.list(b"/top")
        assert Attributes(0, 0, 0, 0, 0) == listed.attributes

    asked(tmp_path, server, ask)


def test_a_sync_takes_what_is_sound_and_lists_the_rest(tmp_path: Path) -> None:
    server = Strange(files={b"a": b"honest", b"b": b"x" * 200_000, b"c": b"short"})
    honest = server.files

    def listed(_: bytes) -> bytes:
        if server.requests.count(strange.READDIR) > 1:
            return bytes([STATUS]) + status(strange.EOF)
        sizes = {b"a": 6, b"b": 200_000, b"c": 100_000_000}
        bad = (b"..", b"../../etc/cron.d/x", b"/etc/passwd", b"n\0l", b"")
        return bytes([NAME]) + names(
            *(name(called, attributes(FILE, size)) for called, size in sizes.items()),
            *(name(called, attributes(FILE, 5)) for called in bad),
        )

    server.answers = {strange.READDIR: listed}
    with strange_server(server, tmp_path / "far") as config:
        job = tmp_path / "job"
        job.mkdir()
        (job / "plan.toml").write_text(
            f'store = "store"\n[source.far]\nhost = "far"\nvia = "sftp"\nlanes = 1\n'
            f'ssh_config = "{config}"\n[[tier]]\nname = "one"\nsource = "far"\npaths = ["/top"]\n'
        )
        env = {**os.environ, "PYTHONPATH": str(ROOT)}
        command = (sys.executable, "-m", "cli")
        ran = subprocess.run((*command, "sync"), cwd=job, env=env, capture_output=True, text=True)
        assert 3 == ran.returncode, ran.stderr
        restore = (*command, "restore", "one", "--to", "back")
        subprocess.run(restore, cwd=job, env=env, check=True, capture_output=True)
    assert ran.stdout.count("a name that is none") + ran.stderr.count("a name that is none") >= 4
    assert {"top"} == {path.name for path in (job / "back").iterdir()}
    found = {path.name.encode(): path.read_bytes() for path in (job / "back/top").iterdir()}
    assert honest == found


def test_many_files_are_read_at_a_time_and_few_stay_open(tmp_path: Path) -> None:
    files = {b"f%02d" % n: bytes([n]) * (PIECE + 1000) for n in range(60)}
    server = Strange(files=files)

    def stay_open() -> int:
        return server.requests.count(strange.OPEN) - server.requests.count(strange.CLOSE)

    async def ask(session: SftpSession) -> None:
        seen = Attributes(FILE, PIECE + 1000, 0, 0, 1000)
        reads = [
            session.read(b"/top/" + called, seen, offset, PIECE, strict=True)
            for called in files
            for offset in (0, PIECE)
        ]
        parts = await asyncio.gather(*reads)
        whole = [first + second for first, second in zip(parts[::2], parts[1::2], strict=True)]
        assert list(files.values()) == whole
        while stay_open() > FILES_OPEN:  # noqa: ASYNC110 - closing goes on in the server's thread
            await asyncio.sleep(0.01)

    asked(tmp_path, server, ask)
    assert 60 <= server.requests.count(strange.OPEN) <= 120


def test_a_file_that_could_not_be_opened_is_tried_again(tmp_path: Path) -> None:
    refusals = [bytes([STATUS]) + status(3)]
    server = Strange(answers={strange.OPEN: lambda _: refusals.pop()})

    async def ask(session: SftpSession) -> None:
        with pytest.raises(PermissionError):
            await session.read(b"/top/a", SEEN, 0, 10, strict=True)
        server.answers = {}
        assert b"x" * 10 == await session.read(b"/top/a", SEEN, 0, 10, strict=True)

    asked(tmp_path, server, ask)
