"""Why an SSH connection could not be made, in one line that says what to do about it.

Plain facts come in, one of our errors goes out; which of an SSH library's exceptions means what is
not known here.
"""

from __future__ import annotations

import errno
import os
import re
import shlex
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cas.errors import HostKeyError, LoginError, TransportError
from cas.transport.known_hosts import Line


class ClosedEarly(TransportError):
    """The far end closed the connection before the login: it may be too busy just now."""


@dataclass(frozen=True, slots=True)
class Place:
    """The host that it is about. `name` is how the user calls it, `host` and `port` what that came
    to; `ssh` the ssh command that does the same."""

    name: str
    host: str
    port: int
    ssh: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.host} port {self.port}"

    def try_ssh(self) -> str:
        """The command to try by hand."""
        return f"`{shlex.join(self.ssh)}`"


def unreachable(place: Place, error: OSError | UnicodeError) -> TransportError:
    """No connection came about; UnicodeError: for the name is none that DNS could know."""
    if isinstance(error, (socket.gaierror, UnicodeError)):
        advice = "check the name, or give HostName in the ssh config"
        return TransportError(
            f"the name {place.host} cannot be resolved", where=place.name, advice=advice
        )
    if errno.ECONNREFUSED in _numbers(error):
        what, advice = f"{place} refuses connections", "check the port, and that sshd runs there"
    else:
        what, advice = f"{place} cannot be reached: {_reason(error)}", "check address and network"
    return TransportError(what, where=place.name, advice=advice)


def no_answer(place: Place, seconds: float) -> TransportError:
    """Nothing came back to the first packet."""
    return TransportError(
        f"no answer from {place} within {seconds:.0f} s",
        where=place.name,
        advice="check that it is up, that the address is right, and that no firewall drops packets",
    )


def silent(place: Place, stage: str) -> TransportError:
    """Connected, and then nothing more: `stage` is what did not come to an end."""
    advice = f"see whether {place.try_ssh()} gets further"
    if stage == "key exchange":
        advice += "; if it hangs there too, large packets get lost on the way: try a smaller MTU"
    return TransportError(
        f"{place} answers, but the {stage} does not come to an end",
        where=place.name,
        advice=advice,
    )


def hung_up(place: Place, at_login: bool, proxy_said: str) -> TransportError:
    """The far end closed the connection; `ClosedEarly` if it may be asked again. `proxy_said` is
    the standard error of a ProxyCommand: if it has complained, it is to blame."""
    if proxy_said:
        last = proxy_said.splitlines()[-1]
        return TransportError(
            f"the ProxyCommand ended: {last}", where=place.name, advice=f"try {place.try_ssh()}"
        )
    if at_login:
        return TransportError(
            f"{place} closed the connection during the login",
            where=place.name,
            advice=f"see what {place.try_ssh()} says, or the log of its sshd",
        )
    return ClosedEarly(
        f"{place} closes connections before the login",
        where=place.name,
        advice="it may have too many at once (MaxStartups) or block this address for a while; "
        "use fewer lanes, or wait",
    )


def failed(place: Place, reason: str) -> TransportError:
    """Anything else."""
    return TransportError(f"{place}: {reason}", where=place.name, advice=f"try {place.try_ssh()}")


def unknown_host_key(place: Place, key: str, files: Sequence[Path], scan: bool) -> HostKeyError:
    """No known_hosts file names the host. `key` is what it shows; `scan`: ssh-keyscan would find
    it under the right name."""
    advice = f"compare that with what its owner says, then run {place.try_ssh()} once"
    usable = [path for path in files if str(path) != os.devnull]
    if not usable:
        advice += " with a UserKnownHostsFile that is not /dev/null in the ssh config"
    elif scan:
        keyscan = shlex.join(["ssh-keyscan", "-p", str(place.port), place.host])
        advice += f" (or `{keyscan} >> {shlex.quote(str(usable[0]))}`)"
    return HostKeyError(
        f"the host key of {place} is not known: {key}", where=place.name, advice=advice
    )


def changed_host_key(place: Place, key: str, line: Line, known_as: str) -> HostKeyError:
    """A known_hosts file names the host, with another key; `known_as` is its name there."""
    removal = shlex.join(["ssh-keygen", "-R", known_as, "-f", str(line.path)])
    return HostKeyError(
        f"THE HOST KEY OF {place} HAS CHANGED: it shows {key}, but {line} has another; either "
        "the host was set up anew, or somebody is in between",
        where=place.name,
        advice="ask its owner before anything else; if the new key is right, run "
        f"`{removal}` and then {place.try_ssh()} once",
    )


def bad_host_key(place: Place, reason: str) -> HostKeyError:
    """It is revoked, or its certificate is not valid."""
    return HostKeyError(f"{place} cannot be trusted: {reason}", where=place.name)


def refused_login(
    place: Place, user: str, tried: Sequence[str], locked: Sequence[str], said: str
) -> LoginError:
    """The host wants none of the keys. `locked` are files with a passphrase that no agent holds;
    `said` what the host gives as a reason."""
    keys = f"tried {', '.join(tried)}" if tried else "there was no key to offer"
    advice = f"see that the right key is in ~{user}/.ssh/authorized_keys there"
    if locked:
        names = shlex.join(locked)
        keys += f"; {names} has a passphrase, and no agent offers it"
        advice = f"run `ssh-add {names}` first; nothing is asked for here"
    elif "Too many" in said:
        advice = "the agent holds too many keys: set IdentityFile and IdentitiesOnly for this host"
    elif not tried:
        advice = "make one with ssh-keygen, or name it as IdentityFile in the ssh config"
    why = f" ({said})" if said else ""
    return LoginError(
        f"{place.host} refuses the login of user {user}{why}; {keys}",
        where=place.name,
        advice=advice,
    )


def _numbers(error: OSError) -> set[int]:
    """The numbers in an error of one address, or in asyncio's summary of several."""
    return (
        {error.errno} if error.errno else {int(n) for n in re.findall(r"Errno (\d+)", str(error))}
    )


def _reason(error: OSError) -> str:
    return os.strerror(error.errno) if error.errno else str(error)
