"""The agent's own copy of what a scan made: pages and recipes, in one file without a name.

They are asked for long after they were made (the client wants a recipe, the second pass reads by
one), in any order, and there may be a million of them. So their bytes lie in a temporary file,
which is gone with the process, and only where they lie is kept in memory.
"""

from __future__ import annotations

import os
import tempfile
import threading
from types import TracebackType

from cas.errors import SourceError
from cas.ids import Digest

_LENGTH_BITS = 32  # a place is one number, offset << 32 | length: half the memory of a pair


class Spool:
    """Objects by id, for one agent run; safe to use from several threads.

    `directory` is where the file goes, the system's own place for temporary files without it.
    """

    def __init__(self, directory: str | None = None) -> None:
        self._directory = directory
        self._file = tempfile.TemporaryFile(dir=directory, buffering=0)  # noqa: SIM115  # close()
        self._places: dict[Digest, int] = {}
        self._end = 0
        self._lock = threading.Lock()

    def put(self, object_id: Digest, data: bytes) -> None:
        """Keep `data`; a second time is no work. Raises SourceError when there is no room."""
        with self._lock:
            if object_id in self._places:
                return
            try:
                self._write(data)
            except OSError as error:
                raise SourceError(
                    f"the scan's own notes cannot be written: {os.strerror(error.errno or 0)}",
                    where=self._directory or tempfile.gettempdir(),
                    advice="give the agent another cache directory",
                ) from error
            self._places[object_id] = self._end << _LENGTH_BITS | len(data)
            self._end += len(data)

    def _write(self, data: bytes) -> None:
        done = 0
        while done < len(data):
            rest = memoryview(data)[done:]
            done += os.pwrite(self._file.fileno(), rest, self._end + done)

    def get(self, object_id: Digest) -> bytes | None:
        """What was put under this id, or None. Raises SourceError when it is cut short."""
        place = self._places.get(object_id)
        if place is None:
            return None
        length = place & (1 << _LENGTH_BITS) - 1
        data = os.pread(self._file.fileno(), length, place >> _LENGTH_BITS)
        if len(data) != length:
            raise SourceError("the scan's own notes were cut short", where=object_id.hex())
        return data

    def __contains__(self, object_id: Digest) -> bool:
        return object_id in self._places

    def __len__(self) -> int:
        return len(self._places)

    def close(self) -> None:
        """Give the room back."""
        self._file.close()
        self._places.clear()

    def __enter__(self) -> Spool:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
