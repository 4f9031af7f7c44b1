"""SHA-256 of many chunks, and of what they are parts of, in one go.

A processor with SHA-NI hashes two messages in the time of one (`cas/native/src/sha.rs`), so a file
costs nothing beside its chunks, and chunks cost half when there are several. Without it hashlib is
faster than our own code: its AVX2, or the SHA2 extension of an ARM. Then a file is hashed in a
second thread, one buffer behind (hashlib lets go of the GIL).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import cast

from cas._native import Sha256, sha256_pairs, sha256s
from cas.ids import Digest, digest_of

IN_PAIRS = sha256_pairs()

_ZEROS = bytes(2**20)
_WORTH_A_THREAD = 512 * 1024  # bytes; below that, handing over costs more than it gains


def digests_of(data: bytes, lengths: Sequence[int], start: int = 0) -> list[Digest]:
    """The digests of the parts of `data` with these lengths, end to end from `start`."""
    if IN_PAIRS and len(lengths) > 1:
        return cast("list[Digest]", sha256s(data, start, lengths, ()))
    view = memoryview(data)
    digests = []
    for length in lengths:
        digests.append(digest_of(view[start : start + length]))
        start += length
    return digests


class PairHasher:
    """SHA-256 of a file and of the part of it in hand, as its chunks come."""

    def __init__(self) -> None:
        self._whole = Sha256()
        self._part = self._whole

    def chunks(self, data: bytes, lengths: Sequence[int], start: int) -> list[Digest]:
        """Count in the chunks of `data` with these lengths, end to end from `start`; their ids."""
        running = [self._whole] if self._part is self._whole else [self._whole, self._part]
        return cast("list[Digest]", sha256s(data, start, lengths, running))

    def zeros(self, count: int) -> None:
        """Count `count` zero bytes in."""
        for at in range(0, count, len(_ZEROS)):
            self.chunks(_ZEROS, [min(len(_ZEROS), count - at)], 0)

    def end_part(self) -> Digest:
        """The digest of the part, which ends here."""
        digest = Digest(self._part.digest())
        self._part = Sha256()
        return digest

    def digest(self) -> Digest:
        """The digest of all."""
        return Digest(self._whole.digest())


class ThreadHasher:
    """As `PairHasher`, by hashlib in two threads."""

    def __init__(self, pool: ThreadPoolExecutor) -> None:
        self._pool = pool
        self._whole = hashlib.sha256()
        self._part = self._whole
        self._running: Future[None] | None = None

    def chunks(self, data: bytes, lengths: Sequence[int], start: int) -> list[Digest]:
        """See `PairHasher.chunks`."""
        self._wait()
        size = sum(lengths)
        piece = memoryview(data)[start : start + size]
        if size >= _WORTH_A_THREAD:
            self._running = self._pool.submit(self._update, piece)
        else:
            self._update(piece)
        return digests_of(data, lengths, start)

    def zeros(self, count: int) -> None:
        """See `PairHasher.zeros`."""
        self._wait()
        view = memoryview(_ZEROS)
        for at in range(0, count, len(_ZEROS)):
            self._update(view[: count - at])

    def end_part(self) -> Digest:
        """See `PairHasher.end_part`."""
        self._wait()
        digest = Digest(self._part.digest())
        self._part = hashlib.sha256()
        return digest

    def digest(self) -> Digest:
        """See `PairHasher.digest`."""
        self._wait()
        return Digest(self._whole.digest())

    def _update(self, piece: memoryview) -> None:
        self._whole.update(piece)
        if self._part is not self._whole:
            self._part.update(piece)

    def _wait(self) -> None:
        running, self._running = self._running, None
        if running is not None:
            running.result()


def hasher(pool: ThreadPoolExecutor) -> PairHasher | ThreadHasher:
    """The faster of the two here; `pool` is a thread for the one that needs it."""
    return PairHasher() if IN_PAIRS else ThreadHasher(pool)
