"""Writing to a store: segments as they came, pages and recipes in frames of their own.

The order of writes is the promise (docs/design.md): pack bytes, fsync, index transaction; only then
may anything be acknowledged. `add_*` may be called from one thread while another is in `commit`;
what is added meanwhile belongs to the next commit.

A frame never spans packs, so that a chunk can be read from one file. A pack is sealed when it has
reached its size and none of its frames can grow any more.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, fields

from cas.errors import StoreError
from cas.frame import SEGMENT_SIZE, Codec, FrameEncoder
from cas.ids import Digest, digest_of
from cas.interfaces import Changes, Index, Location, PackRow, SegmentPlace
from cas.pack import PACK_TARGET, Origin, Segment, encode_segment
from cas.store.layout import Layout
from cas.store.packfile import PackFile, new_pack_id
from cas.store.recover import recover

META_LEVEL = 9
META_FRAME_LIMIT = 4 * 2**20  # plain bytes: a page is read alone, so its frame is kept short


@dataclass(slots=True)
class _Objects:
    """Pages and recipes that wait for their segment."""

    origin: Origin | None = None
    waiting: list[tuple[Digest, bytes]] = field(default_factory=list)
    size: int = 0
    encoder: FrameEncoder | None = None
    frame: int = 0
    segments: int = 0


class Writer:
    """The one writer of a store; the caller holds the `WriterLock`."""

    def __init__(self, layout: Layout, index: Index) -> None:
        """Take up the packs that the last writer left, whole or torn."""
        self._layout = layout
        self._index = index
        self._guard = threading.Lock()
        self._committing = threading.Lock()
        self._changes, self._open = recover(layout, index)
        self._next_pack = max([*index.packs(), *(number for number, _ in self._changes.packs)],
                              default=0) + 1  # fmt: skip
        if self._changes:
            index.commit(self._changes)
        self._changes = Changes()
        # By the clock, so that no frame has the number of another that the index does not know: one
        # in a pack that was damaged when the index was made, or that comes from another store.
        self._next_frame = max(index.next_frame(), now_ms() << 16)
        self._frames: dict[int, PackFile] = {}
        self._pending: set[Digest] = set()
        self._objects = _Objects()
        self._lost: StoreError | None = None  # why what was added will never be durable
        self.stored_size = 0  # bytes of payload added since the start

    def begin_frame(self) -> int:
        """The number of a new frame."""
        with self._guard:
            return self._begin_frame()

    def add_segment(self, segment: Segment, payload: bytes) -> None:
        """Append a segment of a frame that was begun; its chunks must have been hashed.

        Durable after the next `commit`. Raises StoreError on a full disk, with nothing changed.
        """
        with self._guard:
            self._append(segment, payload)

    def end_frame(self, frame: int) -> None:
        """No further segment of `frame` will come."""
        with self._guard:
            self._end_frame(frame)

    def add_object(self, encoded: bytes, origin: Origin) -> Digest:
        """Keep a page or recipe, unless it is here already; durable after the next `commit`."""
        id_ = digest_of(encoded)
        with self._guard:
            if id_ in self._pending or self._index.locate(id_) is not None:
                return id_
            self._pending.add(id_)
            objects = self._objects
            objects.origin = origin
            objects.waiting.append((id_, encoded))
            objects.size += len(encoded)
            if objects.size >= SEGMENT_SIZE:
                self._flush_objects()
        return id_

    def note(self, changes: Changes) -> None:
        """Add rows (recipes, snapshots, files, pending pages) to the next commit."""
        with self._guard:
            for name in ("recipes", "snapshots", "files", "pending_pages", "settled_tiers"):
                getattr(self._changes, name).extend(getattr(changes, name))

    def pending(self, chunks: Sequence[Digest]) -> list[bool]:
        """For each of `chunks` whether it was added and waits for a commit."""
        with self._guard:
            return [chunk in self._pending for chunk in chunks]

    def commit(self) -> None:
        """Make all that was added so far durable: packs, then index. Raises StoreError, and from
        then on always when it was a flush that failed."""
        with self._committing:
            if self._lost is not None:
                raise self._lost
            with self._guard:
                self._flush_objects()
                changes, self._changes = self._changes, Changes()
                finished = [p for p in self._open if p.size >= PACK_TARGET and not p.frames]
                self._open = [p for p in self._open if p not in finished]
                dirty = {number for number, _ in changes.packs}
                touched = [p for p in (*self._open, *finished) if p.number in dirty]
            self._flush(touched)
            try:
                for pack in finished:
                    name = pack.seal()
                    row = PackRow(pack.id, name, pack.size, sealed=True)
                    changes.packs.append((pack.number, row))
                if changes:
                    self._index.commit(changes)
            except BaseException:
                self._put_back(changes)
                raise
            with self._guard:
                self._pending.difference_update(id_ for id_, _ in changes.chunks)

    def close(self) -> None:
        """Commit what is left and release the packs; they go on being open for the next writer."""
        try:
            self.commit()
        finally:
            for pack in self._open:
                pack.close()
            self._open = []

    def _flush(self, packs: list[PackFile]) -> None:
        """Bring packs to the disk. Where that fails, their rows are not written any more: Linux
        tells of a lost page once, and the next flush succeeds without it (fsync(2))."""
        try:
            for pack in packs:
                pack.sync()
        except StoreError as error:
            self._lost = error
            raise

    def _put_back(self, changes: Changes) -> None:
        """A commit failed: what it was to write belongs to the next one. A pack whose sealing
        was begun stays as it is, for the next writer to take up."""
        with self._guard:
            for field_ in fields(Changes):
                getattr(self._changes, field_.name)[:0] = getattr(changes, field_.name)

    def _begin_frame(self) -> int:
        frame, self._next_frame = self._next_frame, self._next_frame + 1
        pack = next((p for p in self._open if p.size < PACK_TARGET), None)
        if pack is None:
            pack = PackFile(self._layout.packs, self._next_pack, new_pack_id(), None)
            self._next_pack += 1
            self._open.append(pack)
        pack.frames += 1
        self._frames[frame] = pack
        return frame

    def _end_frame(self, frame: int) -> None:
        pack = self._frames.pop(frame, None)
        if pack is not None:
            pack.frames -= 1

    def _append(self, segment: Segment, payload: bytes) -> None:
        pack = self._frames[segment.frame]
        record = encode_segment(segment, payload)
        offset = pack.append(record)
        place = SegmentPlace(
            pack.number,
            offset,
            offset + len(record) - len(payload),
            len(payload),
            segment.codec,
            segment.plain_size,
        )
        changes = self._changes
        changes.segments.append((segment.frame, segment.number, place))
        changes.packs.append((pack.number, PackRow(pack.id, pack.name, pack.size, sealed=False)))
        at = 0
        for id_, length in zip(segment.ids, segment.lengths, strict=True):
            changes.chunks.append((id_, Location(segment.frame, segment.number, at, length)))
            at += length
        self._pending.update(segment.ids)
        self.stored_size += len(payload)

    def _flush_objects(self) -> None:
        objects = self._objects
        if not objects.waiting or objects.origin is None:
            return
        if objects.encoder is None:
            objects.frame, objects.segments = self._begin_frame(), 0
            objects.encoder = FrameEncoder(META_LEVEL)
        last = objects.encoder.plain_size + objects.size >= META_FRAME_LIMIT
        encoded = [data for _, data in objects.waiting]
        payload = objects.encoder.segment(encoded, last=last)
        segment = Segment(
            objects.frame,
            objects.segments,
            Codec.ZSTD,
            True,
            objects.size,
            tuple(map(len, encoded)),
            tuple(id_ for id_, _ in objects.waiting),
            objects.origin,
        )
        try:
            self._append(segment, payload)
        except BaseException:
            # The encoder has passed what no reader will see: they must not go on from it.
            self._end_frame(objects.frame)
            objects.encoder = None
            raise
        objects.waiting, objects.size = [], 0
        objects.segments += 1
        if last:
            self._end_frame(objects.frame)
            objects.encoder = None


def now_ms() -> int:
    """This moment, in ms since 1970."""
    return time.time_ns() // 1_000_000
