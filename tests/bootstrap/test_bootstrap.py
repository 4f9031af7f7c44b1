"""`cas bootstrap` over a real sshd, where nothing of cas is; then a sync by what it put there."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from cas.bootstrap.launch import find_agent
from cas.bootstrap.origins import Wheels
from cas.errors import SourceError, TransportError
from cas.transport.base import Dialer, Transport
from cas.transport.ssh import SshDialer
from cli import bootstrapping
from cli.bootstrapping import Job, bootstrap
from tests.bootstrap import throttle
from tests.real.sshd import Server, running_sshd
from tests.real.users import throwaway_user

ROOT = Path(__file__).parents[2]
LIMIT_SECONDS = 300.0


@dataclass(frozen=True, slots=True)
class Place:
    """A plan with one source, `npu`: a host where `home` is the cache's parent and cas is not."""

    path: Path
    server: Server
    cache: Path

    @property
    def agent(self) -> Path:
        """Where agents are put."""
        return self.cache / "cas" / "agent"

    def start(self, *words: str) -> subprocess.Popen[str]:
        """Start `cas` here."""
        ours = {k: v for k, v in os.environ.items() if not k.startswith(("CAS_", "XDG_"))}
        env = {**ours, "PYTHONPATH": str(ROOT)}
        pipe = subprocess.PIPE
        return subprocess.Popen(
            [sys.executable, "-m", "cli", *words], cwd=self.path, env=env, text=True,
            stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe,
        )  # fmt: skip

    def cas(self, *words: str) -> tuple[int, str, str]:
        """Run `cas` here: its exit code, what was asked for, and its talk."""
        process = self.start(*words)
        out, talk = process.communicate(timeout=LIMIT_SECONDS)
        return process.returncode, out, talk

    def facts(self, *words: str) -> dict[str, Any]:
        """What a bootstrap that works says of itself."""
        code, out, talk = self.cas("bootstrap", "npu", "--json", *words)
        assert 0 == code, talk
        [line] = out.splitlines()
        found: dict[str, Any] = json.loads(line)
        return found


def _place(path: Path, server: Server, cache: Path) -> Place:
    source = server.directory / "source"  # which other users can read, and below tmp_path not
    source.mkdir()
    (source / "file").write_text("a line\n" * 10_000)
    (path / "plan.toml").write_text(
        f'store = "store"\n[source.npu]\nhost = "{server.alias}"\n'
        f'ssh_config = "{server.config}"\n'
        f'[[tier]]\nname = "one"\nsource = "npu"\npaths = ["{source}"]\n'
    )
    return Place(path, server, cache)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    """A host where we are ourselves, with another home and so with no start-up files."""
    cache = tmp_path / "cache"
    path = f"{Path(sys.executable).resolve().parent}:/usr/bin:/bin"
    environment = f"HOME={tmp_path} XDG_CACHE_HOME={cache} PATH={path}"
    with running_sshd(extra=[f"SetEnv {environment}"]) as server:
        yield _place(tmp_path, server, cache)


def test_the_agent_is_put_there_once_and_found_from_then_on(place: Place) -> None:
    code, _, talk = place.cas("sync")
    assert (1, True) == (code, "`cas bootstrap npu` puts one on this host" in talk), talk
    first = place.facts()
    assert first["sent"] == first["size"] > 0
    kit = Path(first["kit"])
    assert re.fullmatch(r"[0-9.]+-[0-9a-f]{8}", kit.name)
    written = _tree(place.agent)
    launcher = Path(first["agent"].split()[1])
    assert {kit, launcher} == set(place.agent.iterdir())
    beside = {path.name for path in place.agent.parent.iterdir()}
    assert {"agent", "lock", "scan-1"} == beside  # the agent that was started keeps its cache there
    assert 0 == place.cas("sync")[0]
    second = place.facts()
    assert (0, str(kit)) == (second["sent"], second["kit"])
    assert written == _tree(place.agent)
    old = kit.with_name("0.0.1-00000000")
    shutil.copytree(kit, old)
    assert [old.name] == place.facts("--clean")["removed"]
    assert {kit, launcher} == set(place.agent.iterdir())


