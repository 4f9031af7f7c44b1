"""Small stores made by hand: packs of frames and an index in a dict, with every byte known."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

from cas.entry import Content
from cas.frame import Codec, FrameEncoder
from cas.ids import EMPTY_DIGEST, Digest, digest_of
from cas.interfaces import Index, Location, PackRow, SegmentPlace
from cas.pack import Origin, Segment, encode_header, encode_seal, encode_segment
from cas.recipe import PART_CHUNKS, Copy, Hole, Recipe, encode_recipe
from cas.store.reader import PackReader

ORIGIN = Origin(bytes(16), "npu", "00-critical", 0, 0, 0, ())
CHUNK = 64 * 1024


class DictIndex:
    """What a reader asks of an index, in dicts."""

    def __init__(self) -> None:
        self.located: dict[Digest, Location] = {}
        self.places: dict[int, dict[int, SegmentPlace]] = {}
        self.rows: dict[int, PackRow] = {}

    def locate(self, chunk: Digest) -> Location | None:
        return self.located.get(chunk)

    def locate_all(self, chunks: Sequence[Digest]) -> list[Location | None]:
        return [self.located.get(chunk) for chunk in chunks]

    def segments_of(self, frame: int) -> list[tuple[int, SegmentPlace]]:
        return sorted(self.places[frame].items())

    def packs(self) -> dict[int, PackRow]:
        return dict(self.rows)

    def chunks(self) -> list[tuple[Digest, Location]]:
        return sorted(self.located.items())


class BuiltStore:
    """Put contents in, `flush`, and read them through `reader`."""

    def __init__(self, root: Path, *, segment_size: int = 2**20, frame_segments: int = 8) -> None:
        self.packs_dir = root / "packs"
        self.packs_dir.mkdir(parents=True)
        self.index = DictIndex()
        self.reader = PackReader(cast(Index, self.index), self.packs_dir)
        self._segment_size = segment_size
        self._frame_segments = frame_segments
        self._waiting: list[bytes] = []
        self._encoder = FrameEncoder(3)
        self._frame = self._segment = 0
        self._pack = 0
        self._offsets: list[int] = []

    def chunk(self, data: bytes) -> Digest:
        """Add one chunk, unless it is there."""
        id_ = digest_of(data)
        if id_ not in self.index.located and data not in self._waiting:
            self._waiting.append(data)
            if sum(map(len, self._waiting)) >= self._segment_size:
                self.end_segment()
        return id_

    def content(self, data: bytes, *, chunk: int = CHUNK) -> Content:
        """Add what a plain file holds."""
        return self.sparse([data], chunk=chunk)

    def sparse(
        self, pieces: list[bytes | int], *, chunk: int = CHUNK, part: int = PART_CHUNKS
    ) -> Content:
        """Add what a file of data and holes (given by their sizes) holds, one recipe for each
        `part` chunks and holes."""
        runs = [split(piece, chunk) if isinstance(piece, bytes) else piece for piece in pieces]
        plain = b"".join(p if isinstance(p, bytes) else bytes(p) for p in pieces)
        size = sum(len(p) if isinstance(p, bytes) else p for p in pieces)
        if not size:
            return Content(0, EMPTY_DIGEST, 0)
        digest = digest_of(plain)
        if len(runs) == 1 and isinstance(runs[0], list) and len(runs[0]) == 1:
            self.chunk(runs[0][0])
            return Content(size, digest, 1)
        steps = [step for run in runs for step in (run if isinstance(run, list) else [run])]
        parts = [self._part(steps[at : at + part]) for at in range(0, len(steps), part)]
        chunks = sum(isinstance(step, bytes) for step in steps)
        return Content(size, digest, chunks, tuple(parts))

    def _part(self, steps: list[bytes | int]) -> Digest:
        program: list[Copy | Hole] = []
        for step in steps:
            last = program[-1] if program else None
            if isinstance(step, int):
                program.append(Hole(step))
            elif isinstance(last, Copy):
                program[-1] = replace(last, count=last.count + 1)
            else:
                program.append(Copy(1))
        chunks = [step for step in steps if isinstance(step, bytes)]
        size = sum(len(s) if isinstance(s, bytes) else s for s in steps)
        plain = len(program) == 1 and isinstance(program[0], Copy)
        ids = tuple(self.chunk(chunk) for chunk in chunks)
        recipe = Recipe(size, digest_of(b"".join(chunks)), ids, tuple(map(len, chunks)),
                        () if plain else tuple(program))  # fmt: skip
        return self.chunk(encode_recipe(recipe))

    def plain(self, chunks: list[bytes]) -> list[Digest]:
        """Add chunks in a plain segment of their own."""
        self.end_segment()
        self._write(chunks, b"".join(chunks), Codec.PLAIN)
        return [digest_of(chunk) for chunk in chunks]

    def end_segment(self) -> None:
        """Write what waits as a segment."""
        if self._waiting:
            chunks, self._waiting = self._waiting, []
            last = self._segment + 1 == self._frame_segments
            self._write(chunks, self._encoder.segment(chunks, last=last), Codec.ZSTD)
            if last:
                self._next_frame()

    def end_frame(self) -> None:
        """Let what follows lie in another frame."""
        self.end_segment()
        if self._segment:
            self._next_frame()

    def _next_frame(self) -> None:
        self._encoder, self._segment = FrameEncoder(3), 0
        self._frame += 1

    def flush(self) -> None:
        """End frame and pack: sealed, and named by its digest."""
        self.end_frame()
        if self._offsets:
            path = self.pack_path
            data = path.read_bytes() + encode_seal(self._offsets)
            name = digest_of(data).hex()
            (self.packs_dir / name).write_bytes(data)
            path.unlink()
            row = self.index.rows[self._pack]
            self.index.rows[self._pack] = replace(row, name=name, size=len(data), sealed=True)
            self._pack, self._offsets = self._pack + 1, []

    @property
    def pack_path(self) -> Path:
        """The pack that is being written."""
        return self.packs_dir / self.index.rows[self._pack].name

    def place(self, chunk: Digest) -> tuple[Path, SegmentPlace]:
        """The pack file and segment that hold `chunk`."""
        location = self.index.located[chunk]
        place = self.index.places[location.frame][location.segment]
        return self.packs_dir / self.index.rows[place.pack].name, place

    def damage(self, chunk: Digest) -> None:
        """Flip a bit in the payload that holds `chunk`."""
        path, place = self.place(chunk)
        with path.open("r+b") as file:
            file.seek(place.payload_offset + place.payload_size // 2)
            byte = file.read(1)[0]
            file.seek(-1, os.SEEK_CUR)
            file.write(bytes([byte ^ 1]))

    def _write(self, chunks: list[bytes], payload: bytes, codec: Codec) -> None:
        ids, lengths = tuple(map(digest_of, chunks)), tuple(map(len, chunks))
        plain_size = sum(lengths)
        segment = Segment(
            self._frame, self._segment, codec, False, plain_size, lengths, ids, ORIGIN
        )
        record = encode_segment(segment, payload)
        if self._pack not in self.index.rows:
            id_ = self._pack.to_bytes(16, "big")
            self.index.rows[self._pack] = PackRow(id_, f"open-{id_.hex()}", 0, sealed=False)
            self.pack_path.write_bytes(encode_header(id_))
        with self.pack_path.open("ab") as file:
            offset = file.tell()
            file.write(record)
        place = SegmentPlace(self._pack, offset, offset + len(record) - len(payload), len(payload),
                             codec, plain_size)  # fmt: skip
        self._offsets.append(offset)
        self.index.places.setdefault(self._frame, {})[self._segment] = place
        at = 0
        for id_, length in zip(ids, lengths, strict=True):
            location = Location(self._frame, self._segment, at, length)
            self.index.located.setdefault(id_, location)
            at += length
        self._segment += 1


def split(data: bytes, size: int) -> list[bytes]:
    """`data` in chunks of `size`."""
    return [data[at : at + size] for at in range(0, len(data), size)]
