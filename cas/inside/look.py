"""Finds what is in an archive, and in the archives in it, with the parsers that the scan had.

An archive is looked into if the scan took it apart; else it is a file like others. What is
compressed and no archive is one file in what it is compressed to.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from functools import partial

from cas.codec.plain import decompressor
from cas.entry import Kind
from cas.errors import FormatError
from cas.inside.walk import Walk
from cas.program import Codec
from cas.rebuild.chunks import Chunk
from cas.rebuild.run import zero_pieces
from cas.unpack import ar, gitpack, gzip, tar, ziparchive
from cas.unpack.detect import HEAD, Form, detect
from cas.unpack.limits import LEAST_MEMBER, NESTED_LIMIT, RESTARTS
from cas.unpack.member import Item, Member, Run
from cas.unpack.source import PIECE, Source
from cas.unpack.zlibheader import ZLIB_HEADER, ZLIB_TRAILER

SEPARATOR = b"!/"
UNNAMED = b"content"

_SUFFIXES = (b".gz", b".bz2", b".xz", b".zst")
_FORMS = {Codec.BZIP2: Form.BZIP2, Codec.XZ: Form.XZ, Codec.ZSTD: Form.ZSTD}


@dataclass(frozen=True, slots=True)
class InnerEntry:
    """One member. `size` is None where only reading it would tell; `link` is the path of the member
    that it is another name of, as its archive has it."""

    path: bytes
    kind: Kind
    size: int | None
    mode: int = 0
    mtime_ns: int = 0
    uid: int = 0
    gid: int = 0
    target: bytes = b""
    link: bytes = b""


@dataclass(frozen=True, slots=True)
class Lying:
    """How a member lies in its archive: from byte `start` of the level that this is read on. If it
    `is_level`, a level of its own begins there. If it `is_plain`, the bytes there are the file's,
    without holes."""

    start: int = 0
    is_level: bool = False
    is_plain: bool = True


class Found:
    """A member, while its archive is read there."""

    def __init__(
        self,
        entry: InnerEntry,
        lying: Lying,
        read: Callable[[], Iterator[bytes]],
        take: Callable[[], list[Chunk] | None],
    ) -> None:
        self.entry = entry
        self.lying = lying
        self.is_read = False
        self._read = read
        self._take = take

    def chunks(self) -> list[Chunk] | None:
        """The chunks in the store that are the file, if it is just that; then it is read. Else
        nothing has happened."""
        taken = self._take()
        self.is_read = taken is not None
        return taken

    def data(self) -> Iterator[bytes]:
        """The file, in pieces; once, and all of it or the archive is not read on. Every chunk was
        hashed; what codecs had to make is not checked as a whole. Raises NotHeldError, DamageError,
        FormatError."""
        self.is_read = True
        return self._read()


class Look:
    """Looks into what `walk` goes over."""

    def __init__(self, walk: Walk) -> None:
        self._walk = walk

    def archive(
        self, body: Source, prefix: bytes, name: bytes, nested: int, start: int = 0
    ) -> Iterator[Found]:
        """What is in `body`, which may be an archive of this name, `nested` in others, and begins
        at byte `start` of its level; the members' paths begin with `prefix`."""
        for _ in range(RESTARTS):
            before = body.position
            form = self._form(body)
            if form is None or nested > NESTED_LIMIT:
                return
            yield from self._parsed(form, body, prefix, name, nested, start)
            if body.position == before:
                return

    def _form(self, body: Source) -> Form | None:
        """What `body` was taken for, if it was taken apart at the scan."""
        if body.size is not None and body.size - body.position < LEAST_MEMBER:
            return None
        head = self._walk.head(body, HEAD)
        if head:
            return detect(head)
        codec = self._codec(body)
        return None if codec is None else _FORMS.get(codec)

    def _codec(self, body: Source, after: int = 0) -> Codec | None:
        """The codec of what comes `after` so many bytes of `body`, which are at hand, if that is a
        level."""
        is_over = body.size is not None and body.position + after >= body.size
        is_later = len(self._walk.head(body, after + 1)) > after
        return None if is_over or is_later else self._walk.next_codec

    def _parsed(
        self, form: Form, body: Source, prefix: bytes, name: bytes, nested: int, start: int
    ) -> Iterator[Found]:
        items = _items(form, body)
        if items is not None:
            for item in items:
                if isinstance(item, Member):
                    can_go_on = yield from self._member(item, prefix, nested, start + body.position)
                    if not can_go_on:
                        return
        elif form is Form.GZIP or form is Form.ZLIB:
            yield from self._framed(form, body, prefix, name, nested)
        elif self._codec(body) is not None:
            yield from self._stream(body, prefix, name, nested)

    def _framed(
        self, form: Form, body: Source, prefix: bytes, name: bytes, nested: int
    ) -> Iterator[Found]:
        size, trailer = ZLIB_HEADER, ZLIB_TRAILER
        if form is Form.GZIP:
            size = gzip.header_size(self._walk.head(body, gzip.HEADER_LIMIT))
            trailer = gzip.TRAILER_SIZE
        if size > 0 and self._codec(body, size) is not None:
            body.skip(size)
            yield from self._stream(body, prefix, name, nested)
            body.skip(trailer)

    def _stream(self, body: Source, prefix: bytes, name: bytes, nested: int) -> Iterator[Found]:
        """What is in the level that begins at `body`."""
        self._walk.enter()
        inner = self._walk.source()
        if self._form(inner) is None:
            entry = InnerEntry(prefix + _uncompressed(name), Kind.FILE, None)
            yield Found(entry, Lying(), partial(self._rest, inner), lambda: None)
        else:
            yield from self.archive(inner, prefix, _uncompressed(name), nested + 1)
        body.skip(self._walk.leave())

    def _member(
        self, item: Member, prefix: bytes, nested: int, start: int
    ) -> Generator[Found, None, bool]:
        """One member and what is in it; whether the archive can be read on."""
        is_level = item.codec is not None and item.codec is self._codec(item.body)
        found = Found(
            _entry(item, prefix),
            _lying(item, start, is_level),
            partial(self._data, item, is_level),
            partial(self._chunks, item, is_level),
        )
        yield found
        inside, name = found.entry.path + SEPARATOR, item.path.rpartition(b"/")[2]
        if found.is_read:
            return True
        if is_level:
            self._walk.enter()
            yield from self.archive(self._walk.source(), inside, name, nested + 1)
            item.body.skip(self._walk.leave())
        elif item.endless:
            return False
        elif not item.opaque and item.codec is None and item.runs is None:
            yield from self.archive(item.body, inside, name, nested + 1, start)
        return True

    def _chunks(self, item: Member, is_level: bool) -> list[Chunk] | None:
        body = item.body
        if is_level:
            chunks = self._walk.level_chunks()
            if chunks is not None:
                body.skip(self._walk.leave())
            return chunks
        is_plain = item.codec is None and item.runs is None and not (item.opaque or item.endless)
        if not is_plain or not body.size or self._walk.head(body, 1):
            return None
        chunks = self._walk.chunks(body.size)
        if chunks is not None:
            body.skip(body.size)
        return chunks

    def _data(self, item: Member, is_level: bool) -> Iterator[bytes]:
        if is_level:
            self._walk.enter()
            yield from self._walk.rebuild()
            item.body.skip(self._walk.leave())
        elif item.opaque or item.endless:
            raise FormatError(f"it cannot be read: {item.opaque or 'nothing says where it ends'}")
        elif item.codec is not None:
            yield from _inflated(self._stored(item.body))
        elif item.runs is not None:
            yield from _expanded(self._stored(item.body), item.runs, item.size)
        else:
            yield from self._stored(item.body)

    def _stored(self, body: Source) -> Iterator[bytes]:
        """All of `body`, whose size is known, as it lies in its archive."""
        while head := self._walk.head(body, PIECE):
            yield body.exactly(len(head))
        left = (body.size or 0) - body.position
        if left > 0:
            yield from self._walk.rebuild(left)
            body.skip(left)

    def _rest(self, inner: Source) -> Iterator[bytes]:
        """All of a level, of which nothing but a look at its head was taken."""
        while head := self._walk.head(inner, PIECE):
            yield inner.exactly(len(head))
        yield from self._walk.rebuild()


