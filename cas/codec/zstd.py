"""zstd by replay (RFC 8878). A file is frames, one after another; each is a span, and skippable
frames lie between them as they are.

A frame's header tells its size and window, not its level, and what the encoder writes for a level
differs from version to version. The levels of libzstd 1.5.7 are tried on the first bytes, made in
jobs, as the command does, and in one go, as libraries do. What another version wrote stays as it
is, and so does a frame whose header says something else than the first one's.

Parameters, 14 bytes: version 1, the level, 1 for `--long`, 1 for jobs, 1 for a checksum, 1 for a
stated size (0 otherwise), and that size, 8 bytes little-endian.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace

import zstandard

from cas._native import Replay
from cas.codec.base import Event, SpanEvent, VerbatimEvent
from cas.codec.replay import PIECE, Comparison, Patience, ReplayJoiner, StreamSplitter
from cas.errors import FormatError
from cas.program import Codec
from cas.recipe import SIZE_LIMIT

VERSION = 1
WINDOW_LIMIT = 2**25
BITE = 1024  # bytes: what a decoder is given at once can become 32 MiB at most
COST_NS = 400  # of a processor's time for a plain byte, at the highest level that is tried
LEVELS = (3, 1, 9, 6, 2, 4, 5, 7, 8, 10, 11, 12, 13, 15, 19, 14, 16, 17, 18)

_MAGIC = b"\x28\xb5\x2f\xfd"
_SKIPPABLE = b"\x2a\x4d\x18"  # after a first byte 0x50 to 0x5f
_HEAD = 18  # bytes of magic and the longest header
_PARAMS_SIZE = 14


@dataclass(frozen=True, slots=True)
class Settings:
    """What an encoder was told; `size` is what the frame's header states."""

    level: int
    long: bool
    jobs: bool
    checksum: bool
    size: int | None

    def encoder(self) -> Replay:
        """An encoder that has been told the same."""
        return Replay.zstd(self.level, 0, self.long, self.jobs, self.checksum, self.size)

    def params(self) -> bytes:
        """The encoded form."""
        flags = [VERSION, self.level, self.long, self.jobs, self.checksum, self.size is not None]
        return bytes(flags) + (self.size or 0).to_bytes(8, "little")


def decode_params(params: bytes) -> Settings:
    """The settings in `params`; raises FormatError."""
    if len(params) == _PARAMS_SIZE and params[0] == VERSION and max(params[2:6]) <= 1:
        size = int.from_bytes(params[6:], "little")
        if params[1] in LEVELS and size <= (SIZE_LIMIT if params[5] else 0):
            long, jobs, checksum, is_sized = map(bool, params[2:6])
            return Settings(params[1], long, jobs, checksum, size if is_sized else None)
    raise FormatError("unknown parameters of zstd", advice="use a newer cas")


def joiner(params: bytes, _pool: Executor) -> ReplayJoiner:
    """What undoes a `ZstdSplitter`. Raises FormatError for parameters that mean nothing."""
    return ReplayJoiner(decode_params(params).encoder)


def splitter(head: bytes, budget: Patience) -> ZstdSplitter | None:
    """A splitter for the frame that begins with `head` (some hundred KiB are best), or None if it
    is none, or no known settings write it."""
    known = _known(head)
    if known is None or budget.patience_ns < COST_NS:
        return None
    for level in LEVELS:
        for jobs in (True, False):
            for long in (False, True) if known.window >= 2**27 else (False,):
                settings = replace(known.settings, level=level, jobs=jobs, long=long)
                if _fits(settings, head):
                    return ZstdSplitter(settings)
    return None


@dataclass(frozen=True, slots=True)
class _Known:
    settings: Settings  # as far as the header tells them
    window: int


def _known(head: bytes) -> _Known | None:
    """What a frame's header says; nothing where there is none that can be taken apart."""
    if head[:4] != _MAGIC or len(head) < _HEAD:
        return None
    try:
        found = zstandard.get_frame_parameters(head)
    except zstandard.ZstdError:
        return None
    if found.dict_id or found.window_size > WINDOW_LIMIT:
        return None
    unknown = (zstandard.CONTENTSIZE_UNKNOWN, zstandard.CONTENTSIZE_ERROR)
    size = None if found.content_size in unknown else found.content_size
    return _Known(Settings(3, False, True, found.has_checksum, size), found.window_size)