def test_people_get_the_line_for_the_plan_and_it_works(place: Place) -> None:
    code, out, talk = place.cas("bootstrap", "npu")
    assert 0 == code, talk
    line = out.splitlines()[-1]
    assert line.startswith('agent = "sh ')
    plan = place.path / "plan.toml"
    before = plan.read_text()
    plan.write_text(before.replace("[source.npu]\n", f"[source.npu]\n{line}\n"))
    assert 0 == place.cas("sync")[0]
    confined = line.replace(' serve"', ' serve --root /usr"')
    plan.write_text(before.replace("[source.npu]\n", f"[source.npu]\n{confined}\n"))
    assert 3 == place.cas("sync")[0]
    assert "the plan says how to start another agent" in place.cas("bootstrap", "npu")[1]


async def test_words_behind_the_usual_command_reach_the_agent(place: Place) -> None:
    place.facts()
    words = [*find_agent("npu"), "--no-such-option", "with a space"]
    transport = await _dialer(place, words).connect()
    assert b"" == await transport.receive()
    await transport.close()
    assert "--no-such-option" in transport.complaints()


def test_a_client_killed_in_the_middle_is_gone_on_from(place: Place) -> None:
    config = place.server.config
    plain = config.read_text()
    slow = f"  ProxyCommand {sys.executable} {throttle.__file__} %h %p 150000\n"
    config.write_text(plain + slow)
    process = place.start("bootstrap", "npu")
    try:
        _wait_until(lambda: _partial(place) > 300_000)
    finally:
        process.kill()
        process.communicate()
    config.write_text(plain)
    facts = place.facts()
    assert facts["kept"] > 300_000
    assert facts["size"] == facts["kept"] + facts["sent"]
    assert 0 == place.cas("sync")[0]


def test_this_machine_needs_none(place: Place) -> None:
    plan = place.path / "plan.toml"
    plan.write_text(re.sub("\n(host|ssh_config) = .*", "", plan.read_text()))
    code, _, talk = place.cas("bootstrap", "npu")
    assert (2, True) == (code, "this machine" in talk)


def test_a_key_for_one_command_can_put_nothing_there(tmp_path: Path) -> None:
    with running_sshd(extra=["ForceCommand echo no"]) as server:
        code, _, talk = _place(tmp_path, server, tmp_path).cas("bootstrap", "npu")
    assert (1, True) == (code, "does not run a shell for us" in talk), talk


def _dialer(place: Place, words: Sequence[str]) -> SshDialer:
    return SshDialer(place.server.alias, words, config_paths=[place.server.config])


def _job(place: Place, wrap: Callable[[Dialer], Dialer], **more: Any) -> Job:
    def reach(words: Sequence[str]) -> Dialer:
        dialer = _dialer(place, words)
        return wrap(dialer) if bootstrapping.RECEIVE in words else dialer

    return Job("npu", reach, Wheels(None), **more)


class _Spoilt:
    """A dialer whose connections do something to the bytes they send: `spoil(sent before, data)`
    gives what goes out, None to hang up once `has_come` says that enough is there."""

    def __init__(
        self,
        dialer: Dialer,
        spoil: Callable[[int, bytes], bytes | None],
        has_come: Callable[[], bool] = lambda: True,
    ) -> None:
        self.name = dialer.name
        self._dialer = dialer
        self._spoil = spoil
        self._has_come = has_come

    def attaching(self, name: str) -> Dialer | None:
        return self._dialer.attaching(name)

    async def connect(self) -> Transport:
        transport = await self._dialer.connect()
        sent, send = 0, transport.send

        async def spoilt(data: bytes) -> None:
            nonlocal sent
            changed = self._spoil(sent, data)
            sent += len(data)
            if changed is None:
                while not self._has_come():  # noqa: ASYNC110 - what is waited for is a process
                    await asyncio.sleep(0.02)
                await transport.close()
                raise TransportError("hung up")
            await send(changed)

        transport.send = spoilt  # type: ignore[method-assign]
        return transport


async def test_connections_that_break_are_made_anew(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bootstrapping, "PAUSE_SECONDS", 0.1)
    told: list[str] = []
    had = 0

    def has_come() -> bool:
        nonlocal had
        now = _partial(place)
        is_more = now >= had + 400_000
        had = now if is_more else had
        return is_more

    def cut(sent: int, data: bytes) -> bytes | None:
        return None if sent > 600_000 else data

    job = _job(place, lambda dialer: _Spoilt(dialer, cut, has_come), tell=told.append)
    placed = await asyncio.wait_for(bootstrap(job), LIMIT_SECONDS)
    assert placed.sent == placed.size
    assert 2 <= sum("going on" in line for line in told)


