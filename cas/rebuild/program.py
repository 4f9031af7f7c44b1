"""Runs the program of an archive: chunks and skeleton become the archive again.

All parts are one program, run in order over one stack of levels (`levels.py`); chunks come in the
program's order, read ahead (`chunks.py`). What a codec does for a span is done by threads of its
own, so the archive is rebuilt by as many cores as there are. Memory is bounded by the limits of
both, whatever a program says: some 200 MiB at most, and a few spans'.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from itertools import islice

from cas.archive import AnyRecipe, ArchiveRecipe
from cas.codec.base import JoinerFactory
from cas.codec.registry import begin_joiner
from cas.errors import FormatError
from cas.interfaces import ContentSource
from cas.program import Begin, End, Op, Skeleton, Span, Verbatim
from cas.rebuild.chunks import in_order
from cas.rebuild.levels import Levels
from cas.recipe import Copy

MOST_WORKERS = 8
SKELETON_PIECE = 2**20


def run_program(
    recipes: Iterable[AnyRecipe], source: ContentSource, joiners: JoinerFactory = begin_joiner
) -> Generator[bytes, None, None]:
    """The archive that `recipes`, its parts, rebuild, in pieces. Every chunk was hashed, but what
    comes out is not the archive before its digest has come out right.

    Raises NotHeldError, DamageError; FormatError (LimitError) where the program is at fault.
    """
    workers = ThreadPoolExecutor(min(os.cpu_count() or 1, MOST_WORKERS), "rebuild")
    readers = ThreadPoolExecutor(1, "read")
    try:
        levels = Levels(joiners, workers)
        for recipe in recipes:
            if not isinstance(recipe, ArchiveRecipe):
                raise FormatError("an archive has a part that is a plain file's")
            yield from _Part(recipe, source, readers).run(levels)
        yield from levels.finish()
    finally:
        readers.shutdown(cancel_futures=True)
        workers.shutdown(cancel_futures=True)


class _Part:
    """Runs one part: what its operations need comes out of two lists of chunks."""

    def __init__(self, recipe: ArchiveRecipe, source: ContentSource, readers: Executor) -> None:
        chunks = list(zip(recipe.ids, recipe.lengths, strict=True))
        self._program = recipe.program
        self._content = in_order(chunks[recipe.skeleton :], source, readers)
        self._skeleton = in_order(chunks[: recipe.skeleton], source, readers)
        self._held = b""  # of the skeleton's chunk that is being used up
        self._at = 0

    def run(self, levels: Levels) -> Iterator[bytes]:
        """Tell `levels` what the program says; gives what comes out meanwhile."""
        try:
            for op in self._program:
                for piece in self._pieces(op):
                    levels.write(piece)
                    if levels.is_due:
                        yield from levels.ready()
                self._operate(op, levels)
                if levels.is_due:
                    yield from levels.ready()
        finally:
            self._content.close()
            self._skeleton.close()

    def _pieces(self, op: Op) -> Iterable[bytes]:
        """What an operation writes, if it does."""
        if isinstance(op, Copy):
            return islice(self._content, op.count)
        if isinstance(op, Skeleton):
            sizes = (min(op.size - at, SKELETON_PIECE) for at in range(0, op.size, SKELETON_PIECE))
            return map(self._use, sizes)
        return ()

    def _operate(self, op: Op, levels: Levels) -> None:
        match op:
            case Begin(codec, params):
                levels.begin(codec, self._use(params))
            case Span(level, plain, side):
                levels.span(level, plain, self._use(side))
            case Verbatim(level, size):
                levels.verbatim(level, self._use(size))
            case End(size):
                levels.end(size)

    def _use(self, size: int) -> bytes:
        """The next `size` bytes of the skeleton."""
        pieces = []
        while size:
            if self._at == len(self._held):
                self._held, self._at = next(self._skeleton), 0
            piece = self._held[self._at : self._at + size]
            self._at += len(piece)
            size -= len(piece)
            pieces.append(piece)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)
