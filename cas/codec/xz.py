"""xz by replay (The .xz File Format, 1.2.1). A file is streams of blocks; the LZMA2 data of a block
is a span, and headers, padding, checks and indexes lie between the spans as they are.

`xz` states no level. The dictionary's size, in each block's header, is that of one preset or two,
which are tried, with and without `-e`, on the first bytes. Blocks with other filters are not taken
apart, nor those of presets that need more memory than an agent has (`DICT_LIMIT`).

Parameters: version 1, the preset (0 to 9), 1 for `-e` or 0, a byte each, then the dictionary's
size, 4 bytes little-endian.
"""

from __future__ import annotations

import lzma
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass

from cas._native import Replay
from cas.codec.base import Event, SpanEvent, VerbatimEvent
from cas.codec.replay import Comparison, Patience, ReplayJoiner, StreamSplitter
from cas.errors import FormatError
from cas.program import Codec

MAGIC = b"\xfd7zXZ\0"
DICT_LIMIT = 8 * 2**20  # of -6, whose encoder takes 94 MiB
TRIAL_SIZE = 2 * 2**20  # plain bytes on which settings are tried
VERSION = 1

_STREAM_HEADER = 12
_PARAMS_SIZE = 7
_CHECK_SIZES = (0, 4, 4, 4, 8, 8, 8, 16, 16, 16, 32, 32, 32, 64, 64, 64)
_LZMA2 = 0x21
# Presets by dictionary size (lzma(3) of xz 5: presets 3 and 4, 5 and 6 share one).
_PRESETS = {
    2**18: (0,), 2**20: (1,), 2**21: (2,), 2**22: (4, 3), 2**23: (6, 5),
    2**24: (7,), 2**25: (8,), 2**26: (9,),
}  # fmt: skip
_COSTS_NS = (90, 100, 150, 370, 400, 500, 600, 600, 650, 700)


@dataclass(frozen=True, slots=True)
class Settings:
    """What an encoder was told."""

    preset: int
    extreme: bool
    dict_size: int

    def encoder(self) -> Replay:
        """An encoder that has been told the same."""
        return Replay.lzma2(self.preset, self.extreme, self.dict_size)

    @property
    def cost_ns(self) -> int:
        """A processor's time for a plain byte, about: measured on source text."""
        return _COSTS_NS[self.preset] * (2 if self.extreme else 1)

    def params(self) -> bytes:
        """The encoded form."""
        head = bytes([VERSION, self.preset, self.extreme])
        return head + self.dict_size.to_bytes(4, "little")


def decode_params(params: bytes) -> Settings:
    """The settings in `params`; raises FormatError."""
    if len(params) == _PARAMS_SIZE and params[0] == VERSION and params[2] <= 1:
        settings = Settings(params[1], params[2] == 1, int.from_bytes(params[3:], "little"))
        if settings.preset in _PRESETS.get(settings.dict_size, ()):
            return settings
    raise FormatError("unknown parameters of xz", advice="use a newer cas")


def joiner(params: bytes, _pool: Executor) -> ReplayJoiner:
    """What undoes an `XzSplitter`. Raises FormatError for parameters that mean nothing."""
    return ReplayJoiner(decode_params(params).encoder)


def splitter(head: bytes, budget: Patience) -> XzSplitter | None:
    """A splitter for the xz stream that begins with `head` (some hundred KiB are best), or None if
    it is none, or no known settings write it."""
    block = _block_header(head[_STREAM_HEADER:]) if is_xz(head) else None
    if block is None or block.dict_size > DICT_LIMIT:
        return None
    data = head[_STREAM_HEADER + block.size :]
    for preset in _PRESETS.get(block.dict_size, ()):
        for extreme in (False, True):
            settings = Settings(preset, extreme, block.dict_size)
            if budget.patience_ns >= settings.cost_ns and _fits(settings, data):
                return XzSplitter(settings)
    return None


def is_xz(head: bytes) -> bool:
    """Whether an xz stream begins here."""
    return head[:6] == MAGIC and len(head) >= _STREAM_HEADER


def _decoder(dict_size: int) -> lzma.LZMADecompressor:
    filters = [{"id": lzma.FILTER_LZMA2, "dict_size": dict_size}]
    return lzma.LZMADecompressor(lzma.FORMAT_RAW, filters=filters)


def _fits(settings: Settings, data: bytes) -> bool:
    """Whether an encoder of these settings writes what `data` begins with."""
    decoder = _decoder(settings.dict_size)
    try:
        plain = decoder.decompress(data, TRIAL_SIZE)
    except lzma.LZMAError:
        return False
    comparison = Comparison(settings.encoder())
    comparison.stream(data[: len(data) - len(decoder.unused_data)])
    comparison.write(plain)
    if decoder.eof:
        return comparison.finish()
    return not comparison.parted and comparison.right > 0


@dataclass(frozen=True, slots=True)
class _Block:
    size: int  # of its header
    dict_size: int