def _items(form: Form, body: Source) -> Iterator[Item] | None:
    if form is Form.TAR:
        return tar.members(body, _ignore)
    if form is Form.AR:
        return ar.members(body, _ignore)
    if form is Form.PACK:
        return gitpack.members(body, _ignore)
    if form is Form.ZIP or (form is Form.STUB and ziparchive.has_directory(body)):
        return ziparchive.members(body, _ignore)
    return None


def _ignore(_: bytes) -> None:
    pass


def _entry(item: Member, prefix: bytes) -> InnerEntry:
    size = (item.size or None) if item.endless else item.size
    return InnerEntry(
        prefix + item.path, item.kind, size, item.mode,
        item.mtime_ns, item.uid, item.gid, item.target, item.link,
    )  # fmt: skip


def _lying(item: Member, start: int, is_level: bool) -> Lying:
    is_readable = is_level or (item.codec is None and not item.opaque)
    return Lying(start, is_level, is_readable and item.runs is None)


def _uncompressed(name: bytes) -> bytes:
    """What `name` was called before it was compressed."""
    for suffix in _SUFFIXES:
        name = name.removesuffix(suffix) or UNNAMED
    return name or UNNAMED


def _inflated(pieces: Iterator[bytes]) -> Iterator[bytes]:
    streams = iter((0,))
    plain = decompressor(Codec.DEFLATE, lambda _: next(pieces, b""), lambda: next(streams, None))
    while data := plain.more():
        yield data
    for _ in pieces:
        pass


def _expanded(pieces: Iterator[bytes], runs: tuple[Run, ...], size: int) -> Iterator[bytes]:
    """A sparse file: its data, with zeros for the holes."""
    at, data = 0, b""
    for offset, length in runs:
        yield from zero_pieces(offset - at)
        at = offset
        while at < offset + length:
            data = data or next(pieces, b"")
            if not data:
                raise FormatError("a sparse file in an archive is shorter than its map")
            piece = data[: offset + length - at]
            yield piece
            at += len(piece)
            data = data[len(piece) :]
    yield from zero_pieces(size - at)
    for _ in pieces:
        pass
