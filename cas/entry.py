"""An entry: one name in a tier, with everything needed to make it again.

Paths are the source's absolute paths without the leading slash, as bytes, parts joined by one
slash. Entries are in *path order*: parts compared as bytes, a directory before what lies in it
(`path_order`). Content is named, not held: `Content.digest` is the SHA-256 of the plain bytes;
`parts` are the ids of the recipes that rebuild it, one for each `recipe.PART_CHUNKS` chunks. A
file of a single chunk needs no recipe, since its digest is the chunk's id.
"""

from __future__ import annotations

import stat
from dataclasses import dataclass, field
from enum import IntEnum

from cas.errors import FormatError, LimitError
from cas.ids import Digest

PATH_LIMIT = 32768
NAME_LIMIT = 255


class Kind(IntEnum):
    """What a name is; the values are those of pages (docs/format.md, section 3)."""

    FILE = 1
    DIRECTORY = 2
    SYMLINK = 3
    FIFO = 4
    SOCKET = 5
    CHARACTER_DEVICE = 6
    BLOCK_DEVICE = 7


# The type bits of st_mode (inode(7)) for each kind.
TYPES = {
    Kind.FILE: stat.S_IFREG,
    Kind.DIRECTORY: stat.S_IFDIR,
    Kind.SYMLINK: stat.S_IFLNK,
    Kind.FIFO: stat.S_IFIFO,
    Kind.SOCKET: stat.S_IFSOCK,
    Kind.CHARACTER_DEVICE: stat.S_IFCHR,
    Kind.BLOCK_DEVICE: stat.S_IFBLK,
}
DEVICES = (Kind.CHARACTER_DEVICE, Kind.BLOCK_DEVICE)

# Entry.flags
INCONSISTENT = 1  # changed each time it was read; what is held is one of its states, perhaps torn
UNREADABLE = 2  # the content could not be read; only the metadata is held
HOLE_DIGEST = 4  # too many holes to hash: the digest is that of the recipes, not of the bytes
IMPLIED = 8  # a directory above a root: its mtime, which others change, is not kept (0)
FLAGS = INCONSISTENT | UNREADABLE | HOLE_DIGEST | IMPLIED


@dataclass(frozen=True, slots=True)
class Owner:
    """Mode and ownership; many entries share one value. Names are empty when unknown."""

    mode: int
    uid: int
    gid: int
    user: bytes = b""
    group: bytes = b""


@dataclass(frozen=True, slots=True)
class Content:
    """What a regular file holds: `size` bytes of SHA-256 `digest`, in `chunk_count` chunks."""

    size: int
    digest: Digest
    chunk_count: int
    parts: tuple[Digest, ...] = ()


@dataclass(frozen=True, slots=True)
class Entry:
    """One name. `content` only for readable regular files, `target` for symlinks, `device` for
    devices (major, minor), `link` names the inode where a file has several names (hardlinks)."""

    path: bytes
    kind: Kind
    owner: Owner
    mtime_ns: int
    size: int = 0
    content: Content | None = None
    target: bytes = b""
    device: tuple[int, int] | None = None
    link: bytes = b""
    xattrs: tuple[tuple[bytes, bytes], ...] = ()
    flags: int = 0


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that was left out, or taken with a doubt: where, why, what would help."""

    path: bytes
    reason: str
    hint: str = ""
    left_out: bool = field(default=True)


def path_order(path: bytes) -> tuple[bytes, ...]:
    """The sort key of path order."""
    return tuple(path.split(b"/"))


def check_path(path: bytes) -> bytes:
    """`path` if it is a legal entry path; raises FormatError. The peer is not trusted: this is
    what keeps `..`, absolute and empty parts out of everything that makes paths later."""
    if len(path) > PATH_LIMIT:
        raise LimitError(f"a path of {len(path)} bytes is over the limit of {PATH_LIMIT}")
    for part in path.split(b"/"):
        if part in (b"", b".", b"..") or len(part) > NAME_LIMIT or b"\0" in part:
            raise FormatError(f"not a legal path: {path[:200]!r}")
    return path
