"""The second pass for archives: walks the program again, to where wanted chunks lie.

Nothing is analysed or chunked again: the recipe tells all lengths, so an ordinary decompressor and
counting do. A level is opened only when something in it is wanted. What is passed over is counted,
and made up for by the next read on that level: on level 0 it costs nothing. So one pass over the
file, forward, gives all that is wanted of it, however deep; and its walker can be kept from one
job to the next, standing where it is, since wants come in ascending order.

The file may have changed since the scan. Then chunks have other digests, or streams cannot be read,
and what is wanted is missed; whatever lies outside of such a stream is found still.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from cas.agent.layout import Layout, Program, RecipeOf
from cas.codec.plain import PIECE, Between, Plain, decompressor
from cas.errors import FormatError
from cas.ids import Digest, digest_of
from cas.program import Begin, Codec, End, Op, Skeleton, Span, Verbatim
from cas.recipe import Copy

CHANGED = "changed since the scan"
NOT_NOTED = "the scan's notes of it are gone"

Noted = Callable[[Digest], bytes | None]  # a skeleton chunk that the scan kept


class _Gone(Exception):
    """What was there at the scan cannot be had any more."""


@dataclass(slots=True)
class _Piece:
    """Some plain bytes of a level: where they begin, and they."""

    start: int = 0
    data: bytes = b""

    @property
    def end(self) -> int:
        return self.start + len(self.data)


class _File:
    """Level 0. The file is another descriptor in each job."""

    position: int  # to be read next

    def __init__(self) -> None:
        self.fd = -1
        self.position = 0

    def some(self, count: int) -> bytes:
        """Up to `count` bytes, nothing at the end."""
        try:
            data = os.pread(self.fd, count, self.position)
        except OSError as error:
            raise _Gone(f"cannot be read any more: {error.strerror or error}") from error
        self.position += len(data)
        return data


class _Stream:
    """A level over `below`, whose compressed bytes begin where that stands."""

    position: int  # to be read next, among the plain bytes

    def __init__(
        self, below: _Level, codec: Codec, between: Between, again: Callable[[], None]
    ) -> None:
        self.below = below
        self.start = below.position
        self.position = 0
        self._codec = codec
        self._between = between
        self._again = again
        self._plain: Plain | None = None
        self._held = _Piece()
        self._reason = ""  # why nothing more can be read
        self._fed = 0  # compressed bytes before the last that were taken
        self._breaks_at: int | None = None  # those after which it cannot be read

    def some(self, count: int) -> bytes:
        """Up to `count` plain bytes, nothing at the end."""
        if self.position < self._held.start:
            self._reopen()
        while self.position >= self._held.end:
            if not self._advance():
                return b""
        at = self.position - self._held.start
        data = self._held.data[at : at + count]
        self.position += len(data)
        return data

    def end(self, size: int) -> None:
        """Its compressed bytes were `size`: what follows on the level below is after them. Up to
        `PIECE` more may have been taken, which that level still holds; or very much more, of a
        stream that is cut off or goes on otherwise, and then that level has to begin again."""
        self.below.position = self.start + size
        # The decompressor takes from this very object; such a circle would stay for long.
        self._plain, self._held = None, _Piece()

    def _reopen(self) -> None:
        self.below.position = self.start
        self._plain, self._held, self._reason = None, _Piece(), ""
        self._again()

    def _take(self, count: int) -> bytes:
        self._fed = self.below.position - self.start
        if self._breaks_at is not None:
            count = min(count, max(self._breaks_at - self._fed, 1))
        return self.below.some(count)

    def _advance(self) -> bool:
        """Hold the next plain bytes, and of those before the position what may be read again."""
        if self._reason:
            raise _Gone(self._reason)
        try:
            if self._plain is None:
                self._plain = decompressor(self._codec, self._take, self._between)
            data = self._plain.more()
        except _Gone as error:
            self._reason = str(error)
            raise
        except FormatError as error:
            if self._breaks_at is None:
                # What the last bytes held before they broke is lost with them; so once more, and
                # then byte by byte, as far as it goes.
                self._breaks_at = self._fed
                self._reopen()
                return True
            self._reason = CHANGED
            raise _Gone(CHANGED) from error
        kept = self._held.data[-PIECE:]
        self._held = _Piece(self._held.end - len(kept), kept + data)
        return bool(data)


_Level: TypeAlias = _File | _Stream


class Extractor:
    """Walks one archive, whose recipes are `parts`. Not thread-safe; holds three decoded recipes,
    what the decompressors need, and a chunk."""

    def __init__(self, parts: Sequence[Digest], recipe_of: RecipeOf, noted: Noted) -> None:
        self._noted = noted
        self._program = Program(parts, recipe_of)
        self._file = _File()
        self._rewind()

    def chunks(self, fd: int, wanted: Sequence[int]) -> Iterator[bytes | str]:
        """For each of `wanted`, ascending indexes into the archive's chunk list, its bytes, hashed
        and found right, or why they cannot be had. `fd` is the archive, open for reading. Raises
        SourceError for an index that it does not have, and what `recipe_of` raises.

        Whoever wants a chunk before one that he was given before has the walk begin anew.
        """
        self._file.fd = fd
        for index in wanted:
            part, number = self._program.find(index)
            recipe = self._program.recipe(part)
            if number < recipe.skeleton:
                yield self._noted_chunk(recipe.ids[number])
                continue
            if index < self._next_index:
                self._rewind()
            try:
                data = self._walk_to(index)
            except _Gone as error:
                yield str(error)
                continue
            yield data if digest_of(data) == recipe.ids[number] else CHANGED

    def _noted_chunk(self, chunk_id: Digest) -> bytes | str:
        data = self._noted(chunk_id)
        return NOT_NOTED if data is None or digest_of(data) != chunk_id else data

    def _rewind(self) -> None:
        self._file.position = 0
        self._levels: list[_Level] = [self._file]
        self._layouts: list[Layout] = []  # of the levels over the file
        self._enter(0)

    def _enter(self, part: int) -> None:
        """Stand before the first operation of a part."""
        self._part = part
        self._at = 0  # the operation that comes next, or is in hand
        self._copied = 0  # so many chunks of it are passed, if it copies
        self._next_index = self._program.first(part) + self._program.recipe(part).skeleton

    def _walk_to(self, index: int) -> bytes:
        """Walk over the chunk `index`, which is ahead; its bytes."""
        while True:
            ops = self._program.recipe(self._part).program
            while self._at < len(ops):
                op = ops[self._at]
                if isinstance(op, Copy):
                    left = op.count - self._copied
                    self._pass_chunks(min(index - self._next_index, left))
                    if self._copied < op.count:
                        return self._read_chunk()
                    self._copied = 0
                else:
                    self._pass(op)
                self._at += 1
            self._enter(self._part + 1)

    def _pass_chunks(self, count: int) -> None:
        lengths = self._program.recipe(self._part).lengths
        number = self._next_index - self._program.first(self._part)
        self._levels[-1].position += sum(lengths[number : number + count])
        self._copied += count
        self._next_index += count

    def _read_chunk(self) -> bytes:
        """The chunk that comes next; it is passed also when it cannot be read."""
        level = self._levels[-1]
        start = level.position
        self._pass_chunks(1)
        end, level.position = level.position, start
        pieces = []
        try:
            while level.position < end:
                data = level.some(end - level.position)
                if not data:
                    raise _Gone(CHANGED)
                pieces.append(data)
        finally:
            level.position = end
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _pass(self, op: Op) -> None:
        match op:
            case Skeleton(size):
                self._levels[-1].position += size
            case Begin(codec, _):
                self._layouts.append(Layout(self._program, len(self._levels)))
                between = partial(self._between, self._layouts[-1])
                again = self._layouts[-1].begin_again
                self._levels.append(_Stream(self._levels[-1], codec, between, again))
            case Span(number, _, _) | Verbatim(number, _):
                self._layouts[number - 1].tell(op, (self._part, self._at))
            case End(size):
                level = self._levels.pop()
                self._layouts.pop()
                if isinstance(level, _Stream):
                    level.end(size)

    def _between(self, layout: Layout) -> int | None:
        return layout.between((self._part, self._at), len(self._layouts))


class Extractors:
    """Keeps the walker of the archive that a thread read last, for its next job."""

    def __init__(self, recipe_of: RecipeOf, noted: Noted) -> None:
        self._recipe_of = recipe_of
        self._noted = noted
        self._kept = threading.local()

    def of(self, path: bytes, parts: tuple[Digest, ...]) -> Extractor:
        """The walker of the archive at `path` with these recipes, for this thread."""
        key, extractor = getattr(self._kept, "last", (None, None))
        if key != (path, parts) or extractor is None:
            extractor = Extractor(parts, self._recipe_of, self._noted)
            self._kept.last = ((path, parts), extractor)
        return extractor