async def test_a_connection_that_brings_nothing_is_not_tried_for_ever(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bootstrapping, "PAUSE_SECONDS", 0.1)
    job = _job(place, lambda dialer: _Spoilt(dialer, lambda sent, data: data if not sent else None))
    with pytest.raises(TransportError):
        await asyncio.wait_for(bootstrap(job), LIMIT_SECONDS)


async def test_bytes_that_change_on_the_way_are_refused(place: Place) -> None:
    def flip(sent: int, data: bytes) -> bytes:
        return data[:-1] + bytes([data[-1] ^ 1]) if sent > 300_000 else data

    with pytest.raises(SourceError, match="not what was sent"):
        await asyncio.wait_for(
            bootstrap(_job(place, lambda dialer: _Spoilt(dialer, flip))), LIMIT_SECONDS
        )
    assert [] == os.listdir(place.agent)


@pytest.mark.root
def test_a_user_whose_home_is_noexec(tmp_path: Path) -> None:
    with _noexec_home() as (name, home), running_sshd(user=name) as server:
        place = _place(tmp_path, server, home / ".cache")
        facts = place.facts()
        try:
            assert facts["kit"].startswith("/var/tmp/cas-")
            launcher = Path(facts["agent"].split()[1]).read_text()
            assert " -I -S -B " in launcher
            assert 0 == place.cas("sync")[0]
            assert not (home / ".cache" / "cas" / "agent").exists()
        finally:
            shutil.rmtree(Path(facts["kit"]).parents[1])


@contextlib.contextmanager
def _noexec_home() -> Iterator[tuple[str, Path]]:
    with throwaway_user() as user:
        options = f"noexec,mode=700,uid={user.uid},gid={user.gid},size=100m"
        mount = ["mount", "-t", "tmpfs", "-o", options, "cas-test", str(user.home)]
        if subprocess.run(mount, capture_output=True).returncode:
            pytest.skip("a tmpfs cannot be mounted here")
        try:
            yield user.name, user.home
        finally:
            subprocess.run(["umount", "--lazy", str(user.home)], check=True)


@pytest.mark.root
@pytest.mark.parametrize("shell", ["/bin/tcsh", "/usr/bin/fish", "/bin/bash"])
def test_login_shells_of_every_kind(tmp_path: Path, shell: str) -> None:
    files = {".bashrc": b"echo Welcome.\n", ".tcshrc": b"echo Welcome.\n"}
    with throwaway_user(shell, files) as user, running_sshd(user=user.name) as server:
        place = _place(tmp_path, server, user.home / ".cache")
        place.facts()
        assert 0 == place.cas("sync")[0]


async def test_a_host_whose_python_is_too_old(tmp_path: Path) -> None:
    old = tmp_path / "python3"
    old.write_text(f"#!/bin/sh\nprintf 'python\\t{old}\\t3.9.18\\n'\n")
    old.chmod(0o755)
    for tool in ("df", "id", "sh", "tail", "uname", "cat"):
        (tmp_path / tool).symlink_to(str(shutil.which(tool)))
    with running_sshd(extra=[f"SetEnv HOME={tmp_path}"]) as server:
        host = _place(tmp_path, server, tmp_path)

        def reach(words: Sequence[str]) -> Dialer:
            return _dialer(host, ["env", f"PATH={tmp_path}", *words])

        job = Job("npu", reach, Wheels(None), prefixes="/nowhere")
        with pytest.raises(SourceError) as caught:
            await asyncio.wait_for(bootstrap(job), LIMIT_SECONDS)
    assert f"no Python >= 3.10 was found on npu; found 3.9.18 at {old}" in caught.value.what


def _partial(place: Place) -> int:
    return max((path.stat().st_size for path in place.agent.glob("*.partial")), default=0)


def _wait_until(met: Callable[[], bool]) -> None:
    deadline = time.monotonic() + LIMIT_SECONDS
    while not met():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def _tree(root: Path) -> dict[Path, int]:
    """Everything below and when it was last changed."""
    return {path: path.lstat().st_mtime_ns for path in root.rglob("*")}
