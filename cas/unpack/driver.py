"""Takes a source apart, and what is in it, and what is in that (docs/format.md, section 11).

Each source is looked at; if its first bytes say that it is an archive, its parser reads it, and
every body that comes out is a source again. What no parser takes is content, in one run from where
the source begins, so that it has the chunks of a plain file; only what follows an archive inside
its source is content of its own. Nothing here fails because of what is in a file.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Protocol

from cas.chunker import MIN_SIZE
from cas.codec.base import Splitter
from cas.program import Codec
from cas.unpack import ar, gitpack, gzip, tar, ziparchive
from cas.unpack.builder import Builder
from cas.unpack.detect import HEAD, TRIAL, Form, detect, inflates
from cas.unpack.limits import (
    FRAME_LIMIT,
    HOLE_LEAST,
    LEAST_MEMBER,
    LEAST_NOTED,
    LEAST_STREAM,
    NOTES_ALIKE,
    RESTARTS,
    TINY,
    Budget,
    is_too_deep,
)
from cas.unpack.member import Item, Member, Run
from cas.unpack.source import Source, member
from cas.unpack.stream import Stream
from cas.unpack.zlibheader import ZLIB_HEADER, ZLIB_TRAILER

SPLITTER_HEAD = 512 * 1024  # bytes that a codec is shown to say whether it knows the stream

_GIT_BLOB = re.compile(rb"blob (0|[1-9][0-9]{0,18})\0")


class Splitters(Protocol):
    """Begins splitters, the `cas.codec` ones unless this is a test."""

    def begin_archive(self) -> None:
        """What follows is of another archive."""

    def deflate(self) -> Splitter | None:
        """For a raw deflate stream."""

    def other(self, form: Form, head: bytes, budget: Budget) -> Splitter | None:
        """For a stream of another form that begins with `head`; nothing if none can do it."""


class Unpacker:
    """Takes one file apart. What it finds goes to `builder`."""

    def __init__(self, builder: Builder, budget: Budget, splitters: Splitters) -> None:
        self._builder = builder
        self._budget = budget
        self._splitters = splitters
        splitters.begin_archive()
        self._names: list[bytes] = []
        self._nested = 0
        self._reasons: Counter[str] = Counter()
        self._is_noted = False  # that the limits have been reached
        self._parsers: dict[Form, Callable[[Source], None]] = {
            Form.TAR: lambda source: self._members(tar.members(source, self._frame)),
            Form.AR: lambda source: self._members(ar.members(source, self._frame)),
            Form.PACK: lambda source: self._members(gitpack.members(source, self._frame)),
            Form.ZIP: lambda source: self._members(ziparchive.members(source, self._frame)),
            Form.STUB: self._stub,
            Form.GZIP: self._gzip,
            Form.ZLIB: self._zlib,
            Form.BZIP2: lambda source: self._other(Form.BZIP2, source),
            Form.XZ: lambda source: self._other(Form.XZ, source),
            Form.ZSTD: lambda source: self._other(Form.ZSTD, source),
        }

    def unpack(self, source: Source) -> None:
        """Take all of `source` apart. Raises BrokenPromise; else only what reading it raises."""
        for _ in range(RESTARTS):
            before = source.position
            if before and len(source.peek(FRAME_LIMIT + 1)) <= FRAME_LIMIT:
                self._frame(source.exactly(FRAME_LIMIT))
                return
            form = self._form(source)
            if form is None:
                break
            self._nested += 1
            self._parsers[form](source)
            self._nested -= 1
            if source.position == before:
                break
        self._content(source)

    def _form(self, source: Source) -> Form | None:
        """What to take `source` for."""
        if source.size is not None and source.size - source.position < LEAST_MEMBER:
            return None
        form = detect(source.peek(HEAD))
        if form is Form.ZLIB and not inflates(source.peek(TRIAL)):
            return None
        return None if form is None or self._is_over() else form

    def _is_over(self) -> bool:
        """Whether a limit keeps everything that follows, or lies deeper, from being taken apart."""
        if self._is_spent():
            return True
        if is_too_deep(self._builder.level, self._nested):
            self._note("too deep in other archives")
            return True
        return False

    def _is_spent(self) -> bool:
        if self._budget.is_spent and not self._is_noted:
            self._is_noted = True
            self._note("over the limits for one file: left as it is from here on")
        return self._budget.is_spent

    def _members(self, items: Iterable[Item]) -> None:
        for item in items:
            if isinstance(item, Member):
                self._names.append(item.path)
                is_over = not self._member(item)
                self._names.pop()
            else:
                self._content(item.body)
                is_over = False
            if is_over or self._is_spent():
                return

    def _member(self, item: Member) -> bool:
        """Take a member's body; false when nothing says where it ends."""
        body = item.body
        if item.opaque:
            self._note(item.opaque)
        if item.codec is Codec.DEFLATE and (item.endless or (body.size or 0) >= LEAST_STREAM):
            is_ended = self._deflate(body, self._framed if item.framed else None)
            if item.endless:
                return is_ended
        elif item.endless:
            return False
        if item.framed:
            self._framed(body)
        elif item.runs is not None:
            self._sparse(body, item.runs)
        elif item.codec is not None or item.opaque:
            self._content(body)
        else:
            self.unpack(body)
        return True

    def _sparse(self, body: Source, runs: Iterable[Run]) -> None:
        """The runs of a sparse file: one stream up to a hole that is a hole elsewhere too."""
        end = size = 0
        for offset, length in (*runs, (2**63, 0)):
            if offset - end >= HOLE_LEAST and size:
                self._content(member(body, size))
                size = 0
            size += length
            end = offset + length
        self._content(body)

    def _stub(self, source: Source) -> None:
        if ziparchive.has_directory(source):
            self._members(ziparchive.members(source, self._frame))

    def _gzip(self, source: Source) -> None:
        size = gzip.header_size(source.peek(gzip.HEADER_LIMIT))
        if size > 0:
            splitter = gzip.GzipSplitter(self._begin_deflate)
            self._stream(source, splitter, size, gzip.TRAILER_SIZE)

    def _zlib(self, source: Source) -> None:
        if (splitter := self._begin_deflate()) is not None:
            self._stream(source, splitter, ZLIB_HEADER, ZLIB_TRAILER, self._git_object)

    def _deflate(self, source: Source, unpack: Callable[[Source], None] | None) -> bool:
        splitter = self._begin_deflate()
        return splitter is not None and self._stream(source, splitter, unpack=unpack)

    def _framed(self, body: Source) -> None:
        """Bytes that nothing else has, if they are few."""
        if len(body.peek(FRAME_LIMIT + 1)) <= FRAME_LIMIT:
            self._frame(body.exactly(FRAME_LIMIT))
        self._content(body)

    def _other(self, form: Form, source: Source) -> None:
        splitter = self._splitters.other(form, source.peek(SPLITTER_HEAD), self._budget)
        if splitter is None:
            self._note(f"{form.value}: no codec that can do it")
        else:
            self._stream(source, splitter)

    def _begin_deflate(self) -> Splitter | None:
        return self._splitters.deflate() if self._budget.stream() else None

    def _stream(
        self,
        source: Source,
        splitter: Splitter,
        header: int = 0,
        trailer: int = 0,
        unpack: Callable[[Source], None] | None = None,
    ) -> bool:
        """Take the stream after `header` bytes of `source` apart, and what is in it; whether it
        ended as it should. If nothing comes of it, nothing was read."""
        if self._is_over():
            return False
        framed = source.exactly(header)
        stream = Stream(source, splitter, self._builder, self._budget)
        is_stream = stream.begins()
        if is_stream:
            self._frame(framed)
            stream.open()
            (unpack or self.unpack)(stream.plain)
            if stream.close():
                self._frame(source.exactly(trailer))
        else:
            source.unread(framed)
        if stream.reason and (is_stream or (source.size or LEAST_NOTED) >= LEAST_NOTED):
            self._note(stream.reason)
        return is_stream and splitter.ended

    def _git_object(self, plain: Source) -> None:
        """The plain bytes of a zlib stream: of a loose object, if git wrote it (git's "Git
        Internals - Git Objects")."""
        if match := _GIT_BLOB.match(plain.peek(32)):
            self._frame(plain.exactly(match.end()))
            self.unpack(member(plain, int(match.group(1))))
        if not plain.position or plain.peek(1):
            self.unpack(plain)

    def _content(self, body: Source) -> None:
        """All that is left of `body`, as a file's content."""
        if body.size is not None and body.size - body.position <= MIN_SIZE:
            data = body.exactly(body.size - body.position)
            if len(data) <= TINY and self._nested:
                self._frame(data)
            else:
                self._builder.small_content(data)
            return
        while data := body.read():
            self._builder.content(data)
        self._builder.end_content()

    def _frame(self, data: bytes) -> None:
        self._budget.skeleton(len(data))
        self._builder.skeleton(data)

    def _note(self, reason: str) -> None:
        self._reasons[reason] += 1
        if self._reasons[reason] > NOTES_ALIKE:
            return
        names = "!/".join(name.decode(errors="replace") for name in self._names)
        self._builder.note(f"{names}: {reason}" if names else reason)
