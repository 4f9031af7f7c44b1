"""The agent's door where there is no private place for it, or another's that is just going."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import socket
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from cas.agent import door as door_module
from cas.agent.attach import NO_AGENT, attach, socket_path
from cas.agent.door import Door
from cas.agent.serve import serve
from cas.errors import SourceError
from cas.messages import Beat
from cas.pull.lane import Lane
from cas.pull.lanes import agent_name
from cas.store.memory_index import MemoryScanCache
from cas.transport.memory import pair

LIMIT_SECONDS = 120.0


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the door's directory is to be; not there yet."""
    monkeypatch.setattr(tempfile, "tempdir", os.fspath(tmp_path))
    return tmp_path / f"cas-{os.getuid()}"


def _is_open_to_all(place: Path) -> None:
    place.mkdir()
    place.chmod(0o777)


def _links_elsewhere(place: Path) -> None:
    elsewhere = place.with_name("elsewhere")
    elsewhere.mkdir(mode=0o700)
    place.symlink_to(elsewhere)


def _cannot_be_made(place: Path) -> None:
    place.parent.rmdir()


SPOILT: list[Callable[[Path], object]] = [
    Path.touch,
    _is_open_to_all,
    _links_elsewhere,
    _cannot_be_made,
]


def test_an_agent_that_took_its_directory_with_it_is_gone(place: Path) -> None:
    assert not place.exists()
    with pytest.raises(SourceError, match=NO_AGENT):
        attach(agent_name(b"client"))


@pytest.mark.parametrize("spoil", SPOILT)
async def test_without_a_private_directory_there_is_one_lane(
    place: Path, spoil: Callable[[Path], object]
) -> None:
    near, far = pair()
    serving = asyncio.create_task(serve(far, MemoryScanCache()))
    await asyncio.sleep(0)
    spoil(place)
    lane = Lane(near, "far", silence=LIMIT_SECONDS)
    await lane.greet((("lanes", agent_name(b"client")),))
    await lane.send(Beat(7))
    assert Beat(7) == await lane.receive()
    await lane.close()
    await asyncio.wait_for(serving, LIMIT_SECONDS)  # nobody can come back


async def test_a_door_outlives_the_directory_of_the_agent_that_it_ends(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def end_at_once(path: Path) -> None:
        path.unlink()
        with contextlib.suppress(OSError):
            place.rmdir()

    name = agent_name(b"client")
    path = socket_path(name, create=True)
    path.touch()
    monkeypatch.setattr(door_module, "_end_former", end_at_once)
    door = Door(name, lambda *_: None, lambda: None)
    assert [path.name] == os.listdir(place)
    door.close()
    assert [] == os.listdir(place.parent)


async def test_an_agent_without_descriptors_rests_and_lets_lanes_in_later(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It must not take a whole processor for knocks that it cannot answer."""
    monkeypatch.setattr(door_module, "REST_SECONDS", 0.05)
    came = asyncio.Event()
    name = agent_name(b"client")
    door = Door(name, lambda *_: None, lambda: None)
    monkeypatch.setattr(door, "_hear", lambda _: came.set())
    refused = 0
    accept = door._socket.accept

    class Full:
        """The listening socket, twice without a descriptor for who comes."""

        def accept(self) -> tuple[socket.socket, object]:
            nonlocal refused
            refused += 1
            if refused <= 2:
                raise OSError(errno.EMFILE, "no more")
            return accept()

        def __getattr__(self, name: str) -> object:
            return getattr(listening, name)

    listening = door._socket
    monkeypatch.setattr(door, "_socket", Full())
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as knocking:
        knocking.connect(os.fspath(socket_path(name, create=False)))
        knocking.send(b"anything")
        began = time.monotonic()
        await asyncio.wait_for(came.wait(), LIMIT_SECONDS)
        assert time.monotonic() - began >= 2 * 0.05
    assert 3 == refused
    door.close()
