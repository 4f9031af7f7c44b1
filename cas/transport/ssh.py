"""SSH, by asyncssh: the module that makes connections with it (`sftp` uses those it is given).

`SshDialer.connect` reads the user's ssh config, goes through the jump hosts it names, logs in and
starts one command, whose standard input and output are the connection: binary, without a
terminal, each on an SSH connection of its own. What asyncssh does not do as ssh does is made up
for here:

- the config is ~/.ssh/config and /etc/ssh/ssh_config, or only the files that are given;
- keys are offered in ssh's order, and a file that does not exist is no error;
- a host key counts only if a known_hosts file has it, the user's or the system's.
  StrictHostKeyChecking is not honoured (asyncssh does not know it): `no` would give whoever sits
  on the way all that is fetched, and `accept-new` would have several lanes at a time write to the
  user's files. `ssh HOST`, once, does what the user wants with a new key, and then it is known;
- nothing ever asks: no password, no passphrase. A key that has one has to be in an agent;
- ProxyCommand runs in /bin/sh, and every byte of the first leg is counted (`wire.Wire`);
- Compression, ForwardAgent, RequestTTY, RemoteCommand and ServerAliveInterval of the config do not
  apply. Frames are compressed already; and it is by what arrives that lanes are found dead, within
  seconds. The keepalive here only ends what has been silent for ten minutes.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, cast

import asyncssh

from cas.errors import TransportError, UsageError
from cas.transport import advice
from cas.transport.address import Address, parse_address
from cas.transport.base import ATTACH, Transport, printable
from cas.transport.channel import Channel
from cas.transport.command import remote_command
from cas.transport.host import Host, read_host
from cas.transport.keys import Key, keys_to_offer, locked_keys
from cas.transport.known_hosts import Line, known_hosts_lines
from cas.transport.options import connection_options
from cas.transport.sftp import SftpSession, open_session
from cas.transport.wire import Wire
from cas.transport.within import within

RETRIES = 3  # when a server closes the connection before the login: it had too many (MaxStartups)
RETRY_SECONDS = (1.0, 2.0)
JUMP_LIMIT = 8

_KeyPair = asyncssh.SSHKeyPair
_Key = Key[asyncssh.SSHKeyPair]
_Connection = asyncssh.SSHClientConnection
_Started = TypeVar("_Started")


@dataclass(frozen=True, slots=True)
class SshTimeouts:
    """How long each step may take, in seconds."""

    connect: float = 30.0  # TCP; and the list of an agent's keys
    login: float = 60.0  # key exchange and login, for each host on the way
    start: float = 30.0  # of the command
    close: float = 2.0  # of each connection


class SshDialer:
    """Starts `command` on `host` anew for every connection, each a login of its own; without one
    there is `connect_sftp` only.

    `host` is `[user@]host[:port]`, the host anything that the ssh config knows. `config_paths` are
    read instead of the user's and the system's config, as with `ssh -F`. A server that is busy is
    tried again RETRIES times; how many connections are made at a time is for the caller to bound
    (OpenSSH by default begins to refuse at ten).
    """

    def __init__(
        self,
        host: str,
        command: Sequence[str] | None,
        *,
        config_paths: Sequence[str | Path] | None = None,
        timeouts: SshTimeouts | None = None,
        name: str = "",
    ) -> None:
        self.name = name or f"{host} (ssh)"
        self._host = host
        self._address = parse_address(host)
        self._words = None if command is None else tuple(command)
        self._command = "" if command is None else remote_command(command)
        self._files = None if config_paths is None else [str(path) for path in config_paths]
        self._timeouts = timeouts or SshTimeouts()

    def attaching(self, name: str) -> SshDialer | None:
        """See `Dialer.attaching`."""
        return (
            None
            if self._words is None
            else SshDialer(
                self._host,
                (*self._words, ATTACH, name),
                config_paths=self._files,
                timeouts=self._timeouts,
                name=self.name,
            )
        )

    async def connect(self) -> Transport:
        """See `Dialer.connect`."""
        return await self._anew(self._start)

    async def connect_sftp(self) -> SftpSession:
        """A new connection on which SFTP is spoken. Raises as `connect` does."""
        return await self._anew(self._start_sftp)

    async def _anew(self, start: Callable[[_Route, _Connection], Awaitable[_Started]]) -> _Started:
        route = _Route(self.name, self._files, self._timeouts)
        try:
            for _ in range(RETRIES):
                with contextlib.suppress(advice.ClosedEarly):
                    return await start(route, await route.open(self._address))
                await asyncio.sleep(random.uniform(*RETRY_SECONDS))
            return await start(route, await route.open(self._address))
        except BaseException:
            await route.close()
            raise

    async def _start_sftp(self, route: _Route, connection: _Connection) -> SftpSession:
        return await open_session(route, connection, self.name, self._timeouts.start)

    async def _start(self, route: _Route, connection: _Connection) -> Transport:
        channel = Channel(route, self.name)
        key = connection.get_server_host_key()
        channel.host_key = key.get_fingerprint() if key is not None else ""
        starting = connection.create_session(
            lambda: cast(Any, channel),  # it has all that a session is asked for
            self._command,
            encoding=None,
            request_pty=False,
            x11_forwarding=False,
        )
        try:
            await within(starting, self._timeouts.start)
        except asyncio.TimeoutError:
            what = f"the command was not started within {self._timeouts.start:.0f} s"
            raise TransportError(what, where=self.name) from None
        except (asyncssh.Error, OSError) as error:
            what = f"the host does not start the command: {printable(str(error))}"
            raise TransportError(what, where=self.name) from error
        return channel


class _Route:
    """The connections to a host, through its jump hosts: made one by one, closed together."""

    def __init__(self, name: str, files: list[str] | None, timeouts: SshTimeouts) -> None:
        self._name = name
        self._files = files
        self._timeouts = timeouts
        self._wire = Wire(timeouts.connect)
        self._connections: list[_Connection] = []

    @property
    def bytes_in(self) -> int:
        return self._wire.bytes_in

    @property
    def bytes_out(self) -> int:
        return self._wire.bytes_out

    async def open(self, address: Address) -> _Connection:
        """Log in to `address`, by way of what the config says."""
        await self.close()
        return await self._reach(address, self._name, None, 0)

    async def close(self) -> None:
        """Close all, the farthest first; never hangs, raises nothing."""
        connections, self._connections = self._connections, []
        for connection in reversed(connections):
            connection.close()
        try:
            for connection in connections:
                with contextlib.suppress(asyncio.TimeoutError):
                    await within(connection.wait_closed(), self._timeouts.close)
        finally:
            await self._wire.end()

    async def _reach(
        self, address: Address, name: str, via: _Connection | None, depth: int
    ) -> _Connection:
        """Log in to `address` through `via`, or if that is None, through its own jump hosts."""
        if depth > JUMP_LIMIT:
            raise UsageError("ProxyJump goes in a circle", where=name)
        parse = asyncssh.SSHClientConnectionOptions
        host = await asyncio.to_thread(read_host, address, name, self._files, parse)
        if via is None:
            for jump in host.jumps:
                on_the_way = f"{self._name}, by way of {jump.host}"
                via = await self._reach(jump, on_the_way, via, depth + 1)
        return await self._log_in(host, via)

    async def _log_in(self, host: Host, via: _Connection | None) -> _Connection:
        login = _Login(host)
        if via is None:
            self._wire.family, self._wire.local_addr = host.family, host.local_addr
            self._wire.proxy_command = host.proxy_command
        known = await asyncio.to_thread(_known_hosts, host)
        try:
            await login.load_keys(self._timeouts.connect)
            connection = await asyncssh.connect(
                host.address.host,
                tunnel=cast(Any, via or self._wire),
                client_factory=lambda: login,
                connect_timeout=self._timeouts.connect + self._timeouts.login,
                known_hosts=known,
                **connection_options(host, self._files, *_kinds_known(host, known)),
            )
        except (asyncssh.Error, asyncio.TimeoutError, OSError, UnicodeError) as error:
            raise self._explained(error, login, via is None) from error
        finally:
            login.release_agent()
        self._connections.append(connection)
        return connection

    def _explained(self, error: Exception, login: _Login, first: bool) -> TransportError:
        place, stage = login.host.place, login.stage
        if isinstance(error, asyncssh.HostKeyNotVerifiable):
            return login.host_key_error(
                printable(str(error)), first and not login.host.proxy_command
            )
        if isinstance(error, asyncio.TimeoutError):
            if stage == _TCP:
                return advice.no_answer(place, self._timeouts.connect)
            return advice.silent(place, stage)
        if isinstance(error, (asyncssh.ConnectionLost, ConnectionError)) and stage != _TCP:
            return advice.hung_up(place, stage == _LOGIN, self._wire.proxy_said())
        if isinstance(error, asyncssh.DisconnectError) and stage == _LOGIN:
            return login.refusal(error)
        if isinstance(error, (OSError, UnicodeError)):
            return advice.unreachable(place, error)
        return advice.failed(place, printable(str(error)))


_TCP, _GREETING, _EXCHANGE, _LOGIN = "TCP connection", "greeting", "key exchange", "login"


class _Login(asyncssh.SSHClient):
    """One login to one host: the keys to offer, how far it got, what the host showed."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self._connection: _Connection | None = None
        self._authenticating = False
        self._host_key: asyncssh.SSHKey | None = None
        self._agent: asyncssh.SSHAgentClient | None = None
        self._files: list[_Key] = []
        self._held: list[_Key] = []  # by the agent
        self._offers: list[_Key] = []
        self._tried: list[str] = []

    @property
    def stage(self) -> str:
        """What it is at, or failed in."""
        if self._connection is None:
            return _TCP
        if self._authenticating:
            return _LOGIN
        return _EXCHANGE if self._connection.get_extra_info("server_version") else _GREETING

    async def load_keys(self, seconds: float) -> None:
        """Read the key files, and ask the agent what it has."""
        self._files = await asyncio.to_thread(_keys_of_files, self.host)
        if self.host.agent is not None:
            with contextlib.suppress(ValueError, OSError, asyncio.TimeoutError):
                await within(self._ask_agent(self.host.agent), seconds)
        self._offers = keys_to_offer(self._files, self._held, self.host.only_named_keys)

    async def _ask_agent(self, path: str) -> None:
        self._agent = await asyncssh.connect_agent(path)
        pairs = await self._agent.get_keys()
        names = [(pair.get_comment_bytes() or b"").decode(errors="replace") for pair in pairs]
        self._held = [
            _key(f"{name} (agent)", pair) for name, pair in zip(names, pairs, strict=True)
        ]

    def release_agent(self) -> None:
        """No more signatures are needed."""
        if self._agent:
            self._agent.close()

    def refusal(self, error: asyncssh.DisconnectError) -> TransportError:
        """What to say when the host wants none of the keys."""
        said = "" if isinstance(error, asyncssh.PermissionDenied) else printable(error.reason)
        locked = locked_keys(self._files, self._held)
        return advice.refused_login(self.host.place, self.host.user, self._tried, locked, said)

    def host_key_error(self, said: str, direct: bool) -> TransportError:
        """What to say when the host cannot be proved to be itself."""
        place, files = self.host.place, self.host.known_files
        key = self._host_key
        if key is None:
            return advice.bad_host_key(place, said)
        shown = f"{key.get_algorithm()} {key.get_fingerprint()}"
        known = [line for line in known_hosts_lines(files) if _names(line, self.host)]
        if known:
            return advice.changed_host_key(place, shown, known[0], self.host.ssh_knows_it_as())
        scan = direct and not self.host.alias
        return advice.unknown_host_key(place, shown, files, scan)

    # What asyncssh calls.

    def connection_made(self, conn: _Connection) -> None:
        self._connection = conn

    def validate_host_public_key(
        self, _host: str, _addr: str, _port: int, key: asyncssh.SSHKey
    ) -> bool:
        """Asked for keys that known_hosts does not have: none is trusted."""
        self._host_key = key
        return False

    def validate_host_ca_key(self, *shown: Any) -> bool:
        """Asked for authorities that known_hosts does not have: none is trusted."""
        return self.validate_host_public_key(*shown)

    def begin_auth(self, _username: str) -> None:
        self._authenticating = True

    def public_key_auth_requested(self) -> _KeyPair | None:
        """The next key to try, until there is none."""
        if not self._offers:
            return None
        key = self._offers.pop(0)
        self._tried.append(key.name)
        return key.pair


