"""The members of an archive in the store, and of the archives in it.

A member's path has a `!/` behind each archive that it is in, but for the outermost:
`layer.tar.gz!/etc/passwd`. What is compressed and no archive is one file in what it is compressed
to: `notes.txt.gz!/notes.txt`.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import closing

from cas.codec.base import JoinerFactory
from cas.codec.registry import begin_joiner
from cas.entry import Content, Kind
from cas.errors import NotHeldError
from cas.inside.look import SEPARATOR, Found, InnerEntry, Look
from cas.inside.skeleton import Framework, Parts
from cas.inside.walk import Walk
from cas.interfaces import ContentSource
from cas.rebuild.run import has_program

LINKS_LIMIT = 8  # names that lead to one another


def list_members(
    content: Content, source: ContentSource, *, name: bytes = b""
) -> Iterator[InnerEntry]:
    """The members of an archive in its order, those of an archive in it right after that itself;
    `name` is the archive's own. There are none in a plain file. Raises NotHeldError, DamageError,
    FormatError."""
    for found in find_members(content, source, name=name):
        yield found.entry


def open_member(
    content: Content, path: bytes, source: ContentSource, *, name: bytes = b""
) -> Iterator[bytes]:
    """The bytes of the last member at `path`, in pieces; if it is a further name of another member,
    of that one. Raises NotHeldError if there is no such file; what is raised later is that of
    `Found.data`. What of a path says nothing, as in `./a//b`, does not matter."""
    for _ in range(LINKS_LIMIT):
        number, entry = _last_at(content, path, source, name)
        if not entry.link:
            break
        path = entry.path[: entry.path.rfind(SEPARATOR) + 1] + b"/" + entry.link
    if entry.kind is not Kind.FILE or entry.link:
        raise NotHeldError("no file in the archive", where=_shown(path))
    return _data(find_members(content, source, name=name), number)


def find_members(
    content: Content,
    source: ContentSource,
    *,
    name: bytes = b"",
    joiners: JoinerFactory = begin_joiner,
) -> Generator[Found, None, None]:
    """The members, to be read on the way. Contract as of `list_members`."""
    if not has_program(content, source):
        return
    parts = Parts(content, source)
    walk = Walk(parts, source, joiners)
    pread = Framework(parts, source).read
    yield from Look(walk).archive(walk.source(content.size, pread), b"", name, 0)


def normal_path(path: bytes) -> bytes:
    """`path` without the parts that say nothing."""
    return b"/".join(part for part in path.split(b"/") if part not in (b"", b"."))


def split_path(path: bytes) -> tuple[bytes, bytes]:
    """What paths in the innermost archive of `path` begin with, and the path in that, or nothing
    for all of it."""
    outer, separator, inner = (normal_path(path) + b"/").rpartition(SEPARATOR)
    return outer + separator, inner.rstrip(b"/")


def _data(members: Generator[Found, None, None], number: int) -> Iterator[bytes]:
    """The bytes of one of `members`."""
    with closing(members):
        for at, found in enumerate(members):
            if at == number:
                yield from found.data()
                return


def _last_at(
    content: Content, path: bytes, source: ContentSource, name: bytes
) -> tuple[int, InnerEntry]:
    wanted = normal_path(path)
    last: tuple[int, InnerEntry] | None = None
    for number, entry in enumerate(list_members(content, source, name=name)):
        if normal_path(entry.path) == wanted:
            last = number, entry
    if last is None:
        raise NotHeldError("no such name in the archive", where=_shown(path))
    return last


def _shown(path: bytes) -> str:
    return path.decode("utf-8", "surrogateescape")
