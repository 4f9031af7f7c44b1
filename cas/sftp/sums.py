"""SHA-256 sums from the far end, where it runs commands and has coreutils or busybox.

A sum says that a file is held here already, under whatever name, so that it need not be fetched;
and whether what was fetched is what lies there. Names go to standard input, so no shell sees them.
Where anything is in doubt there is no sum, and the file is fetched. So it is with names that could
not be told apart in what comes back: GNU escapes line breaks and backslashes, busybox does not.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence

from cas.ids import DIGEST_SIZE, Digest

COMMAND = "xargs -0 sha256sum --"
LINE_SIZE = 2 * DIGEST_SIZE + 8  # of output for a name, besides the name, at most
_AMBIGUOUS = re.compile(rb"[\n\r\\]")
_LINE = re.compile(rb"([0-9a-f]{64})[ ][ *]([^\\\r]+)")


def probe() -> tuple[str, bytes]:
    """A command, and what it writes where commands are run: an answer that says something else,
    or nothing, comes from what is run in its place."""
    word = secrets.token_hex(8)
    return f"echo cas-{word}", f"cas-{word}\n".encode()


def names_for(paths: Sequence[bytes]) -> bytes:
    """The standard input of COMMAND for absolute paths; some are left out."""
    return b"".join(path + b"\0" for path in paths if not _AMBIGUOUS.search(path))


def read_sums(said: bytes) -> dict[bytes, Digest]:
    """The sums in what COMMAND wrote, by path. A line that is cut off or of another form is passed
    over."""
    lines = (_LINE.fullmatch(line) for line in said.split(b"\n")[:-1])
    return {
        match[2]: Digest(bytes.fromhex(match[1].decode("ascii")))
        for match in lines
        if match is not None
    }
