"""What the user's ssh config says of one host, in the terms of this package.

The files are read by the SSH library, which `read_host` is handed; names of files are expanded
here as ssh does it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from cas.errors import UsageError
from cas.transport.address import Address, parse_address
from cas.transport.advice import Place
from cas.transport.known_hosts import known_hosts_files

CONFIG_FILES = ("~/.ssh/config", "/etc/ssh/ssh_config")
KEY_FILES = ("~/.ssh/id_rsa", "~/.ssh/id_ecdsa", "~/.ssh/id_ed25519")  # if the config names none
USUAL_PORT = 22


class Options(Protocol):
    """What is in a config file, by the names of ssh_config(5)."""

    def get(self, option: str, default: object = None) -> Any:
        """The value: a string, a list, a bool, or None for "none"."""


class Parsed(Protocol):
    """A host's options as the SSH library has understood them."""

    host: str
    port: int
    username: str
    host_key_alias: str | None
    family: int
    local_addr: Any  # (host, port) or None; its type does not say so

    @property
    def config(self) -> Options:
        """The rest, as written."""


@dataclass(frozen=True, slots=True)
class Host:
    """Where to connect, and as whom, with what keys, trusting which."""

    place: Place
    address: Address  # as asked for
    user: str
    jumps: list[Address]  # the nearest to us first
    proxy_command: str | None
    family: int
    local_addr: tuple[str, int] | None
    key_files: list[Path]  # whether they exist or not
    certificate_files: list[str]  # those that exist
    only_named_keys: bool
    agent: str | None  # its socket; "": as the environment says; None: none is wanted
    known_as: tuple[str, int | None]  # host and port in known_hosts; None: the usual port
    known_files: list[Path]
    alias: bool  # known under another name than its own
    ciphers: bool  # the config says which
    host_key_kinds: bool  # the config says which

    def ssh_knows_it_as(self) -> str:
        """Its name as ssh writes it to known_hosts: an alias stands without a port."""
        name, port = self.known_as
        return f"[{name}]:{port}" if port and not self.alias else name


def given_options(address: Address, files: list[str] | None) -> dict[str, Any]:
    """What the SSH library is told besides the host: the config files (`files` instead of the
    usual ones), and what the address itself says, which comes before them."""
    given: dict[str, Any] = {"config": _readable(CONFIG_FILES) if files is None else files}
    if address.user:
        given["username"] = address.user
    if address.port:
        given["port"] = address.port
    return given


def read_host(
    address: Address, name: str, files: list[str] | None, parse: Callable[..., Parsed]
) -> Host:
    """Read the config; `name` is how errors call the host. Blocks. UsageError if the config makes
    no sense. `parse(host=..., client_keys=None, ...)` raises ValueError or OSError then."""
    try:
        parsed = parse(host=address.host, client_keys=None, **given_options(address, files))
    except (ValueError, OSError) as error:
        raise UsageError(f"the ssh config cannot be used: {error}", where=name) from error
    get = parsed.config.get
    jumps = get("ProxyJump")
    return Host(
        place=Place(name, parsed.host, parsed.port, _ssh(address, files)),
        address=address,
        user=parsed.username,
        jumps=[parse_address(hop.strip()) for hop in jumps.split(",")] if jumps else [],
        proxy_command=get("ProxyCommand"),
        family=parsed.family,
        local_addr=parsed.local_addr,
        key_files=[Path(name) for name in _expanded(get("IdentityFile") or KEY_FILES)],
        certificate_files=_readable(get("CertificateFile") or ()),
        only_named_keys=bool(get("IdentitiesOnly")),
        agent=_agent(get("IdentityAgent", "SSH_AUTH_SOCK")),
        known_as=(
            parsed.host_key_alias or parsed.host,
            None if parsed.port == USUAL_PORT else parsed.port,
        ),
        known_files=known_hosts_files(
            get("UserKnownHostsFile"), get("GlobalKnownHostsFile"), _tokens(address, parsed)
        ),
        alias=bool(parsed.host_key_alias),
        ciphers=get("Ciphers") is not None,
        host_key_kinds=get("HostKeyAlgorithms") is not None,
    )


def _ssh(address: Address, files: list[str] | None) -> tuple[str, ...]:
    """The ssh command that goes to the same place."""
    options = [f"-F{file}" for file in files or ()]
    options += [f"-p{address.port}"] if address.port else []
    return ("ssh", *options, f"{address.user}@{address.host}" if address.user else address.host)


def _tokens(address: Address, parsed: Parsed) -> dict[str, str]:
    """What a `%` and a letter stand for in the name of a known_hosts file."""
    return {
        "d": os.path.expanduser("~"),
        "h": parsed.host,
        "k": parsed.host_key_alias or parsed.host,
        "n": address.host,
        "p": str(parsed.port),
        "r": parsed.username,
    }


def _agent(value: str | None) -> str | None:
    if value is None or value == "SSH_AUTH_SOCK":
        return None if value is None else ""
    return os.path.expandvars(os.path.expanduser(value))


def _expanded(names: Iterable[str]) -> list[str]:
    return [os.path.expanduser(name) for name in names]


def _readable(names: Iterable[str]) -> list[str]:
    return [name for name in _expanded(names) if os.access(name, os.R_OK)]
