"""Walks an archive's program and gives the bytes of its levels to whoever parses them.

What parsers want, headers and directories, is skeleton, and read. What members hold is in chunks,
which are fetched only when someone reads there, and else passed over by their lengths. So a listing
costs the skeleton, whatever the size of the archive.

One level can be read at a time, the one on top. Where another level begins over it, its source
reads as if it ended: `enter` the other level, and `leave` it. The compressed bytes that it stood
for are then next in the source below, which cannot read them, only pass over them.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from cas.archive import ArchiveRecipe
from cas.codec.base import JoinerFactory
from cas.codec.registry import begin_joiner
from cas.errors import FormatError
from cas.inside.skeleton import SkeletonReader
from cas.interfaces import ContentSource
from cas.program import Begin, Codec, End, Op, Skeleton, Span, Verbatim, skeleton_use
from cas.rebuild.chunks import Chunk
from cas.rebuild.levels import Levels
from cas.recipe import Copy
from cas.unpack.source import PIECE, Pread, Source

MOST_WORKERS = 8


class Walk:
    """Stands somewhere in the program of `recipes`; goes forward only. Raises FormatError where the
    program is at fault, and what `source` raises."""

    def __init__(
        self,
        recipes: Iterable[ArchiveRecipe],
        source: ContentSource,
        joiners: JoinerFactory = begin_joiner,
    ) -> None:
        self._recipes = iter(recipes)
        self._source = source
        self._joiners = joiners
        self._program: tuple[Op, ...] = ()
        self._at = 0  # the operation in hand
        self._used = 0  # bytes of it, if it is a skeleton; of its chunk, if it copies
        self._copied = 0  # chunks of it that are passed
        self._passed = (
            0  # bytes of the level that are passed, and that its source has still to skip
        )
        self._chunk = b""  # the one in hand, if it was fetched
        self._is_fetching = True
        self._number = 0  # of the chunk that the part in hand copies next
        self.level = 0

    def source(self, size: int | None = None, pread: Pread | None = None) -> Source:
        """The bytes of the level on top, from here on."""
        level = self.level
        return Source(partial(self._more, level), size, pread, partial(self._jump, level))

    def head(self, body: Source, count: int) -> bytes:
        """Up to `count` bytes that `body` begins with, as far as they are at hand: nothing if it
        begins with a chunk or another level."""
        self._is_fetching = False
        try:
            return body.peek(count)
        finally:
            self._is_fetching = True

    @property
    def copied(self) -> int:
        """How many chunks of those that the part in hand copies are passed."""
        return self._number

    @property
    def next_codec(self) -> Codec | None:
        """The codec of the level that begins here, if one does."""
        op = None if self._passed else self._next()
        return op.codec if isinstance(op, Begin) else None

    def enter(self) -> None:
        """Go into the level that begins here."""
        self._step()
        self.level += 1

    def leave(self) -> int:
        """Go to the end of the level on top, and out of it: how many bytes it stood for."""
        size = self._leave()
        self._passed = size
        return size

    def chunks(self, size: int | None = None) -> list[Chunk] | None:
        """The chunks that make the next `size` bytes of the level on top, or all to its end; they
        are passed then, as after `rebuild`. Nothing if there is more to it than whole chunks, or
        not all of it is in this part of the program."""
        found = self._whole_chunks(size)
        total = sum(length for _, length in found)
        if not found or (size is not None and total != size):
            return None
        self._jump(self.level, total)
        self._passed = total
        return found

    def level_chunks(self) -> list[Chunk] | None:
        """The chunks that make all of the level that begins here; it is entered then, and they are
        passed."""
        if not self._whole_chunks(None, 1):
            return None
        self.enter()
        return self.chunks()

    def _whole_chunks(self, size: int | None, ahead: int = 0) -> list[Chunk]:
        """Chunks from here on, `ahead` operations on, up to `size` bytes or up to the level's end;
        none if there is something else."""
        found: list[Chunk] = []
        left = size
        number, copied = self._number, self._copied
        if self._used or self._passed:
            return []
        for op in self._program[self._at + ahead :]:
            if isinstance(op, Copy):
                stop = number + op.count - copied
                while number < stop and left != 0:
                    found.append((self._copies[0][number], self._copies[1][number]))
                    left = None if left is None else max(left - found[-1][1], 0)
                    number += 1
                copied = 0
            elif isinstance(op, End) and size is None:
                return found
            elif not isinstance(op, (Span, Verbatim)):
                break
            if left == 0:
                return found
        return []

    def rebuild(self, size: int | None = None) -> Iterator[bytes]:
        """The next `size` bytes of the level on top, or all to its end, whatever must be made by
        codecs for them. Its source has to skip as many when they all have been given."""
        workers = ThreadPoolExecutor(min(os.cpu_count() or 1, MOST_WORKERS), "rebuild")
        try:
            levels = Levels(self._joiners, workers)
            base, given = self.level, 0
            while size is None or given < size or self.level > base:
                op = self._operation()
                if op is None or (isinstance(op, End) and self.level == base):
                    break
                left = PIECE if size is None or self.level > base else min(size - given, PIECE)
                written = self._run(op, base, levels, left)
                given += written if self.level == base else 0
                yield from levels.ready()
            yield from levels.finish()
        finally:
            workers.shutdown(cancel_futures=True)
        if size is not None and given != size:
            raise FormatError("an archive holds less or more than its headers say")
        self._passed += given

    def _run(self, op: Op, base: int, levels: Levels, left: int) -> int:
        """Run an operation, or up to `left` bytes of it; how many bytes that is on its level."""
        if isinstance(op, (Skeleton, Copy)):
            data = self._read(op, left)
            levels.write(data)
            return len(data)
        taken = self._skeleton.read(skeleton_use(op))
        self._at += 1
        match op:
            case Begin(codec, _):
                levels.begin(codec, taken)
                self.level += 1
            case Span(level, plain, _) if level > base:
                levels.span(level - base, plain, taken)
            case Verbatim(level, _) if level > base:
                levels.verbatim(level - base, taken)
            case End(size):
                levels.end(size)
                self.level -= 1
                return size
        return 0

    def _more(self, level: int, count: int) -> bytes:
        if level != self.level or self._passed:
            return b""
        op = self._next()
        if isinstance(op, Skeleton) or (isinstance(op, Copy) and self._is_fetching):
            return self._read(op, count)
        return b""

    def _jump(self, level: int, count: int) -> int:
        left = count
        while level == self.level and left:
            if self._passed:
                passed = min(left, self._passed)
                self._passed -= passed
                left -= passed
                continue
            op = self._next()
            if isinstance(op, Begin):
                self.enter()
                self.leave()
            elif isinstance(op, (Skeleton, Copy)):
                left -= self._pass(op, left)
            else:
                break
        return count - left

    def _leave(self) -> int:
        depth = self.level
        self._passed = 0
        while (op := self._operation()) is not None:
            self._step()
            self.level += isinstance(op, Begin) - isinstance(op, End)
            if isinstance(op, End) and self.level < depth:
                return op.size
        raise FormatError("a recipe begins a level that it does not end")

    def _operation(self) -> Op | None:
        """The operation in hand; None after the last of the last part."""
        while self._at == len(self._program):
            recipe = next(self._recipes, None)
            if recipe is None:
                return None
            self._program, self._at = recipe.program, 0
            self._skeleton = SkeletonReader(recipe, self._source)
            self._copies = recipe.ids[recipe.skeleton :], recipe.lengths[recipe.skeleton :]
            self._number = 0
        return self._program[self._at]

    def _next(self) -> Op | None:
        """The next operation that is of the level on top."""
        while isinstance(op := self._operation(), (Span, Verbatim)):
            self._step()
        return op

    def _step(self) -> None:
        """Pass over the operation in hand, or what is left of it."""
        op = self._program[self._at]
        if isinstance(op, Copy):
            self._number += op.count - self._copied
            self._copied, self._used, self._chunk = 0, 0, b""
        else:
            self._skeleton.skip(skeleton_use(op) - self._used)
            self._used = 0
        self._at += 1

    def _read(self, op: Skeleton | Copy, count: int) -> bytes:
        """Up to `count` of the bytes that the operation in hand writes."""
        if isinstance(op, Skeleton):
            data = self._skeleton.read(min(count, op.size - self._used))
            self._use_skeleton(op, len(data))
            return data
        if not self._chunk:
            self._chunk = self._source.chunk(self._copies[0][self._number])
            if len(self._chunk) != self._copies[1][self._number]:
                raise FormatError("a recipe has the wrong length for a chunk")
        data = self._chunk[self._used : self._used + count]
        self._use_chunk(op, len(data))
        return data

    def _pass(self, op: Skeleton | Copy, count: int) -> int:
        """Pass over up to `count` of the bytes that the operation in hand writes."""
        if isinstance(op, Skeleton):
            passed = min(count, op.size - self._used)
            self._skeleton.skip(passed)
            self._use_skeleton(op, passed)
        else:
            passed = min(count, self._copies[1][self._number] - self._used)
            self._use_chunk(op, passed)
        return passed

    def _use_skeleton(self, op: Skeleton, count: int) -> None:
        self._used += count
        if self._used == op.size:
            self._used = 0
            self._at += 1

    def _use_chunk(self, op: Copy, count: int) -> None:
        self._used += count
        if self._used == self._copies[1][self._number]:
            self._used, self._chunk = 0, b""
            self._number += 1
            self._copied += 1
            if self._copied == op.count:
                self._copied = 0
                self._at += 1
