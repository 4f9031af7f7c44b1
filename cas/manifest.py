"""Lists of digests as `sha256sum` writes and `sha256sum -c` reads them (GNU coreutils).

A name with a backslash, a newline or a carriage return has them escaped, and a backslash before the
digest says so. Lines that begin with `#` are passed over.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from cas.entry import HOLE_DIGEST, Entry, Kind

ESCAPES = ((b"\\", b"\\\\"), (b"\n", b"\\n"), (b"\r", b"\\r"))


def checksum_line(digest: bytes, name: bytes) -> bytes:
    """The line that says that the file `name` has this SHA-256."""
    escaped = _escaped(name)
    mark = b"\\" if escaped != name else b""
    return b"%s%s  %s\n" % (mark, digest.hex().encode(), escaped)


def comment_line(text: str, name: bytes) -> bytes:
    """A line that says `text` of the file `name` to people."""
    return b"# %s: %s\n" % (text.encode(), _escaped(name))


def _escaped(name: bytes) -> bytes:
    for plain, escaped in ESCAPES:
        name = name.replace(plain, escaped)
    return name


def why_not_listed(entry: Entry) -> str:
    """Why no digest of a file's bytes is known; empty if one is, and for what is no file."""
    if entry.kind is not Kind.FILE:
        return ""
    if entry.content is None:
        return "could not be read at the source"
    return "too many holes to hash" if entry.flags & HOLE_DIGEST else ""


def manifest(entries: Iterable[Entry]) -> Iterator[bytes]:
    """A line for each file among `entries`, by their paths; a comment where there is no digest."""
    for entry in entries:
        reason = why_not_listed(entry)
        if reason:
            yield comment_line(reason, entry.path)
        elif entry.content is not None:
            yield checksum_line(entry.content.digest, entry.path)