def _kinds_known(host: Host, known: asyncssh.SSHKnownHosts) -> tuple[set[str], bool]:
    """The kinds of key that known_hosts has of the host, and whether it has an authority for it."""
    name, port = host.known_as
    keys, authorities = known.match(name, "", port)[:2]
    return {kind.decode() for key in keys for kind in key.sig_algorithms}, bool(authorities)


def _key(name: str, pair: _KeyPair) -> _Key:
    return Key(name, pair.key_public_data, pair.public_data, pair)


def _keys_of_files(host: Host) -> list[_Key]:
    """The keys of the files that are named: with the private half, or as much as can be read."""
    return [key for path in host.key_files for key in _keys_of(path, host.certificate_files)]


def _keys_of(path: Path, certificates: list[str]) -> list[_Key]:
    try:
        pairs = asyncssh.load_keypairs(str(path), certlist=certificates)
    except (ValueError, OSError) as error:
        return [Key(str(path), _public(path), locked=str(error).startswith("Passphrase"))]
    return [_key(str(path), pair) for pair in pairs]


def _public(path: Path) -> bytes:
    """The public key beside a private one, or of a file that is one; b"" if there is none."""
    for public in (Path(f"{path}.pub"), path):
        with contextlib.suppress(ValueError, OSError):
            return asyncssh.read_public_key(public).public_data
    return b""


def _known_hosts(host: Host) -> asyncssh.SSHKnownHosts:
    known = asyncssh.SSHKnownHosts()
    for line in known_hosts_lines(host.known_files):
        with contextlib.suppress(ValueError):  # ssh, too, passes over lines it cannot read
            known.load(line.text)
    return known


def _names(line: Line, host: Host) -> bool:
    """Whether the line holds a key of the host."""
    with contextlib.suppress(ValueError):
        name, port = host.known_as
        return bool(asyncssh.import_known_hosts(line.text).match(name, "", port)[0])
    return False
