"""A store's content and, beside it, what was read out of its archives and is no chunk of it.

That lies in a temporary file without a name, which is gone with the process.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import threading
from collections.abc import Iterator, Sequence

from cas.ids import Digest, digest_of
from cas.interfaces import ContentSource, Location, Read

SCRATCH = -1  # the number of a frame that no store has


class Scratch:
    """A `ContentSource` over another one and a file in `directory`; safe to use from several
    threads, like that one."""

    def __init__(self, source: ContentSource, directory: str | os.PathLike[str]) -> None:
        self._source = source
        self._file = tempfile.TemporaryFile(dir=directory, buffering=0)  # noqa: SIM115  # close()
        self._places: dict[Digest, Location] = {}
        self._end = 0
        self._lock = threading.Lock()

    def put(self, data: bytes) -> Digest:
        """Add a chunk, or a recipe; its id. Raises OSError."""
        id_ = digest_of(data)
        with self._lock:
            if id_ not in self._places:
                self._write(data)
                self._places[id_] = Location(SCRATCH, 0, self._end, len(data))
                self._end += len(data)
        return id_

    def _write(self, data: bytes) -> None:
        done = 0
        while done < len(data):
            done += os.pwrite(self._file.fileno(), data[done:], self._end + done)

    def object(self, object_id: Digest) -> bytes:
        """See `ContentSource`."""
        return self.chunk(object_id)

    def chunk(self, chunk_id: Digest) -> bytes:
        """See `ContentSource`."""
        place = self._places.get(chunk_id)
        return self._source.chunk(chunk_id) if place is None else bytes(self.read(place))

    def locate(self, chunk_ids: Sequence[Digest]) -> list[Location | None]:
        """See `ContentSource`."""
        located = self._source.locate(chunk_ids)
        return [self._places.get(id_, at) for id_, at in zip(chunk_ids, located, strict=True)]

    def read(self, location: Location) -> memoryview:
        """See `ContentSource`."""
        if location.frame != SCRATCH:
            return self._source.read(location)
        return memoryview(os.pread(self._file.fileno(), location.length, location.offset))

    def stands_alone(self, location: Location) -> bool:
        """See `ContentSource`."""
        return location.frame == SCRATCH or self._source.stands_alone(location)

    @contextlib.contextmanager
    def scan(self, start: Location) -> Iterator[Read]:
        """See `ContentSource`."""
        if start.frame == SCRATCH:
            yield self.read
            return
        with self._source.scan(start) as read:
            yield lambda at: self.read(at) if at.frame == SCRATCH else read(at)

    def close(self) -> None:
        """Give the room back."""
        self._file.close()
