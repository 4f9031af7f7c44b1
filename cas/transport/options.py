"""What an SSH connection is told that no config says, or other than the config says.

Names are those of asyncssh's options, but nothing of it is needed here.
"""

from __future__ import annotations

from typing import Any

from cas.transport.host import Host, given_options

# AES-GCM first: it costs half of what the others do, at both ends. The rest is for old servers.
CIPHERS = (
    "aes128-gcm@openssh.com",
    "aes256-gcm@openssh.com",
    "chacha20-poly1305@openssh.com",
    "aes128-ctr",
    "aes192-ctr",
    "aes256-ctr",
)
HOST_KEY_KINDS = (
    "ssh-ed25519",
    "ecdsa-sha2-nistp256",
    "ecdsa-sha2-nistp384",
    "ecdsa-sha2-nistp521",
    "rsa-sha2-512",
    "rsa-sha2-256",
)
CERTIFICATE = "-cert-v01@openssh.com"  # at the end of a kind
KEEPALIVE_SECONDS, KEEPALIVE_COUNT = 30, 20


def connection_options(
    host: Host, files: list[str] | None, known_kinds: set[str], authority: bool
) -> dict[str, Any]:
    """All that is told beside the host's name. `known_kinds` of its keys are in known_hosts, and
    perhaps an `authority` that may sign for it."""
    options = given_options(host.address, files)
    options |= {"client_keys": None, "password_auth": False, "kbdint_auth": False}  # see `keys`
    options |= {"compression_algs": ["none"], "agent_forwarding": False, "login_timeout": 0}
    options |= {"keepalive_interval": KEEPALIVE_SECONDS, "keepalive_count_max": KEEPALIVE_COUNT}
    if not host.ciphers:
        options["encryption_algs"] = CIPHERS
    if not host.host_key_kinds:
        options["server_host_key_algs"] = _host_key_kinds(known_kinds, authority)
    return options


def _host_key_kinds(known: set[str], authority: bool) -> list[str]:
    """Those that are known first, as ssh does, but the others too: a new key of another kind is to
    be shown to us, and not to be a key exchange that fails."""
    first = [kind + CERTIFICATE for kind in HOST_KEY_KINDS] if authority else []
    return first + sorted(HOST_KEY_KINDS, key=lambda kind: kind not in known)
