"""Content-defined chunking: FastCDC (Xia et al., USENIX ATC 2016) over a stream (docs/format.md,
section 7).

The package `fastcdc` cuts buffers; this file lets it cut streams: it keeps what follows the last
certain cut and puts the next bytes behind it. A cut is certain when the library saw at least
`MAX_SIZE` bytes from the chunk's start, or the end of the stream, so the cuts do not depend on how
the stream was read. `IDENTITY` names everything that the cuts depend on; both ends must agree.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import redirect_stdout

# Without its compiled part the package says so on standard output, where the agent speaks.
with redirect_stdout(io.StringIO()):
    import fastcdc
    from fastcdc.fastcdc_py import fastcdc_py

MIN_SIZE = 16 * 1024
AVERAGE_SIZE = 64 * 1024
MAX_SIZE = 256 * 1024
IDENTITY = "fastcdc-ronomon-16k-64k-256k-v1"


def is_pure_python() -> bool:
    """Whether the package came without its compiled part: some 200 times slower."""
    return fastcdc.fastcdc is fastcdc_py


def cut_whole(data: bytes | memoryview) -> list[int]:
    """The chunk lengths of `data`, taken as a whole stream."""
    if len(data) <= MIN_SIZE:
        return [len(data)] if data else []
    return [cut.length for cut in _cuts(data)]


class Chunker:
    """Cuts one stream, handed in by pieces.

    `feed(data)` gives the chunks that have become certain, `finish()` the rest. The views lie end
    to end from the start of one `bytes`, their `obj`, which lives until they are dropped.
    """

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._size = 0

    def feed(self, data: bytes) -> list[memoryview]:
        """Chunks that are certain now that `data` follows what was fed before."""
        self._pieces.append(data)
        self._size += len(data)
        # Joined only when a chunk comes of it, so that small pieces are not copied each time.
        if self._size < MAX_SIZE:
            return []
        buffer = self._take()
        view = memoryview(buffer)
        chunks = []
        done = 0
        for cut in _cuts(buffer):
            if len(buffer) - cut.offset < MAX_SIZE:
                break
            done = cut.offset + cut.length
            chunks.append(view[cut.offset : done])
        self._pieces, self._size = [buffer[done:]], len(buffer) - done
        return chunks

    def finish(self) -> list[memoryview]:
        """The chunks that were left; the chunker is then ready for another stream."""
        buffer = self._take()
        view = memoryview(buffer)
        chunks = []
        at = 0
        for length in cut_whole(buffer):
            chunks.append(view[at : at + length])
            at += length
        return chunks

    def _take(self) -> bytes:
        buffer = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
        self._pieces, self._size = [], 0
        return buffer


def _cuts(data: bytes | memoryview) -> Iterator[fastcdc.fastcdc_cy.Chunk]:
    cuts: Iterator[fastcdc.fastcdc_cy.Chunk] = fastcdc.fastcdc(
        data, min_size=MIN_SIZE, avg_size=AVERAGE_SIZE, max_size=MAX_SIZE
    )
    return cuts
