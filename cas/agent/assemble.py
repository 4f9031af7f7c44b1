"""From a file's bytes to its content: chunks, digests, and the recipes of its parts.

A file's SHA-256 is as much work as all its chunks' together, so it is computed in a second thread,
one buffer behind (hashlib lets go of the GIL). The digest of a part is that of the whole as long
as there is one part only.

Holes are not read. Each run of data between them is a stream of its own for the chunker, so its
chunks do not depend on where it lies. The digest counts holes as the zeros they read as; where
there is too much of them for that, `Assembler(hashed=False)` gives a content marked HOLE_DIGEST:
each recipe's digest is `NO_DIGEST`, and the content's digest is the SHA-256 of its encoded recipes,
one after another.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

from cas.chunker import Chunker
from cas.entry import Content
from cas.ids import DIGEST_SIZE, EMPTY_DIGEST, Digest, digest_of
from cas.recipe import PART_CHUNKS, Copy, Hole, Op, Recipe, encode_recipe, recipe_id

NO_DIGEST = Digest(bytes(DIGEST_SIZE))

_ZEROS = bytes(2**20)
_WORTH_A_THREAD = 512 * 1024  # bytes; below that, handing over costs more than it gains


class Hasher:
    """SHA-256 of a file and of the part in hand, of what is handed in by `update` and `zeros`.

    The views given to `update` must stay as they are until the next call of anything here.
    """

    def __init__(self, pool: ThreadPoolExecutor) -> None:
        self._pool = pool
        self._whole = hashlib.sha256()
        self._part = self._whole
        self._running: Future[None] | None = None

    def update(self, data: Sequence[memoryview]) -> None:
        """Count `data` in; in the other thread when it is much."""
        self._wait()
        if sum(map(len, data)) >= _WORTH_A_THREAD:
            self._running = self._pool.submit(self._update, data)
        else:
            self._update(data)

    def zeros(self, count: int) -> None:
        """Count `count` zero bytes in."""
        self._wait()
        view = memoryview(_ZEROS)
        for at in range(0, count, len(_ZEROS)):
            self._update([view[: count - at]])

    def end_part(self) -> Digest:
        """The digest of the part, which ends here."""
        self._wait()
        digest = Digest(self._part.digest())
        self._part = hashlib.sha256()
        return digest

    def digest(self) -> Digest:
        """The digest of all."""
        self._wait()
        return Digest(self._whole.digest())

    def _update(self, data: Sequence[memoryview]) -> None:
        for piece in data:
            self._whole.update(piece)
            if self._part is not self._whole:
                self._part.update(piece)

    def _wait(self) -> None:
        running, self._running = self._running, None
        if running is not None:
            running.result()


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
        self._hasher = Hasher(pool) if hashed else None
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
        while chunks:
            room = PART_CHUNKS - len(self._ids)
            self._add(chunks[:room])
            chunks = chunks[room:]
            if len(self._ids) == PART_CHUNKS:
                self._end_part()

    def _add(self, chunks: list[memoryview]) -> None:
        if self._hasher is not None:
            self._hasher.update(chunks)
        lengths = [len(chunk) for chunk in chunks]
        self._ids += map(digest_of, chunks)
        self._lengths += lengths
        self._part_size += sum(lengths)

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
