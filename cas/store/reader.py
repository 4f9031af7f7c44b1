"""Reads chunks, pages and recipes out of packs, and lets out only what hashes to its name.

A chunk is found through the index: frame, segment, offset. Of a plain segment just the chunk is
read. A compressed one is decoded after those before it in its frame (`cas/store/frames.py`), its
payload's CRC-32C checked first, so that damage is told from a wrong index and its place is known.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence

from cas.errors import DamageError, FormatError, NotHeldError
from cas.frame import Codec, FrameDecoder
from cas.ids import Digest, digest_of
from cas.interfaces import Index, Location, Read, SegmentPlace
from cas.pack import Record, read_payload, read_record
from cas.store.frames import Frames
from cas.store.open_packs import OpenPacks
from cas.store.scan import FrameScan

MEMORY = 96 * 2**20  # bytes of decoded segments and decoder windows kept: about two frames
# Frames read from front to back at a time, each by a thread, with a window of 32 MiB beside MEMORY.
SCANS = min(os.cpu_count() or 1, 4)
PLACES_KEPT = 256  # frames whose segments' places are remembered


class PackReader:
    """A `ContentSource` over the packs in a directory; safe to use from several threads, while
    another process writes and seals packs. The index must be as safe."""

    def __init__(
        self,
        index: Index,
        packs_dir: str | bytes | os.PathLike[str] | os.PathLike[bytes],
        *,
        memory: int = MEMORY,
    ) -> None:
        self._index = index
        self._packs = OpenPacks(index, os.fsencode(packs_dir))
        self._frames = Frames(self._payload, self._where, memory)
        self._scans = threading.BoundedSemaphore(SCANS)
        self._parked: OrderedDict[int, FrameScan] = OrderedDict()
        self._lock = threading.Lock()
        self._places: OrderedDict[int, dict[int, SegmentPlace]] = OrderedDict()

    def object(self, object_id: Digest) -> bytes:
        """The encoded page or recipe of this id. Raises NotHeldError, DamageError."""
        return self.chunk(object_id)

    def chunk(self, chunk_id: Digest) -> bytes:
        """A chunk's plain bytes, hashed and found right. Raises NotHeldError, DamageError."""
        location = self._index.locate(chunk_id)
        if location is None:
            raise NotHeldError("this chunk is not in the store", where=chunk_id.hex())
        plain = self.read(location)
        if digest_of(plain) != chunk_id:
            where = self._where(self._places_of(location)[location.segment])
            raise DamageError(f"the chunk {chunk_id.hex()} is damaged", where=where)
        return bytes(plain)

    def locate(self, chunk_ids: Sequence[Digest]) -> list[Location | None]:
        """Where each chunk lies; None for one that is not held."""
        return self._index.locate_all(chunk_ids)

    def read(self, location: Location) -> memoryview:
        """The bytes there, not hashed and not copied: a view keeps the whole segment in memory.
        Raises DamageError."""
        places = self._places_of(location)
        place = places[location.segment]
        start, end = location.offset, location.offset + location.length
        if end > place.plain_size:
            raise DamageError("the index and the pack disagree", where=self._where(place))
        if place.codec is Codec.PLAIN:
            data = self._packs.read(place.pack, end - start, place.payload_offset + start)
            return memoryview(data)
        segment = self._frames.get(location.frame, location.segment)
        if segment is None:
            segment = self._decode(location, places)
        return memoryview(segment)[start:end]

    def stands_alone(self, location: Location) -> bool:
        """Whether the bytes there can be read without what is before them in their frame."""
        return self._places_of(location)[location.segment].codec is Codec.PLAIN

    @contextlib.contextmanager
    def scan(self, start: Location) -> Iterator[Read]:
        """A `read` for much of one frame, in ascending order from `start` on: nothing is decoded
        twice, and nothing kept. At most `SCANS` at a time, others wait; not to be nested."""
        with self._scans:
            scan = self._begin_scan(start)
            try:
                yield scan.read
            finally:
                with self._lock:
                    self._parked[start.frame] = scan

    def _begin_scan(self, start: Location) -> FrameScan:
        """One that was left in the frame before `start`, or a new one in the memory of another."""
        with self._lock:
            parked = self._parked.pop(start.frame, None)
            if parked is not None and parked.reaches(start):
                return parked
            if parked is None and len(self._parked) >= SCANS:
                _, parked = self._parked.popitem(last=False)
        places = self._known_places(start.frame)
        decoder = FrameDecoder(None if parked is None else parked.decoder)
        return FrameScan(start.frame, places, decoder, self._payload, self._where, self.read)

    def close(self) -> None:
        """Let go of files and memory, and of what the index said; reading asks again."""
        self._packs.close()
        self._frames.clear()
        with self._lock:
            self._parked.clear()
            self._places.clear()

    def _decode(self, location: Location, places: dict[int, SegmentPlace]) -> bytes:
        compressed = [step for step in places.items() if step[1].codec is Codec.ZSTD]
        steps = [step for step in compressed if step[0] <= location.segment]
        ended = len(steps) == len(compressed) and self._packs.row(steps[-1][1].pack).sealed
        return self._frames.decode(location.frame, steps, complete=ended)

    def _places_of(self, location: Location) -> dict[int, SegmentPlace]:
        """The places of the frame's segments by number, in order, the located one among them."""
        with self._lock:
            places = self._places.get(location.frame)
            if places is not None and location.segment in places:
                return places
        places = self._known_places(location.frame)  # the frame may have grown
        if location.segment not in places:
            raise DamageError(
                f"the index has no segment {location.segment} of frame {location.frame}",
                advice="rebuild the index",
            )
        return places

    def _known_places(self, frame: int) -> dict[int, SegmentPlace]:
        places = dict(self._index.segments_of(frame))
        with self._lock:
            self._places[frame] = places
            if len(self._places) > PLACES_KEPT:
                self._places.popitem(last=False)
        return places

    def _payload(self, place: SegmentPlace) -> bytes:
        """The payload of a segment, its record and checksum verified."""
        head = self._packs.read(place.pack, place.payload_offset - place.offset, place.offset)

        def read(size: int, offset: int, /) -> bytes:
            if offset == place.payload_offset:
                return self._packs.read(place.pack, size, offset)
            return head[offset - place.offset :][:size]

        try:
            record = read_record(read, place.offset)
            if not _same(record, place):
                raise DamageError("the index and the pack disagree")
            return read_payload(read, record)
        except (DamageError, FormatError) as error:
            raise DamageError(error.what, where=self._where(place)) from error

    def _where(self, place: SegmentPlace) -> str:
        return f"pack {self._packs.row(place.pack).name}, offset {place.offset}"


def _same(record: Record, place: SegmentPlace) -> bool:
    """Whether the pack has at the place what the index says."""
    segment = record.segment
    return (
        segment is not None
        and segment.codec == place.codec
        and segment.plain_size == place.plain_size
        and record.payload_offset == place.payload_offset
        and record.payload_size == place.payload_size
    )
