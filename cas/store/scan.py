"""Reads one frame from front to back, keeping nothing but the segment at hand.

Whoever wants most of a frame in order needs no cache: each segment is decoded into memory that the
one before it has just left. What is out of order is asked of the reader instead, which does keep.
"""

from __future__ import annotations

from collections.abc import Callable

from cas.errors import DamageError, FormatError
from cas.frame import Codec, FrameDecoder
from cas.interfaces import Location, Read, SegmentPlace


class FrameScan:
    """One pass over the frame `frame`, whose segments are at `places`; for one thread at a time.

    `payload` reads and checks a segment's payload, `where` names a place to the user, `elsewhere`
    reads what this pass cannot: plain segments, other frames, and what it has passed already.
    """

    def __init__(
        self,
        frame: int,
        places: dict[int, SegmentPlace],
        decoder: FrameDecoder,
        payload: Callable[[SegmentPlace], bytes],
        where: Callable[[SegmentPlace], str],
        elsewhere: Read,
    ) -> None:
        self._frame = frame
        compressed = [step for step in places.items() if step[1].codec is Codec.ZSTD]
        self._ahead = compressed[::-1]
        self._numbers = {number for number, _ in compressed}
        self.decoder = decoder
        self._payload = payload
        self._where = where
        self._elsewhere = elsewhere
        self._number = -1
        self._plain = memoryview(b"")
        self._broken: DamageError | None = None

    def reaches(self, start: Location) -> bool:
        """Whether it has not passed `start`, and knows its segment."""
        return start.segment in self._numbers and self._number <= start.segment

    def read(self, location: Location) -> memoryview:
        """The bytes at `location`, not hashed. Raises DamageError."""
        number = location.segment
        ours = location.frame == self._frame and number in self._numbers
        if not ours or number < self._number:
            return self._elsewhere(location)
        if number > self._number:
            self._advance(number)
        end = location.offset + location.length
        if end > len(self._plain):
            return self._elsewhere(location)  # which says what is wrong
        return self._plain[location.offset : end]

    def _advance(self, number: int) -> None:
        while self._number < number:
            if self._broken is not None:
                raise DamageError(self._broken.what, where=self._broken.where)
            at, place = self._ahead[-1]
            try:
                plain = self.decoder.segment(self._payload(place), place.plain_size)
            except FormatError as error:
                self._broken = DamageError(error.what, where=self._where(place))
                continue
            except DamageError as error:
                self._broken = error
                continue
            self._ahead.pop()
            self._number, self._plain = at, memoryview(plain)
