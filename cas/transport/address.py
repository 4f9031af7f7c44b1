"""A host as a user names it: `[user@]host[:port]`, as in a plan and in ssh's ProxyJump."""

from __future__ import annotations

import re
from dataclasses import dataclass

from cas.errors import UsageError

# What no name holds, and what would mean something to the shell of a ProxyCommand; a dash at the
# beginning would mean something to the program. The set is that of OpenSSH's own check.
_REFUSED = re.compile(r"""^-|[\s"'`$\\;&<>|(){}\x00-\x1f\x7f]""")


@dataclass(frozen=True, slots=True)
class Address:
    """Where to connect, before any configuration is read; None: as the configuration says."""

    host: str
    user: str | None = None
    port: int | None = None


def parse_address(text: str) -> Address:
    """Read `[user@]host[:port]` or `ssh://...`; an IPv6 address with a port stands in brackets.

    Raises UsageError for what can be no host.
    """
    rest = text.removeprefix("ssh://").rstrip("/") if text.startswith("ssh://") else text
    user, at, place = rest.rpartition("@")
    host, colon, port = _host_and_port(place)
    if not host or (at and not user) or _REFUSED.search(host) or _REFUSED.search(user):
        raise UsageError("this is no name of a host", where=text)
    if colon and not (re.fullmatch("[0-9]{1,5}", port) and 0 < int(port) < 65536):
        raise UsageError("the port is no number from 1 to 65535", where=text)
    return Address(host, user or None, int(port) if colon else None)


def _host_and_port(place: str) -> tuple[str, str, str]:
    """The host, a colon if there is one, and what is behind it."""
    if place.startswith("["):
        host, bracket, rest = place[1:].partition("]")
        colon, port = rest[:1], rest[1:]
        return (host, colon, port) if bracket and colon in ("", ":") else ("", "", "")
    if place.count(":") == 1:
        return place.partition(":")
    return place, "", ""  # with several colons an IPv6 address
