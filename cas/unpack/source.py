"""A byte stream as containers read it: forward, once, with a look ahead.

A file, the plain bytes of a codec, and a member of either are all sources, so a tar in a gzip in a
zip is read by the same code as a tar. What can also be read at any place says so by `pread`, what
can be passed over without reading it by `jump`.
"""

from __future__ import annotations

from collections.abc import Callable

PIECE = 2**20  # bytes asked for at a time, where there is no reason for another number
PEEK_LIMIT = 2**20

Pread = Callable[[int, int], bytes]  # up to this many bytes, from that offset of the source
Jump = Callable[[int], int]  # passes over up to this many bytes; how many there were


class Source:
    """The bytes that `more` gives: called with how many are welcome, it returns one at least, and
    nothing at the end. `size` is how many there are in all, where that is known."""

    def __init__(
        self,
        more: Callable[[int], bytes],
        size: int | None = None,
        pread: Pread | None = None,
        jump: Jump | None = None,
    ) -> None:
        self._more = more
        self._jump = jump
        self._held = b""
        self._at = 0  # of what is held, this much is read
        self.size = size
        self.pread = pread
        self.position = 0

    def peek(self, count: int) -> bytes:
        """The next `count` bytes (at most `PEEK_LIMIT`), fewer at the end; they stay unread."""
        while len(self._held) - self._at < count:
            more = self._more(max(count, PIECE))
            if not more:
                break
            self._held = self._held[self._at :] + more
            self._at = 0
        return self._held[self._at : self._at + count]

    def read(self, count: int = PIECE) -> bytes:
        """Up to `count` bytes, whatever is had easily; nothing at the end only."""
        if self._at >= len(self._held):
            # Small reads are served from a piece, which costs one call below for many.
            self._held, self._at = self._more(max(count, PIECE)), 0
        at = self._at
        data = self._held[at : at + count]
        if at + len(data) == len(self._held):
            self._held, self._at = b"", 0
        else:
            self._at = at + len(data)
        self.position += len(data)
        return data

    def exactly(self, count: int) -> bytes:
        """The next `count` bytes, fewer at the end only. The caller has set a limit to `count`."""
        pieces = []
        while count and (data := self.read(count)):
            pieces.append(data)
            count -= len(data)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def skip(self, count: int | None = None) -> int:
        """Pass over `count` bytes, or all that is left; how many there were."""
        left = 2**63 if count is None else count
        wanted = left
        while self._at < len(self._held) and left:
            left -= len(self.read(left))
        if left and self._jump is not None:
            passed = self._jump(left)
            self.position += passed
            left -= passed
        while left and (data := self.read(min(left, PIECE))):
            left -= len(data)
        return wanted - left

    def unread(self, data: bytes) -> None:
        """Put `data`, the last that was read, back before what is unread."""
        if data:
            self._held = data + self._held[self._at :]
            self._at = 0
            self.position -= len(data)

    def close(self) -> None:
        """Nothing more is read of it: let go of what gave its bytes, at once. Whoever gives them
        often holds the source, and such a circle stays in memory until the interpreter looks for
        circles, which it does rarely: an image has thousands of small streams."""
        self._more, self._jump, self.pread = _nothing, None, None
        self._held, self._at = b"", 0


def _nothing(_welcome: int) -> bytes:
    return b""


def member(of: Source, size: int) -> Source:
    """The next `size` bytes of `of` (fewer, where it ends before). They are read through it: it
    stands after them when the member has been read to its end."""
    left = size

    def more(count: int) -> bytes:
        nonlocal left
        data = of.read(min(count, left)) if left else b""
        left -= len(data)
        return data

    def jump(count: int) -> int:
        nonlocal left
        passed = of.skip(min(count, left))
        left -= passed
        return passed

    whole, start = of.pread, of.position
    if whole is None:
        return Source(more, size, None, jump)

    def pread(count: int, offset: int) -> bytes:
        return whole(min(count, max(size - offset, 0)), start + offset)

    return Source(more, size, pread, jump)
