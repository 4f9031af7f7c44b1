"""Frames opened for reading: decoded segments kept while they are likely to be wanted again.

A compressed segment can be decoded only after those before it in its frame. So a frame that is
being read keeps its decoder, standing after some segment: reading on costs one step, reading
backwards begins at the frame's start. Decoded segments are kept apart from decoders, so that chunks
used again and again stay cheap when their frames are long closed. Both together are held to a
bound; a decoder counts with its window, as much of it as has been filled.

One lock guards the tables and is held for moments. Each frame has its own, held while decoding, so
that two threads which want one segment decode it once, and two frames are decoded at a time.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

from cas.errors import DamageError, FormatError
from cas.frame import FRAME_LIMIT, FrameDecoder
from cas.interfaces import SegmentPlace

Step = tuple[int, SegmentPlace]  # a segment's number in its frame, and where its payload is


@dataclass(slots=True)
class _Decoding:
    """A frame whose first `done` compressed segments, `plain` bytes, its decoder has passed.

    A segment that does not decode takes all that follow with it: `broken` says how many go before
    it, and why, so that the frame is not decoded up to there once for each of its chunks.
    """

    lock: threading.Lock = field(default_factory=threading.Lock)
    decoder: FrameDecoder | None = None
    done: int = 0
    plain: int = 0
    broken: tuple[int, str, str] | None = None

    def begin(self, decoder: FrameDecoder) -> FrameDecoder:
        self.decoder, self.done, self.plain = decoder, 0, 0
        return decoder


class Frames:
    """Gives the plain bytes of compressed segments; safe to use from several threads.

    `payload` reads and checks the payload of a place, `where` names the place to the user;
    `memory` bounds what is kept, in bytes. What is in use at the moment may exceed it: for each
    thread at most a window and a segment.
    """

    def __init__(
        self,
        payload: Callable[[SegmentPlace], bytes],
        where: Callable[[SegmentPlace], str],
        memory: int,
    ) -> None:
        self._payload = payload
        self._where = where
        self._memory = memory
        self._lock = threading.Lock()
        self._segments: OrderedDict[tuple[int, int], bytes] = OrderedDict()
        self._segment_bytes = 0
        self._decoding: OrderedDict[int, _Decoding] = OrderedDict()
        self._spare: FrameDecoder | None = None  # done with its frame; its window is used again

    def get(self, frame: int, number: int) -> bytes | None:
        """The segment if it is kept already."""
        with self._lock:
            plain = self._segments.get((frame, number))
            if plain is not None:
                self._segments.move_to_end((frame, number))
            return plain

    def decode(self, frame: int, steps: list[Step], *, complete: bool) -> bytes:
        """The last segment of `steps`, which are the frame's compressed segments up to it, from
        the first. `complete`: none follows, so that the decoder need not be kept.

        Raises DamageError, from `payload` or because a segment does not decode.
        """
        decoding = self._frame(frame)
        with decoding.lock:
            plain = self.get(frame, steps[-1][0])  # another thread may have been here meanwhile
            if plain is None:
                plain = self._advance(frame, decoding, steps)
            if complete:
                self._end(frame, decoding)
        return plain

    def clear(self) -> None:
        """Drop all that is kept."""
        with self._lock:
            self._segments.clear()
            self._segment_bytes = 0
            self._decoding.clear()
            self._spare = None

    def _frame(self, frame: int) -> _Decoding:
        with self._lock:
            decoding = self._decoding.setdefault(frame, _Decoding())
            self._decoding.move_to_end(frame)
            return decoding

    def _advance(self, frame: int, decoding: _Decoding, steps: list[Step]) -> bytes:
        if decoding.broken is not None and len(steps) > decoding.broken[0]:
            _, what, where = decoding.broken
            raise DamageError(what, where=where)
        decoder = decoding.decoder
        if decoder is None or len(steps) <= decoding.done:
            decoder = decoding.begin(FrameDecoder(decoder or self._take_spare()))
        plain = b""
        for number, place in steps[decoding.done :]:
            plain = self._step(decoding, decoder, place)
            self._keep(frame, number, plain)
        return plain

    def _step(self, decoding: _Decoding, decoder: FrameDecoder, place: SegmentPlace) -> bytes:
        payload = self._payload(place)
        try:
            plain = decoder.segment(payload, place.plain_size)
        except FormatError as error:
            decoding.decoder = None
            decoding.broken = (decoding.done, error.what, self._where(place))
            raise DamageError(error.what, where=self._where(place)) from error
        decoding.done += 1
        decoding.plain += len(plain)
        return plain

    def _keep(self, frame: int, number: int, plain: bytes) -> None:
        with self._lock:
            old = self._segments.pop((frame, number), b"")
            self._segments[frame, number] = plain
            self._segment_bytes += len(plain) - len(old)
            self._trim()

    def _end(self, frame: int, decoding: _Decoding) -> None:
        with self._lock:
            self._spare = decoding.decoder or self._spare
            decoding.decoder = None
            if decoding.broken is None:
                self._decoding.pop(frame, None)

    def _take_spare(self) -> FrameDecoder | None:
        with self._lock:
            spare, self._spare = self._spare, None
            return spare

    def _trim(self) -> None:
        """Keep to the bound: segments give way first, down to a third of it, then decoders."""
        while self._segment_bytes + self._windows() > self._memory:
            if len(self._segments) > 1 and self._segment_bytes > self._memory // 3:
                self._drop_segment()
            elif self._spare is not None:
                self._spare = None
            elif len(self._decoding) > 1:
                self._decoding.popitem(last=False)
            elif len(self._segments) > 1:
                self._drop_segment()
            else:
                return

    def _drop_segment(self) -> None:
        _, plain = self._segments.popitem(last=False)
        self._segment_bytes -= len(plain)

    def _windows(self) -> int:
        spare = 0 if self._spare is None else FRAME_LIMIT
        using = (one.plain for one in self._decoding.values() if one.decoder is not None)
        return spare + sum(min(plain, FRAME_LIMIT) for plain in using)
