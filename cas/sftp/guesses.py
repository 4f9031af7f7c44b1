"""Contents for a scan that only counts: what is not known would have to be fetched, whole.

Nothing is fetched for it. Such a content is made up: chunks that nobody has, of the file's size
together. It must never get further than into the counts of a dry run: such a scan is not kept
(`only_counts` in the wiring).
"""

from __future__ import annotations

import errno
from collections.abc import Callable

from cas.agent.spool import Spool
from cas.chunker import MAX_SIZE
from cas.entry import Content
from cas.ids import Digest, digest_of
from cas.recipe import LENGTH_LIMIT, PART_CHUNKS, Recipe, encode_recipe, recipe_id
from cas.sftp.known import Got, Wanted

CHUNKS_LIMIT = 2**20  # of a file of 16 TiB


class Guesses:
    """Has the methods of `Contents`."""

    def __init__(self, spool: Spool) -> None:
        self._spool = spool

    def begin(self, _file: Wanted) -> bool:
        """Nothing is fetched."""
        return True

    def finish(self, file: Wanted, _meanwhile: Callable[[], None]) -> Got:
        """The content that is known, or one that is made up. Raises OSError for a size that cannot
        be counted."""
        return Got(file.content or self._made_up(file), file.seen)

    def told(self) -> None:
        """Nothing is kept."""

    def end(self) -> None:
        """Nothing is kept."""

    def close(self) -> None:
        """Nothing is under way."""

    def _made_up(self, file: Wanted) -> Content:
        size = file.seen.size
        name = file.sum or digest_of(b"%b\0%d" % (file.path, file.seen.mtime))
        seed = digest_of(b"nobody has this" + name)
        if size <= MAX_SIZE:
            return Content(size, seed, 1)
        count = -(-size // LENGTH_LIMIT)
        if count > CHUNKS_LIMIT:
            raise OSError(errno.EFBIG, "too large to be counted")
        ids = [Digest(digest_of(seed + b"%d" % number)) for number in range(count)]
        lengths = [min(LENGTH_LIMIT, size - number * LENGTH_LIMIT) for number in range(count)]
        parts = [
            self._part(ids[at : at + PART_CHUNKS], lengths[at : at + PART_CHUNKS], seed)
            for at in range(0, count, PART_CHUNKS)
        ]
        return Content(size, seed, count, tuple(parts))

    def _part(self, ids: list[Digest], lengths: list[int], seed: Digest) -> Digest:
        encoded = encode_recipe(Recipe(sum(lengths), seed, tuple(ids), tuple(lengths)))
        id_ = recipe_id(encoded)
        self._spool.put(id_, encoded)
        return id_
