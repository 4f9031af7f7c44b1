"""The levels of an archive's program while it runs: what is written on top comes out below.

Codecs work side by side with the program: what they make is a *piece* that may be done later. So
each level has a queue of what is to be written to it: bytes, and the levels that were opened over
it, whose pieces go in their place. A level that has ended stays in the queue below until its last
piece is there, and meanwhile the program goes on: many small streams, one after another, are
rebuilt side by side just like the spans of a large one.

What a program says may be hostile. It can hold up only so many bytes: too many pieces that are not
done are waited for, and plain bytes without a span, or spans without plain bytes, are an error.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from concurrent.futures import Executor, Future, wait
from dataclasses import dataclass, field
from typing import TypeAlias

from cas.codec.base import Joiner, JoinerFactory, Piece
from cas.errors import FormatError, LimitError
from cas.program import DEPTH_LIMIT, SPAN_LIMIT, Codec

PIECES_AHEAD = 256  # not done yet
PLAIN_AHEAD = 32 * 2**20  # bytes of which they are made, if there is more than one
WORTHWHILE = 2**18  # bytes that were written, from which it is worth looking at what came out
QUEUED_MOST = 32 * 2**20  # bytes that wait in queues for the pieces before them
PLAIN_LIMIT = 64 * 2**20  # bytes at a level that no span has taken
SIDES_LIMIT = 64 * 2**20  # bytes of side information at a level, ahead of its plain bytes
SPANS_LIMIT = 2**16  # of them
# Takes each span's plain bytes together. The others take them as they come, spans or not, and see
# to their memory themselves.
TAKES_WHOLE = (Codec.DEFLATE,)


@dataclass(frozen=True, slots=True)
class _Later:
    """A piece that is not done, made of about so many plain bytes."""

    piece: Future[bytes]
    plain: int


@dataclass(slots=True, eq=False)
class _Level:
    """One level: what is to be written to it, and what came out of its codec. Level 0 has none."""

    joiner: Joiner | None = None
    takes_whole: bool = False
    queue: deque[_Queued] = field(default_factory=deque)
    made: deque[bytes | _Later] = field(default_factory=deque)
    written: int = 0  # plain bytes, to the joiner
    spanned: int = 0  # plain bytes, of all its spans
    ahead: deque[tuple[int, int]] = field(default_factory=deque)  # where a span ends, its side
    ahead_sides: int = 0
    size: int | None = None  # that it must have made at its end, once that is known
    passed: int = 0  # bytes that went on below
    is_over: bool = False

    @property
    def taken(self) -> int:
        """Plain bytes that were written and are in a span."""
        return min(self.written, self.spanned)


_Queued: TypeAlias = bytes | _Level


class Levels:
    """The stack. What the program says is told by `write`, `begin`, `span`, `verbatim`, `end`;
    `ready` gives what has come out of level 0. They raise FormatError, LimitError."""

    def __init__(self, joiners: JoinerFactory, pool: Executor) -> None:
        self._joiners = joiners
        self._pool = pool
        self._root = _Level()
        self._open = [self._root]
        self._queued = self._left = 0  # bytes; those that could not go on when that was tried last
        self._later = self._later_plain = 0

    def write(self, data: bytes) -> None:
        """Write to the level on top."""
        self._open[-1].queue.append(data)
        self._queued += len(data)

    def begin(self, codec: Codec, params: bytes) -> None:
        """Put a codec on top."""
        if len(self._open) > DEPTH_LIMIT:
            raise LimitError(f"a recipe of more than {DEPTH_LIMIT} levels")
        level = _Level(self._joiners(codec, params, self._pool), codec in TAKES_WHOLE)
        self._open[-1].queue.append(level)
        self._open.append(level)

    def span(self, number: int, plain: int, side: bytes) -> None:
        """Let the codec of a level take its next `plain` bytes."""
        level, joiner = self._at(number)
        if level.takes_whole and plain > SPAN_LIMIT:
            raise LimitError(f"a recipe's span of {plain} bytes is over the limit of {SPAN_LIMIT}")
        taken = level.taken
        level.spanned += plain
        self._wait_for_plain(level, side)
        self._made(level, joiner.span(plain, side), taken)

    def verbatim(self, number: int, data: bytes) -> None:
        """After the spans of a level so far, write `data` to the one below it."""
        level, joiner = self._at(number)
        self._wait_for_plain(level, data)
        self._made(level, joiner.verbatim(data), level.taken)

    def end(self, size: int) -> None:
        """Take the codec on top off; it makes `size` bytes."""
        if len(self._open) == 1:
            raise FormatError("a recipe ends a level that it did not begin")
        self._open.pop().size = size

    @property
    def is_due(self) -> bool:
        """Whether `ready` should be called."""
        return self._queued - self._left >= WORTHWHILE or self._is_behind()

    def ready(self) -> list[bytes]:
        """What has come out by now, in order. Waits while too much is not done."""
        self._advance(self._root)
        while self._is_behind() and (oldest := self._oldest()) is not None:
            wait([oldest])
            self._advance(self._root)
        self._left = self._queued
        return self._come_out()

    def finish(self) -> Iterable[bytes]:
        """No more operations come: the rest, as it is done."""
        if len(self._open) > 1:
            raise FormatError("a recipe begins a level that it does not end")
        self._advance(self._root)
        while (oldest := self._oldest()) is not None:
            yield from self._come_out()
            wait([oldest])
            self._advance(self._root)
        yield from self._come_out()

    def _at(self, number: int) -> tuple[_Level, Joiner]:
        level = self._open[number] if 0 < number < len(self._open) else self._root
        if level.joiner is None:
            raise FormatError(f"a recipe speaks of level {number}, which is not there")
        return level, level.joiner

    def _wait_for_plain(self, level: _Level, side: bytes) -> None:
        """Count what may have to wait until plain bytes come."""
        if level.spanned > level.written:
            level.ahead.append((level.spanned, len(side)))
            level.ahead_sides += len(side)
            if level.ahead_sides > SIDES_LIMIT or len(level.ahead) > SPANS_LIMIT:
                raise LimitError("a recipe has too many spans before their plain bytes")

    def _take(self, level: _Level, data: bytes) -> None:
        """Let a level take what is next in its queue."""
        if level.joiner is None:
            level.made.append(data)
            return
        taken = level.taken
        level.written += len(data)
        while level.ahead and level.ahead[0][0] <= level.written:
            level.ahead_sides -= level.ahead.popleft()[1]
        if level.takes_whole and level.written - level.spanned > PLAIN_LIMIT:
            raise LimitError("a recipe has too many plain bytes before their spans")
        self._made(level, level.joiner.write(data), taken)

    def _made(self, level: _Level, pieces: Iterable[Piece], taken: int) -> None:
        """Keep what a codec gave, which had taken `taken` plain bytes before."""
        for piece in pieces:
            if isinstance(piece, bytes):
                level.made.append(piece)
                self._queued += len(piece)
                continue
            level.made.append(_Later(piece, level.taken - taken))
            self._later += 1
            self._later_plain += level.taken - taken
            taken = level.taken

    def _advance(self, level: _Level) -> None:
        """Let `level` take all of its queue that is done, and end it if that is all."""
        while level.queue:
            head = level.queue[0]
            if isinstance(head, _Level):
                if not self._drain(head, level):
                    return
                level.queue.popleft()
            else:
                level.queue.popleft()
                self._queued -= len(head)
                self._take(level, head)
        if level.size is not None and not level.is_over and level.joiner is not None:
            level.is_over = True
            self._made(level, level.joiner.end(), level.taken)

    def _drain(self, level: _Level, below: _Level) -> bool:
        """Let `below` take what `level` has made, as far as it is done; whether that was all."""
        self._advance(level)
        while level.made:
            data = self._done(level.made[0])
            if data is None:
                return False
            level.made.popleft()
            level.passed += len(data)
            self._take(below, data)
        if level.is_over and level.passed != level.size:
            raise FormatError("a recipe's stream does not come out at its compressed size")
        return level.is_over

    def _done(self, piece: bytes | _Later) -> bytes | None:
        if isinstance(piece, bytes):
            self._queued -= len(piece)
            return piece
        if not piece.piece.done():
            return None
        self._later -= 1
        self._later_plain -= piece.plain
        return piece.piece.result()

    def _is_behind(self) -> bool:
        return (
            self._later > PIECES_AHEAD
            or (self._later > 1 and self._later_plain > PLAIN_AHEAD)
            or self._queued > QUEUED_MOST
        )

    def _oldest(self) -> Future[bytes] | None:
        """The piece that all others wait for: the first that is not done on the way up from
        level 0, where everything that is done has gone as far as it can."""
        level = self._root
        while level.queue and isinstance(head := level.queue[0], _Level):
            if head.made and isinstance(first := head.made[0], _Later):
                return first.piece
            level = head
        return None

    def _come_out(self) -> list[bytes]:
        out = [piece for piece in self._root.made if isinstance(piece, bytes)]
        self._root.made.clear()
        return out