def _block_header(data: bytes) -> _Block | None:
    """The header of a block of LZMA2 and nothing else (section 3.1), or None."""
    size = (data[0] + 1) * 4 if data and data[0] else 0
    if not size or len(data) < size or data[1] & 0x3F:
        return None
    at = 2
    for bit in (0x40, 0x80):  # compressed and uncompressed size
        if data[1] & bit:
            while at < size and data[at] & 0x80:
                at += 1
            at += 1
    if data[at : at + 2] != bytes([_LZMA2, 1]) or at + 2 >= size or data[at + 2] > 40:
        return None
    code = data[at + 2]
    return _Block(size, (2 | code & 1) << code // 2 + 11)


class XzSplitter:
    """A `Splitter` for an xz stream and those that follow it."""

    codec = Codec.XZ

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.params = settings.params()
        self._held = b""  # fed, and in no event yet
        self._covered = 0
        self._block: StreamSplitter | None = None
        self._next: Callable[[XzSplitter], int | None] = XzSplitter._stream_header
        self._check_size = 0
        self._pad = 0
        self.ended = False
        self.failed = ""

    @property
    def unused(self) -> bytes:
        """See `Splitter.unused`."""
        return self._held

    @property
    def rest(self) -> bytes:
        """See `Splitter.rest`."""
        return (self._block.rest if self._block else b"") + self._held

    def feed(self, data: bytes) -> Sequence[Event]:
        """See `Splitter.feed`."""
        self._held += data
        events: list[Event] = []
        while not (self.ended or self.failed):
            if self._block is None:
                if not self._between(events):
                    break
            elif not self._held:
                break
            else:
                self._in_block(events)
        return events

    def finish(self) -> Sequence[Event]:
        """See `Splitter.finish`."""
        if self._block is not None:
            events = [self._moved(event) for event in self._block.finish()]
            self.failed = self.failed or self._block.failed
            return events
        if not (self.ended or self.failed):
            # Between two streams is where the last one has ended.
            self.ended = self._covered > 0 and self._next in (
                XzSplitter._padding,
                XzSplitter._stream_header,
            )
            self.failed = "" if self.ended else "cut off"
        return []

    def _between(self, events: list[Event]) -> bool:
        """Pass over one thing that is no LZMA2 data; false when more must be fed first."""
        count = self._next(self)
        if count is None or self.ended or self.failed:
            return False
        data, self._held = self._held[:count], self._held[count:]
        self._covered += count
        if data:
            events.append(VerbatimEvent(data, self._covered))
        return True

    def _in_block(self, events: list[Event]) -> None:
        block = self._block
        assert block is not None  # feed asks
        data, self._held = self._held, b""
        events += map(self._moved, block.feed(data))
        self.failed = block.failed
        if block.ended or block.failed:
            self._held = block.unused
        if block.ended:
            self._covered += block.covered
            self._pad = -block.covered % 4
            self._block, self._next = None, XzSplitter._block_end

    def _moved(self, event: Event) -> Event:
        if isinstance(event, SpanEvent):
            return SpanEvent(event.plain, event.side, self._covered + event.covered)
        return event

    def _stream_header(self) -> int | None:
        if len(self._held) < _STREAM_HEADER:
            return None
        if not is_xz(self._held) or self._held[6] or self._held[7] > 15:
            self.ended = self._covered > 0
            self.failed = "" if self.ended else "not an xz stream"
            return None
        self._check_size = _CHECK_SIZES[self._held[7]]
        self._next = XzSplitter._block_or_index
        return _STREAM_HEADER

    def _block_or_index(self) -> int | None:
        held = self._held
        if not held or len(held) < (held[0] + 1) * 4:
            return None
        if not held[0]:
            self._next = XzSplitter._index
            return 0
        block = _block_header(held)
        if block is None or block.dict_size != self._settings.dict_size:
            self.failed = "a block of other settings"
            return None
        self._block = StreamSplitter(
            _decoder(block.dict_size), self._settings.encoder(), lzma.LZMAError
        )
        return block.size

    def _block_end(self) -> int | None:
        size = self._pad + self._check_size
        if len(self._held) < size:
            return None
        self._next = XzSplitter._block_or_index
        return size

    def _index(self) -> int | None:
        """The index and the stream's footer, whose backward size tells how long the index is: it
        is looked for, since the index need not be understood."""
        at = self._held.find(b"YZ")
        while at >= 0:
            footer = at - 10
            if footer >= 4:
                size = (int.from_bytes(self._held[footer + 4 : footer + 8], "little") + 1) * 4
                if size == footer:
                    self._next = XzSplitter._padding
                    return at + 2
            at = self._held.find(b"YZ", at + 1)
        if len(self._held) > _INDEX_LIMIT:
            self.failed = "an index without an end"
        return None

    def _padding(self) -> int | None:
        """Zeros in fours, before another stream or the end."""
        zeros = len(self._held) - len(self._held.lstrip(b"\0"))
        if zeros == len(self._held):
            return None if zeros < 4 else zeros - zeros % 4
        if zeros % 4:
            self.ended = True
            return None
        self._next = XzSplitter._stream_header
        return zeros


_INDEX_LIMIT = 2**20
