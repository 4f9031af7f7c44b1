"""Packs that are still being written: append, fsync, seal.

An append that fails (a full disk) takes back what it wrote of the record, so that the pack always
ends with a whole one. Sealing hashes the file as it lies on the disk: the name it gets is that of
the bytes that are really there.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

from cas.errors import LimitError, StoreError
from cas.pack import (
    HEADER_SIZE,
    ID_SIZE,
    PACK_LIMIT,
    RECORD_SIZE,
    TABLE_LIMIT,
    encode_header,
    encode_seal,
)
from cas.store.durable import sync_directory
from cas.store.layout import OPEN_PREFIX

READ_SIZE = 2**20
RECORDS_LIMIT = 2**20  # what a seal can list: 5 bytes for an offset at most
SEAL_ROOM = TABLE_LIMIT + RECORD_SIZE


class PackFile:
    """One open pack; `number` is its number in the index, `size` the bytes written."""

    def __init__(self, directory: Path, number: int, pack_id: bytes, size: int | None) -> None:
        """Open the pack of this id for appending at `size`, or begin it when `size` is None."""
        self.number = number
        self.id = pack_id
        self.directory = directory
        self.name = OPEN_PREFIX + pack_id.hex()
        self.offsets: list[int] = []
        self.frames = 0  # that may still get segments
        self.size = HEADER_SIZE if size is None else size
        flags = os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT | os.O_EXCL if size is None else 0)
        with _disk(self.path):
            self._fd = os.open(self.path, flags, 0o644)
            if size is None:
                self._begin()

    def _begin(self) -> None:
        try:
            os.pwrite(self._fd, encode_header(self.id), 0)
            sync_directory(self.directory)
        except OSError:
            self.close()
            raise

    @property
    def path(self) -> Path:
        """Where the file lies now."""
        return self.directory / self.name

    def append(self, record: bytes) -> int:
        """Write `record` at the end and return its offset; not durable before `sync`. Raises
        StoreError, and LimitError when no room for the seal would be left."""
        if self.size + len(record) > PACK_LIMIT - SEAL_ROOM or len(self.offsets) >= RECORDS_LIMIT:
            raise LimitError("a frame does not end, and its pack is full", where=str(self.path))
        return self._append(record)

    def _append(self, record: bytes) -> int:
        offset = self.size
        with _disk(self.path):
            try:
                written = 0
                while written < len(record):
                    written += os.pwrite(self._fd, memoryview(record)[written:], offset + written)
            except OSError:
                os.ftruncate(self._fd, offset)
                raise
        self.size += len(record)
        self.offsets.append(offset)
        return offset

    def sync(self) -> None:
        """Make all that was appended durable; raises StoreError."""
        with _disk(self.path):
            os.fdatasync(self._fd)

    def seal(self) -> str:
        """End the pack and give it its final name; durable on return. Raises StoreError."""
        self._append(encode_seal(self.offsets))
        self.sync()
        with _disk(self.path):
            os.fchmod(self._fd, 0o444)
            name = self._hash()
            os.rename(self.path, self.directory / name)
            sync_directory(self.directory)
        self.name = name
        self.close()
        return name

    def close(self) -> None:
        """Release the file."""
        os.close(self._fd)

    def _hash(self) -> str:
        hasher = hashlib.sha256()
        for offset in range(0, self.size, READ_SIZE):
            hasher.update(os.pread(self._fd, READ_SIZE, offset))
        return hasher.hexdigest()


def new_pack_id() -> bytes:
    """A random id for a pack."""
    return os.urandom(ID_SIZE)


@contextlib.contextmanager
def _disk(where: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise disk_error(error, where) from error


def disk_error(error: OSError, where: Path) -> StoreError:
    """What a failed write means to the user."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return StoreError(
            "the disk is full",
            where=str(where),
            advice="free some space and run it again; nothing that was stored is lost",
        )
    return StoreError(f"cannot be written: {error.strerror}", where=str(where))