class _Decoder:
    """A `cas.codec.replay.Decoder` for one frame."""

    def __init__(self) -> None:
        self._stream = zstandard.ZstdDecompressor(max_window_size=WINDOW_LIMIT).decompressobj()
        self._waiting = b""

    @property
    def eof(self) -> bool:
        """Whether the frame's end was seen."""
        return self._stream.eof

    @property
    def unused_data(self) -> bytes:
        """What lies after it."""
        return self._stream.unused_data + self._waiting

    def decompress(self, data: bytes, max_length: int = -1, /) -> bytes:
        """The plain bytes: `max_length` of them and what one bite more gives, where there are."""
        waiting = self._waiting + data
        pieces: list[bytes] = []
        at = size = 0
        while at < len(waiting) and not self._stream.eof and not size >= max_length >= 0:
            pieces.append(self._stream.decompress(waiting[at : at + BITE]))
            at += BITE
            size += len(pieces[-1])
        self._waiting = waiting[at:]
        return b"".join(pieces)


def _fits(settings: Settings, head: bytes) -> bool:
    """Whether an encoder of these settings writes what `head` is or begins with."""
    decoder = _Decoder()
    comparison = Comparison(settings.encoder())
    comparison.stream(head)
    data = head
    try:
        while not comparison.parted and (plain := decoder.decompress(data, PIECE)):
            comparison.write(plain)
            data = b""
    except zstandard.ZstdError:
        return False
    if decoder.eof:
        comparison.unstream(len(decoder.unused_data))
        return comparison.finish()
    return not comparison.parted and comparison.right > _HEAD


class ZstdSplitter:
    """A `Splitter` for frames of the same settings, and skippable ones between them."""

    codec = Codec.ZSTD

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.params = settings.params()
        self._frame: StreamSplitter | None = None
        self._held = b""  # fed, and in no event yet
        self._covered = 0
        self._is_last = False  # nothing follows
        self._skip = 0  # bytes of a skippable frame to come
        self.failed = ""

    @property
    def ended(self) -> bool:
        """See `Splitter.ended`. Known only when what follows, or that nothing does, is known."""
        is_between = self._frame is None and not self._skip and self._covered > 0
        return is_between and (self._is_last or len(self._held) >= _HEAD)

    @property
    def unused(self) -> bytes:
        """See `Splitter.unused`."""
        return self._held

    @property
    def rest(self) -> bytes:
        """See `Splitter.rest`."""
        return (self._frame.rest if self._frame else b"") + self._held

    def feed(self, data: bytes) -> Sequence[Event]:
        """See `Splitter.feed`."""
        self._held += data
        events: list[Event] = []
        while self._held and not self.failed and self._step(events):
            pass
        return events

    def finish(self) -> Sequence[Event]:
        """See `Splitter.finish`."""
        self._is_last = True
        events: list[Event] = []
        if self._frame is not None and not self.failed:
            events += map(self._moved, self._frame.finish())
            self.failed = self._frame.failed
        elif not self.failed and self._held[:4] == _MAGIC:
            self._begin(events)  # a frame shorter than the longest header
        return events

    def _step(self, events: list[Event]) -> bool:
        """Take in a frame's bytes, or what is between two; false when more must be fed first, or
        nothing that follows is a frame."""
        if self._frame is not None:
            self._in_frame(events)
            return True
        if self._skip:
            return self._pass(events)
        if len(self._held) < _HEAD:
            return False
        if self._held[1:4] == _SKIPPABLE and self._held[0] >> 4 == 5:
            self._skip = 8 + int.from_bytes(self._held[4:8], "little")
            return True
        return self._begin(events)

    def _begin(self, events: list[Event]) -> bool:
        known = _known(self._held.ljust(_HEAD, b"\0"))
        told = self._settings
        if known is None or (known.settings.checksum, known.settings.size) != (
            told.checksum,
            told.size,
        ):
            return False
        self._frame = StreamSplitter(_Decoder(), told.encoder(), zstandard.ZstdError)
        if self._is_last:
            self._in_frame(events)
        return True

    def _pass(self, events: list[Event]) -> bool:
        count = min(self._skip, len(self._held))
        self._covered += count
        self._skip -= count
        events.append(VerbatimEvent(self._held[:count], self._covered))
        self._held = self._held[count:]
        return True

    def _in_frame(self, events: list[Event]) -> None:
        frame = self._frame
        assert frame is not None  # whoever calls has looked
        data, self._held = self._held, b""
        events += map(self._moved, frame.feed(data))
        self.failed = frame.failed
        if frame.ended or frame.failed:
            self._held = frame.unused
        if frame.ended:
            self._covered += frame.covered
            self._frame = None

    def _moved(self, event: Event) -> Event:
        if isinstance(event, SpanEvent):
            return SpanEvent(event.plain, event.side, self._covered + event.covered)
        return event
