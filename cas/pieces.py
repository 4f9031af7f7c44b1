"""Puts together what came in pieces: segments, and messages that travel as segments of frame 0.

Pieces come over any lane, in any order, and more than once: what was sent over a lane that seemed
lost goes out again over another, and may then come over both. What has been whole once is known by
its number, so nothing is put together, or counted as new, a second time.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from cas.errors import LimitError, PeerError
from cas.messages import Piece

ASSEMBLING_LIMIT = 256 * 2**20  # bytes of what is not whole yet
PARTIAL_LIMIT = 1024  # how many are not whole yet
PIECES_LIMIT = 2**18  # of all of them: each takes some memory, however small it is
SPARSE_LIMIT = 2**16  # numbers of a frame that came whole before a lower one


class Numbers:
    """A set of numbers that fills up from 0: what is below `low` is in it."""

    __slots__ = ("_above", "low")

    def __init__(self) -> None:
        self.low = 0
        self._above: set[int] = set()

    def __contains__(self, number: int) -> bool:
        return number < self.low or number in self._above

    def add(self, number: int) -> None:
        """Put a number in; raises LimitError when too many lower ones are missing."""
        self._above.add(number)
        while self.low in self._above:
            self._above.remove(self.low)
            self.low += 1
        if len(self._above) > SPARSE_LIMIT:
            raise LimitError("the far end numbers what it sends with too many gaps")


@dataclass(slots=True)
class _Partial:
    total: int
    pieces: dict[int, bytes] = field(default_factory=dict)  # by offset
    have: int = 0

    def whole(self) -> bytes:
        at = 0
        for offset in sorted(self.pieces):
            if offset != at:
                raise PeerError("the pieces of a segment overlap")
            at += len(self.pieces[offset])
        return b"".join([self.pieces[offset] for offset in sorted(self.pieces)])


class Assembler:
    """Puts together what one far end sends, as long as it lives. `again` counts the bytes of pieces
    that came although they had come before."""

    def __init__(self, size_limit: int = ASSEMBLING_LIMIT) -> None:
        self._size_limit = size_limit
        self._partial: dict[tuple[int, int], _Partial] = {}
        self._size = 0
        self._pieces = 0
        self._whole: dict[int, Numbers] = {}  # by frame
        self.again = 0

    def add(self, piece: Piece) -> bytes | None:
        """Take a piece; all the bytes when it was the last one needed. Raises PeerError,
        LimitError."""
        key = (piece.frame, piece.segment)
        partial = self._partial.get(key)
        if partial is None:
            if piece.segment in self._whole.setdefault(piece.frame, Numbers()):
                self.again += len(piece.data)
                return None
            partial = self._begin(key, piece.total)
        if piece.total != partial.total:
            raise PeerError("two pieces of one segment differ in its size")
        if piece.offset in partial.pieces:
            self.again += len(piece.data)
            return None
        if self._pieces >= PIECES_LIMIT:
            raise LimitError("the far end sent too many pieces of what is not whole")
        self._pieces += 1
        partial.pieces[piece.offset] = piece.data
        partial.have += len(piece.data)
        if partial.have < partial.total:
            return None
        del self._partial[key]
        self._size -= piece.total
        self._pieces -= len(partial.pieces)
        self._whole[piece.frame].add(piece.segment)
        return partial.whole()

    def _begin(self, key: tuple[int, int], total: int) -> _Partial:
        self._size += total
        if self._size > self._size_limit or len(self._partial) >= PARTIAL_LIMIT:
            raise LimitError("the far end began too many segments at once")
        partial = self._partial[key] = _Partial(total)
        return partial
