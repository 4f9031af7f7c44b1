"""What commands tell of files at the far end, where it runs any, and has coreutils or busybox.

A SHA-256 sum says that a file is held here already, under whatever name, so that it need not be
fetched; and whether what was fetched is what lies there. `stat` says which names are one inode; and
whether it is the same file at all, for an SFTP server may show paths that are none to a shell.

Names go to standard input, so no shell sees them. Where anything is in doubt nothing is told, and
the file is fetched. So it is with names that could not be told apart in what comes back: GNU
escapes line breaks and backslashes, busybox does not.
"""

from __future__ import annotations

import re
import secrets
import struct
from collections.abc import Iterable
from dataclasses import dataclass

from cas.ids import Digest

SUMS = "xargs -0 sha256sum --"
STATS = "xargs -0 stat -c '%d %i %h %s %Y %n' --"
LINE_SIZE = 128  # of output for a name, besides the name, at most

_AMBIGUOUS = re.compile(rb"[\n\r\\]")
_SUM = re.compile(rb"([0-9a-f]{64})[ ][ *]([^\\\r]+)")
_STAT = re.compile(rb"(\d{1,19}) (\d{1,19}) (\d{1,9}) (\d{1,19}) (\d{1,19}) ([^\\\r]+)")
_LINK = struct.Struct("<QQ").pack


@dataclass(frozen=True, slots=True)
class Stat:
    """What `stat` says of a file; `link` is what all its names have in common, if it has more than
    one, as the agent has it (`cas.agent.metadata.link_id`)."""

    size: int
    mtime: int
    link: bytes


def probe() -> tuple[str, bytes]:
    """A command, and what it writes where commands are run: an answer that says something else,
    or nothing, comes from what is run in its place."""
    word = secrets.token_hex(8)
    return f"echo cas-{word}", f"cas-{word}\n".encode()


def names_for(paths: Iterable[bytes]) -> bytes:
    """The standard input of SUMS or STATS for absolute paths; some are left out."""
    return b"".join(path + b"\0" for path in paths if not _AMBIGUOUS.search(path))


def read_sums(said: bytes) -> dict[bytes, Digest]:
    """The sums in what SUMS wrote, by path. A line that is cut off or of another form is passed
    over."""
    return {
        match[2]: Digest(bytes.fromhex(match[1].decode("ascii"))) for match in _lines(said, _SUM)
    }


def read_stats(said: bytes) -> dict[bytes, Stat]:
    """What STATS wrote, by path; other lines are passed over."""
    return {match[6]: _stat(match) for match in _lines(said, _STAT)}


def _stat(match: re.Match[bytes]) -> Stat:
    device, inode, links, size, mtime = map(int, match.groups()[:5])
    return Stat(size, mtime, _LINK(device, inode) if links > 1 else b"")


def _lines(said: bytes, form: re.Pattern[bytes]) -> Iterable[re.Match[bytes]]:
    for line in said.split(b"\n")[:-1]:
        match = form.fullmatch(line)
        if match is not None:
            yield match
