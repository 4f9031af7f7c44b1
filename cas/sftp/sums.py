"""SHA-256 sums from the far end, where it runs commands and has coreutils or busybox.

A sum says that a file is held here already, under whatever name, so that it need not be fetched;
and whether what was fetched is what lies there. Names go to standard input, so no shell sees them.
Where anything is in doubt there is no sum, and the file is fetched.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence

from cas.ids import DIGEST_SIZE, Digest

COMMAND = "xargs -0 sha256sum --"
LINE_SIZE = 2 * DIGEST_SIZE + 8  # of output for a name, besides the name, at most
_ESCAPES = {b"\\\\": b"\\", b"\\n": b"\n", b"\\r": b"\r"}
_ESCAPE = re.compile(rb"\\.", re.DOTALL)
_LINE = re.compile(rb"(\\?)([0-9a-f]{64})[ ][ *](.+)", re.DOTALL)


def probe() -> tuple[str, bytes]:
    """A command, and what it writes where commands are run: an answer that says something else,
    or nothing, comes from what is run in its place."""
    word = secrets.token_hex(8)
    return f"echo cas-{word}", f"cas-{word}\n".encode()


def names_for(paths: Sequence[bytes]) -> bytes:
    """The standard input of COMMAND for absolute paths."""
    return b"".join(path + b"\0" for path in paths)


def read_sums(said: bytes) -> dict[bytes, Digest]:
    """The sums in what COMMAND wrote, by path. A line that is cut off or of another form is passed
    over. GNU escapes some characters of names, and says so by a backslash before the line."""
    found = {}
    for line in said.split(b"\n")[:-1]:
        match = _LINE.fullmatch(line)
        if match is not None:
            escaped, digest, name = match.groups()
            if escaped:
                name = _ESCAPE.sub(lambda escape: _ESCAPES.get(escape[0], escape[0]), name)
            found[name] = Digest(bytes.fromhex(digest.decode("ascii")))
    return found
