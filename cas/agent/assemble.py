"""From a file's bytes to its content: chunks, digests, and the recipes of its parts.

A file's SHA-256 is as much work as all its chunks' together, so it is computed beside them
(`cas/hashing.py`). The digest of a part is that of the whole as long as there is one part only.

Holes are not read. Each run of data between them is a stream of its own for the chunker, so its
chunks do not depend on where it lies. The digest counts holes as the zeros they read as; where
there is too much of them for that, `Assembler(hashed=False)` gives a content marked HOLE_DIGEST:
each recipe's digest is `NO_DIGEST`, and the content's digest is the SHA-256 of its encoded recipes,
one after another.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from cas.chunker import Chunker
from cas.entry import Content
from cas.hashing import digests_of, hasher
from cas.ids import DIGEST_SIZE, EMPTY_DIGEST, Digest
from cas.recipe import PART_CHUNKS, Copy, Hole, Op, Recipe, encode_recipe, recipe_id

NO_DIGEST = Digest(bytes(DIGEST_SIZE))


class Assembler:
    """Makes the content of one file that is handed in from its start: `data` in pieces, `end_run`
    where a run of data ends, `hole` between runs, then `finish`. Each recipe goes to `keep` as
    soon as it is complete, with its id."""

    def __init__(
        self,
        pool: ThreadPoolExecutor,
        keep: Callable[[Digest, bytes], None],
        *,
        hashed: bool = True,
    ) -> None:
        self._hasher = hasher(pool) if hashed else None
        self._recipes_hash = hashlib.sha256()
        self._keep = keep
        self._chunker = Chunker()
        self._size = 0
        self._count = 0
        self._parts: list[Digest] = []
        self._begin_part()

    def _begin_part(self) -> None:
        self._ids: list[Digest] = []
        self._lengths: list[int] = []
        self._program: list[Op] = []
        self._copied = 0  # of the part's chunks, how many the program has copied
        self._part_size = 0

    def data(self, piece: bytes) -> None:
        """The next bytes."""
        self._take(self._chunker.feed(piece))

    def end_run(self) -> None:
        """A hole or the end of the file follows."""
        self._take(self._chunker.finish())

    def hole(self, size: int) -> None:
        """The next `size` bytes are a hole."""
        self._copy()
        self._program.append(Hole(size))
        self._part_size += size
        if self._hasher is not None:
            self._hasher.zeros(size)

    def finish(self) -> Content:
        """The content of all that was handed in."""
        chunks = self._count + len(self._ids)
        size = self._size + self._part_size
        if chunks == 1 and not self._program and not self._parts:
            return Content(size, self._ids[0], 1)
        if self._part_size:
            self._end_part()
        if not self._parts:
            return Content(0, EMPTY_DIGEST, 0)
        digest = self._recipes_hash.digest() if self._hasher is None else self._hasher.digest()
        return Content(size, Digest(digest), chunks, tuple(self._parts))

    def _take(self, chunks: list[memoryview]) -> None:
        if not chunks:
            return
        buffer = chunks[0].obj  # in which they lie end to end, from its start
        assert isinstance(buffer, bytes)
        lengths, start = [len(chunk) for chunk in chunks], 0
        while lengths:
            room = PART_CHUNKS - len(self._ids)
            start += self._add(buffer, lengths[:room], start)
            lengths = lengths[room:]
            if len(self._ids) == PART_CHUNKS:
                self._end_part()

    def _add(self, buffer: bytes, lengths: list[int], start: int) -> int:
        """Take in chunks; returns their size."""
        if self._hasher is None:
            self._ids += digests_of(buffer, lengths, start)
        else:
            self._ids += self._hasher.chunks(buffer, lengths, start)
        self._lengths += lengths
        size = sum(lengths)
        self._part_size += size
        return size

    def _copy(self) -> None:
        """Write down that the chunks since the last hole are copied."""
        if len(self._ids) > self._copied:
            self._program.append(Copy(len(self._ids) - self._copied))
            self._copied = len(self._ids)

    def _end_part(self) -> None:
        if self._program:
            self._copy()
        digest = NO_DIGEST if self._hasher is None else self._hasher.end_part()
        recipe = Recipe(
            self._part_size, digest, tuple(self._ids), tuple(self._lengths), tuple(self._program)
        )
        encoded = encode_recipe(recipe)
        self._recipes_hash.update(encoded)
        self._parts.append(recipe_id(encoded))
        self._keep(self._parts[-1], encoded)
        self._size += self._part_size
        self._count += len(self._ids)
        self._begin_part()
