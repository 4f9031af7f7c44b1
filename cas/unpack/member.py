"""What is in an archive, as the parsers of tar, ar and zip tell it.

A parser is an iterator over a `Source`, used by who unpacks archives and by who lists them. What
it reads for itself, headers and padding and directories, goes to `frame`, byte for byte and in the
order of the archive; what it does not read it gives away as a body. So frames and bodies together
are the archive up to where the iteration ends, and what follows there is still in the source.

A body may be read by the caller, wholly or not at all, before the next item is asked for; what is
left of it then is passed over.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from cas.entry import Kind
from cas.program import Codec
from cas.unpack.source import Source

Frame: TypeAlias = Callable[[bytes], None]
Run: TypeAlias = tuple[int, int]  # of data: offset in the file, size


@dataclass(slots=True)
class Member:
    """One name in an archive. `size` is that of the file, with holes read as zeros.

    `body` has the file's bytes; those of `runs` only where it has holes; with `codec`, compressed.
    `endless`: nothing says how long the compressed stream is, it ends by itself. Then `body` is the
    archive's own source, and must be read to the end of the stream, exactly.
    `framed`: the bytes are nothing that another file has.
    `link` is the path of another member that this is a second name of.
    """

    path: bytes
    kind: Kind
    size: int
    body: Source
    mtime_ns: int = 0
    mode: int = 0
    uid: int = 0
    gid: int = 0
    target: bytes = b""
    link: bytes = b""
    runs: tuple[Run, ...] | None = None
    codec: Codec | None = None
    endless: bool = False
    framed: bool = False
    opaque: str = ""  # why nobody can look into the body: it is encrypted, say


@dataclass(slots=True)
class Gap:
    """Bytes between members that mean nothing to the parser, and are too many for a frame."""

    body: Source


Item: TypeAlias = Member | Gap
