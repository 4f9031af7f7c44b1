"""What is staged of one source, from when it came until its chunks are stored.

Safe to use from several threads: a scan puts files here, the second pass of the agent opens them.
"""

from __future__ import annotations

import errno
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from cas.errors import StoreError
from cas.ids import Digest
from cas.sftp.staging import Staging

ROOM = 4 * 2**30  # bytes of staged files, or one that is larger
RELEASE_SECONDS = 1.0  # between two looks at what is stored
_Place = tuple[Staging, bytes]  # where it is staged, by which key
_LOOKS = 8  # at files that are not stored yet, until the rest is taken for the same


@dataclass(slots=True, eq=False)
class _Kept:
    """A staged file that has been read; `told`: the client knows of it, and can want it."""

    path: bytes
    size: int
    chunks: list[Digest]
    told: bool = False


class Shelf:
    """The staged files, in directories below `directory`, one for each tier. `holds_all` says
    whether the store has chunks, for good."""

    def __init__(
        self,
        directory: Path,
        holds_all: Callable[[Iterable[Digest]], bool],
        room: int | None = None,
    ) -> None:
        self._directory = directory
        self._holds_all = holds_all
        self._room = ROOM if room is None else room
        self._guard = threading.Lock()
        self._tiers: dict[str, Staging] = {}
        self._paths: dict[bytes, _Place] = {}
        self._kept: dict[_Place, _Kept] = {}  # in the order in which they came
        self._reserved = 0
        self._looked = 0.0

    def tier(self, name: str) -> Staging:
        """Where files of this tier are staged. Raises StoreError."""
        with self._guard:
            if name not in self._tiers:
                self._tiers[name] = Staging(self._directory / name)
            return self._tiers[name]

    def reserve(self, size: int) -> bool:
        """Take room for a file, if there is some; any file has room when nothing else is here."""
        self._release_now_and_then()
        with self._guard:
            if self._reserved and self._reserved + size > self._room:
                return False
            self._reserved += size
            return True

    def reserve_anyway(self, size: int) -> None:
        """Take room for a file although there is none."""
        with self._guard:
            self._reserved += size

    def give_back(self, size: int) -> None:
        """The room of a file that did not come, or is not needed."""
        with self._guard:
            self._reserved -= size

    def keep(
        self, path: bytes, staging: Staging, key: bytes, size: int, chunks: list[Digest]
    ) -> None:
        """The staged file is that at the entry path `path`, and has these chunks; `size` is what
        was reserved."""
        place = (staging, key)
        with self._guard:
            self._paths[path] = place
            if place in self._kept:
                self._reserved -= size  # an earlier scan of this run has it
            else:
                self._kept[place] = _Kept(path, size, chunks)

    def told(self) -> None:
        """The client knows now of all that is kept."""
        with self._guard:
            for kept in self._kept.values():
                kept.told = True

    def is_waited_for(self) -> bool:
        """Whether the client knows of anything here, so that it may be stored and go."""
        with self._guard:
            return any(kept.told for kept in self._kept.values())

    def drop_oldest(self) -> None:
        """Throw away what the client was told of first, and nobody seems to want."""
        with self._guard:
            place = next((place for place, kept in self._kept.items() if kept.told), None)
            if place is not None:
                self._drop(place)

    def release(self) -> None:
        """Drop what is stored."""
        with self._guard:
            missing = 0
            for place, kept in list(self._kept.items()):
                if self._holds_all(kept.chunks):
                    self._drop(place)
                else:
                    missing += 1
                if missing >= _LOOKS:
                    break

    def open(self, path: bytes) -> int:
        """A descriptor of what is staged at the entry path. Raises OSError."""
        with self._guard:
            place = self._paths.get(path)
        if place is None:
            raise FileNotFoundError(errno.ENOENT, "it is not staged any more")
        staging, key = place
        return staging.open(key)

    def close(self) -> None:
        """Drop what is stored, and end; the rest is there the next time."""
        with suppress(StoreError):
            self.release()
        with self._guard:
            tiers, self._tiers = self._tiers, {}
            for staging in tiers.values():
                staging.close()
        with suppress(OSError):
            self._directory.rmdir()
            self._directory.parent.rmdir()

    def _release_now_and_then(self) -> None:
        now = time.monotonic()
        if now - self._looked > RELEASE_SECONDS:
            self._looked = now
            self.release()

    def _drop(self, place: _Place) -> None:
        kept = self._kept.pop(place)
        if self._paths.get(kept.path) == place:
            del self._paths[kept.path]
        staging, key = place
        staging.drop(key)
        self._reserved -= kept.size


class Opener:
    """Opens staged files for the agent's second pass (`cas.agent.read.Files`)."""

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf

    def regular_file(self, path: bytes) -> tuple[int, object]:
        """See `Files.regular_file`."""
        return self._shelf.open(path), None

    def __enter__(self) -> Opener:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Nothing is held."""
