"""In which order keys are offered at a login: the one that ssh has.

A server allows few attempts (OpenSSH: six), so a key that the config names must come before the
others that an agent happens to hold.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

Pair = TypeVar("Pair")


@dataclass(frozen=True, slots=True)
class Key(Generic[Pair]):
    """A key from a file or an agent. `name` is for messages; `public` the public key (b"": not
    known), `offered` what the server is shown (that, or a certificate for it); `pair` what signs
    with it, None if only the public half can be read; `locked`: for want of a passphrase."""

    name: str
    public: bytes
    offered: bytes = b""
    pair: Pair | None = None
    locked: bool = False


def keys_to_offer(
    files: Sequence[Key[Pair]], agent: Sequence[Key[Pair]], only_named: bool
) -> list[Key[Pair]]:
    """Those of the agent that `files` name, its others (not if `only_named`), those of the files.

    `files` are the keys of the files that the config names, in that order.
    """
    named = {key.public for key in files}
    first = [key for key in agent if key.public in named]
    others = [key for key in agent if key.public not in named and not only_named]
    held = {key.offered for key in first + others}
    return first + others + [key for key in files if key.pair and key.offered not in held]


def locked_keys(files: Sequence[Key[Pair]], agent: Sequence[Key[Pair]]) -> list[str]:
    """The names of those with a passphrase that no agent holds."""
    held = {key.public for key in agent}
    return [key.name for key in files if key.locked and key.public not in held]
