"""Reads all that the index says is held, pack by pack, and hashes it.

First the index is asked what it has where: rows are counted by segment. Then each pack is hashed,
if it is sealed, and its frames are decoded from front to back, each of them once; every chunk is
hashed and looked up. A segment of which the index has more rows than were found to be right is
looked at once more, row by row, to tell what is lost: of a plain segment that is damaged most can
still be read. So memory holds a place for each segment, and a row only for each lost chunk.

Two packs are read at a time: hashing and decoding leave Python's lock.
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections import Counter, defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import accumulate
from pathlib import Path

from cas.errors import DamageError, FormatError
from cas.frame import Codec, FrameDecoder
from cas.ids import Digest, digest_of
from cas.interfaces import Location, PackRow, SegmentPlace
from cas.pack import HEADER_SIZE, Segment, decode_header, read_payload, read_record
from cas.store.open_packs import OpenPacks
from cas.store.store import Store
from cas.verify.report import PackCheck
from cas.verify.strays import strange_packs, unindexed, whole_records

THREADS = 2
READ_SIZE = 2**20
LYING = ("index", "it names chunks that are not where it says")
SPARES_LIMIT = 200_000  # chunks held twice that are remembered

Progress = Callable[[int, int], None]  # bytes read, packs done
SegmentKey = tuple[int, int]  # frame, number
Frames = dict[int, list[tuple[int, SegmentPlace]]]


def check_packs(store: Store, progress: Progress) -> PackCheck:
    """Read and hash everything that the index of `store` names. `progress` is told of bytes read
    and packs done, from several threads but one at a time. Raises StoreError, DamageError when the
    index cannot be read; damage to packs is reported."""
    check = _Check(store, progress)
    check.count_rows()
    with ThreadPoolExecutor(THREADS, "verify") as pool:
        try:
            for _ in pool.map(check.pack, check.numbers()):
                pass
        finally:
            pool.shutdown(cancel_futures=True)
    check.strange_packs()
    check.find_lost()
    return check.found


class _Check:
    def __init__(self, store: Store, progress: Progress) -> None:
        self.found = PackCheck()
        self._store = store
        self._index = store.index
        self._packs = OpenPacks(store.index, os.fsencode(store.layout.packs))
        self._rows = store.index.packs()
        self._progress = progress
        self._guard = threading.Lock()
        self._counted: Counter[SegmentKey] = Counter()  # chunks by segment, as the index has them
        self._right: Counter[SegmentKey] = Counter()  # of these, found to be right
        self._frames: defaultdict[int, Frames] = defaultdict(dict)  # by pack
        self._spares: dict[Digest, Location] = {}
        self._troubles: dict[SegmentKey, tuple[str, str]] = {}  # where, what
        self._gone: set[SegmentKey] = set()  # segments of which nothing can be read

    def count_rows(self) -> None:
        """Ask the index what it has, and where."""
        for _, at in self._index.chunks():
            self._counted[at.frame, at.segment] += 1
        for frame in sorted({frame for frame, _ in self._counted}):
            for number, place in self._index.segments_of(frame):
                self._frames[place.pack].setdefault(frame, []).append((number, place))

    def numbers(self) -> list[int]:
        """The packs to read."""
        return sorted({*self._rows, *self._frames})

    def pack(self, number: int) -> None:
        """Check one pack; in a thread."""
        frames = self._frames.get(number, {})
        try:
            row = self._packs.row(number)
            if decode_header(self._packs.read(number, HEADER_SIZE, 0)) != row.id:
                raise DamageError("is another pack than the index says")
        except (DamageError, FormatError) as error:
            # If nothing of it is used any more, it may be gone.
            trouble = (_named(self._rows.get(number), number), error.what)
            keys = [(frame, n) for frame, steps in frames.items() for n, _ in steps]
            with self._guard:
                self._troubles.update(dict.fromkeys(keys, trouble))
                self._gone.update(keys)
            return
        self._read(number, row, frames)
        with self._guard:
            self.found.packs += 1
            self._progress(0, 1)

    def _read(self, number: int, row: PackRow, frames: Frames) -> None:
        fits = not row.sealed or self._fits_its_name(number, row)
        decoder: FrameDecoder | None = None
        for frame, steps in sorted(frames.items(), key=lambda item: item[1][0][1].offset):
            decoder = FrameDecoder(decoder)
            self._frame(frame, dict(steps), row, decoder)
        if fits:
            self._strange_records(number, row)

    def _fits_its_name(self, number: int, row: PackRow) -> bool:
        """Hash a sealed pack: its name is its digest."""
        hasher = hashlib.sha256()
        at = 0
        while block := self._packs.read(number, READ_SIZE, at):
            hasher.update(block)
            at += len(block)
            self._told(len(block))
        name = hasher.hexdigest()
        if name == row.name:
            return True
        self._damage(_named(row, number), "its bytes are not those that its name says")
        with self._guard:
            self.found.renamed.append((number, replace(row, name=name, size=at), row.name))
        return False

    def _frame(
        self, frame: int, places: dict[int, SegmentPlace], row: PackRow, decoder: FrameDecoder
    ) -> None:
        """Check the segments of a frame, up to the last that chunks lie in."""
        last = max(number for number in places if self._counted[frame, number])
        broken = False
        for number, place in places.items():
            if number > last:
                return
            where = f"{_named(row, place.pack)}, offset {place.offset}"
            try:
                segment, plain = self._record(frame, number, place)
                if place.codec is Codec.ZSTD:
                    if broken:
                        raise DamageError("cannot be decoded without what is damaged before it")
                    plain = decoder.segment(plain, place.plain_size)
            except (DamageError, FormatError) as error:
                broken = broken or place.codec is Codec.ZSTD
                with self._guard:
                    self._troubles[frame, number] = (where, error.what)
                    if place.codec is Codec.ZSTD:
                        self._gone.add((frame, number))
                continue
            self._chunks(segment, memoryview(plain), where)
            if not row.sealed:
                self._told(place.payload_size)

    def _record(self, frame: int, number: int, place: SegmentPlace) -> tuple[Segment, bytes]:
        """What the pack has at a place, if that is what the index says. A plain payload may be
        damaged or cut off: its chunks are read one by one, and those that are right are right."""
        read = self._reader(place.pack)
        record = read_record(read, place.offset)
        segment = record.segment
        if segment is None or (segment.frame, segment.number) != (frame, number):
            raise DamageError("the index and the pack disagree")
        said = (record.payload_offset, record.payload_size, segment.codec, segment.plain_size)
        if said != (place.payload_offset, place.payload_size, place.codec, place.plain_size):
            raise DamageError("the index and the pack disagree")
        if place.codec is Codec.PLAIN:
            return segment, read(place.payload_size, place.payload_offset)
        return segment, read_payload(read, record)

    def _reader(self, pack: int) -> Callable[[int, int], bytes]:
        return lambda size, offset: self._packs.read(pack, size, offset)

    def _chunks(self, segment: Segment, plain: memoryview, where: str) -> None:
        """Hash the chunks of a segment, and compare what the index says of them."""
        key = (segment.frame, segment.number)
        starts = accumulate(segment.lengths, initial=0)
        located = self._index.locate_all(segment.ids)
        for id_, said, length, at in zip(
            segment.ids, located, segment.lengths, starts, strict=False
        ):
            here = Location(*key, at, length)
            if digest_of(plain[at : at + length]) != id_:
                self._troubles[key] = (where, "chunks do not hash to their ids")
            elif said == here:
                self._right[key] += 1
            elif len(self._spares) < SPARES_LIMIT:
                self._spares[id_] = here
        with self._guard:
            self.found.chunks += self._right[key]

    def _strange_records(self, number: int, row: PackRow) -> None:
        """Count whole records that the index does not know."""
        size = row.size if row.sealed else 0
        count = unindexed(self._reader(number), size, self._index, number)
        with self._guard:
            self.found.unindexed += count

    def strange_packs(self) -> None:
        """Look at the packs that the index does not know at all."""
        ids = {row.id for row in self._index.packs().values()}
        names = {row.name for row in self._rows.values()}
        for path in strange_packs(self._store.layout, ids):
            if path.name not in names:  # else it was called missing already
                self._strange_pack(path)

    def _strange_pack(self, path: Path) -> None:
        try:
            self.found.unindexed += whole_records(path)
        except (DamageError, FormatError) as error:
            self._damage(f"pack {path.name}", f"not in the index, and damaged: {error.what}")

    def find_lost(self) -> None:
        """Find the chunks that the index names and that cannot be had from where it says."""
        doubtful = {key for key, count in self._counted.items() if self._right[key] < count}
        counts: Counter[tuple[str, str]] = Counter()
        for id_, at in self._index.chunks() if doubtful else ():
            key = (at.frame, at.segment)
            if key in self._gone or (key in doubtful and not self._is_readable(id_)):
                self.found.lost[id_] = self._spares.get(id_)
                counts[self._troubles.get(key, LYING)] += 1
        for (where, what), count in sorted(counts.items()):
            self._damage(where, what, count)

    def _is_readable(self, id_: Digest) -> bool:
        try:
            self._store.reader.chunk(id_)
        except (DamageError, FormatError):
            return False
        return True

    def _damage(self, where: str, what: str, chunks: int = 0) -> None:
        with self._guard:
            self.found.damage(where, what, chunks)

    def _told(self, size: int) -> None:
        with self._guard:
            self.found.bytes += size
            self._progress(size, 0)


def _named(row: PackRow | None, number: int) -> str:
    return f"pack {number}, which the index has not" if row is None else f"pack {row.name}"
