"""Files on their way: what has come of each, kept through any kill until it is stored.

A directory holds one data file for each staged file, and one journal for all of them: a record for
each piece that was written, with a digest of it. Nothing is flushed. What a crash has left is
believed only where a piece's bytes still give the digest in the journal, so neither a torn write
nor a lost one is ever taken for content; it costs that piece only.

A staged file goes by its *key*: half of it stands for the path, half for what the file was (host,
size, time), so what has come of a file that has changed since is of no use, and is dropped when the
new one begins. One process at a time uses a directory: the one that holds the store's writer lock.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import struct
import threading
from collections.abc import Collection, Iterator
from pathlib import Path

from cas.errors import StoreError
from cas.transport.sftp import PIECE, Attributes

KEY_SIZE = 16
DISK_SPARE = 512 * 2**20  # bytes that are left for what is stored meanwhile
_HALF = KEY_SIZE // 2
_JOURNAL = "journal"
_RECORD = struct.Struct("<16sII16s")  # key, number of the piece, its length, its digest
_DIGEST_SIZE = 16
_RECORDS_READ = 4096  # at once


def staged_key(host: bytes, path: bytes, seen: Attributes) -> bytes:
    """The key of the file at `path`, on the machine with this host key, as it was `seen`."""
    version = b"%b\0%d\0%d" % (host, seen.size, seen.mtime)
    return _short(path, _HALF) + _short(version, _HALF)


def _short(data: bytes, size: int) -> bytes:
    return hashlib.blake2b(data, digest_size=size).digest()


class _Staged:
    """One file: its pieces that came in this process, or were found right (`sound`), and those
    that the journal has and nobody has looked at yet (`claimed`)."""

    __slots__ = ("claimed", "size", "sound")

    def __init__(self) -> None:
        self.sound: set[int] = set()
        self.claimed: dict[int, tuple[int, bytes]] = {}
        self.size = 0  # bytes that its pieces have


class Staging:
    """The staged files in `directory`, which is made. Safe to use from several threads. Raises
    StoreError when the disk is full or cannot be written."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._guard = threading.Lock()
        self._files: dict[bytes, _Staged] = {}
        self._keys: dict[bytes, bytes] = {}  # by their first half
        self._used = 0
        with self._complaining():
            directory.mkdir(parents=True, exist_ok=True)
            self._recover()
            self._journal = os.open(self._path(_JOURNAL), os.O_WRONLY | os.O_APPEND)

    @property
    def used(self) -> int:
        """Bytes that all pieces have."""
        return self._used

    def has_any(self, key: bytes) -> bool:
        """Whether anything of the file has come."""
        return key in self._files

    def lacking(self, key: bytes, size: int) -> int:
        """How many of the `size` bytes of a file are still to come. What an earlier process has
        left is read, once."""
        file = self._begun(key)
        if file.claimed:
            self._look_at_claimed(key, file, size)
        return max(0, size - file.size)

    def missing(self, key: bytes, size: int) -> Iterator[int]:
        """The numbers of the pieces that a file of `size` bytes still lacks, after `lacking`."""
        sound = self._begun(key).sound
        return (number for number in range(-(-size // PIECE)) if number not in sound)

    def has_room_for(self, size: int) -> bool:
        """Whether the disk has room for so many bytes and `DISK_SPARE` more."""
        with self._complaining():
            found = os.statvfs(self._directory)
        return found.f_bavail * found.f_frsize >= size + DISK_SPARE

    def write(self, key: bytes, number: int, data: bytes) -> None:
        """Piece `number` has come: it is PIECE bytes long, unless it is the last."""
        file = self._begun(key)
        record = _RECORD.pack(key, number, len(data), _short(data, _DIGEST_SIZE))
        with self._guard, self._complaining():
            fd = os.open(self._path(key.hex()), os.O_WRONLY | os.O_CREAT, 0o600)
            try:
                _write_all(fd, data, number * PIECE)
            finally:
                os.close(fd)
            os.write(self._journal, record)
            if number not in file.sound:
                file.sound.add(number)
                self._grown(file, len(data))

    def open(self, key: bytes) -> int:
        """A descriptor of the file for reading, which the caller closes. Raises OSError."""
        return os.open(self._path(key.hex()), os.O_RDONLY)

    def drop(self, key: bytes) -> None:
        """What has come of the file is stored, or of no use."""
        with self._guard:
            file = self._files.pop(key, None)
            if file is not None:
                self._used -= file.size
                self._keys.pop(key[:_HALF], None)
                with contextlib.suppress(OSError):
                    os.unlink(self._path(key.hex()))

    def drop_others(self, wanted: Collection[bytes]) -> None:
        """Drop what has none of these keys."""
        for key in self._files.keys() - wanted:
            self.drop(key)

    def close(self) -> None:
        """End. A directory that has nothing left in it goes too."""
        os.close(self._journal)
        if not self._files:
            with contextlib.suppress(OSError):
                os.unlink(self._path(_JOURNAL))
                self._directory.rmdir()

    def _begun(self, key: bytes) -> _Staged:
        with self._guard:
            file = self._files.get(key)
        if file is not None:
            return file
        older = self._keys.get(key[:_HALF])
        if older is not None:
            self.drop(older)
        with self._guard:
            self._keys[key[:_HALF]] = key
            return self._files.setdefault(key, _Staged())

    def _look_at_claimed(self, key: bytes, file: _Staged, size: int) -> None:
        claimed, file.claimed = file.claimed, {}
        with self._guard:
            self._grown(file, -file.size)
        try:
            fd = self.open(key)
        except OSError:
            return
        try:
            for number, (length, digest) in claimed.items():
                if length != min(PIECE, size - number * PIECE):
                    continue
                data = os.pread(fd, length, number * PIECE)
                if len(data) == length and _short(data, _DIGEST_SIZE) == digest:
                    file.sound.add(number)
        finally:
            os.close(fd)
        sound = sum(claimed[number][0] for number in file.sound)
        with self._guard:
            self._grown(file, sound)

    def _grown(self, file: _Staged, size: int) -> None:
        file.size += size
        self._used += size

    def _recover(self) -> None:
        """Take up what an earlier process has left, and write its journal anew without the rest."""
        names = set(os.listdir(self._directory))
        for key, number, length, digest in self._records():
            if key.hex() in names and length <= PIECE:
                file = self._files.setdefault(key, _Staged())
                file.claimed[number] = (length, digest)
        for key, file in self._files.items():
            self._grown(file, sum(length for length, _ in file.claimed.values()))
            self._keys[key[:_HALF]] = key
        for name in names - {key.hex() for key in self._files} - {_JOURNAL}:
            os.unlink(self._path(name))
        self._write_journal()

    def _records(self) -> Iterator[tuple[bytes, int, int, bytes]]:
        try:
            with open(self._path(_JOURNAL), "rb") as journal:
                while data := journal.read(_RECORD.size * _RECORDS_READ):
                    whole = len(data) - len(data) % _RECORD.size
                    yield from _RECORD.iter_unpack(data[:whole])
        except FileNotFoundError:
            return

    def _write_journal(self) -> None:
        new = self._path(_JOURNAL + ".new")
        with open(new, "wb") as journal:
            for key, file in self._files.items():
                journal.writelines(
                    _RECORD.pack(key, number, *claim) for number, claim in file.claimed.items()
                )
        os.rename(new, self._path(_JOURNAL))

    def _path(self, name: str) -> Path:
        return self._directory / name

    @contextlib.contextmanager
    def _complaining(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise StoreError(
                f"what comes cannot be put down: {error.strerror}",
                where=str(self._directory),
                advice="files that come over SFTP lie there, whole, until their content is stored",
            ) from error


def _write_all(fd: int, data: bytes, offset: int) -> None:
    rest = memoryview(data)
    while rest:
        done = os.pwrite(fd, rest, offset)
        rest, offset = rest[done:], offset + done
