"""A bundle's files: NAME, or shards NAME.000, NAME.001 ..., and NAME.sha256 for `sha256sum -c`.

All are written under temporary names, and get their own when the last byte is on the disk. The
checksums come last: where they are, the rest is.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from cas.errors import RestoreError
from cas.manifest import checksum_line, comment_line
from cas.store.durable import PendingFile, sync_directory
from cas.store.packfile import disk_error

SHARD_DIGITS = 3  # at least; more where there are more shards, so that a shell sorts them


@dataclass(frozen=True, slots=True)
class Part:
    """A finished file: its name, its size, its SHA-256."""

    name: bytes
    size: int
    digest: bytes


class _Growing:
    """A file that is being written, and hashed."""

    def __init__(self, directory: bytes) -> None:
        self.pending = PendingFile(directory)
        self.hasher = hashlib.sha256()
        self.size = 0

    def write(self, data: memoryview) -> None:
        self.pending.file.write(data)
        self.hasher.update(data)
        self.size += len(data)


class BundleFiles:
    """Write to it, then `commit`. As a context: what is not committed on leaving it is gone."""

    def __init__(self, path: bytes, *, shard_size: int = 0, overwrite: bool = False) -> None:
        """The bundle at `path`, in shards of `shard_size` bytes unless that is 0. Raises
        RestoreError when there are files of these names already and `overwrite` is not given."""
        self._directory, self._name = os.path.split(os.path.abspath(path))
        self._shard_size = shard_size
        self._whole = hashlib.sha256()
        self._size = 0
        self._written: list[_Growing] = []
        taken = self._taken()
        if taken and not overwrite:
            raise RestoreError(
                "it exists already",
                where=os.fsdecode(os.path.join(self._directory, min(taken))),
                advice="--overwrite replaces it",
            )

    def write(self, data: bytes) -> None:
        """Append `data`. Raises StoreError (a full disk)."""
        view = memoryview(data)
        self._size += len(view)
        if self._shard_size:
            self._whole.update(view)
        try:
            while view:
                if not self._written or self._room() == 0:
                    self._begin()
                count = self._room()
                self._written[-1].write(view[:count])
                view = view[count:]
        except OSError as error:
            raise disk_error(error, self._where()) from error

    def commit(self) -> Part:
        """Name everything; durable on return. What all of it is, joined. Raises StoreError,
        with nothing named."""
        parts = self._parts()
        whole = Part(self._name, self._size, self._whole.digest() if self._shard_size
                     else parts[0].digest)  # fmt: skip
        sums = _Growing(self._directory)
        self._written.append(sums)
        for line in self._sums(parts, whole):
            sums.write(memoryview(line))
        names = [*(part.name for part in parts), self._sums_name]
        try:
            for growing in self._written:
                growing.pending.finish()
            self._name_all(names)
            sync_directory(self._directory)
        except OSError as error:
            raise disk_error(error, self._where()) from error
        return whole

    @property
    def parts(self) -> int:
        """How many files hold the bundle."""
        return max(1, -(-self._size // self._shard_size)) if self._shard_size else 1

    def __enter__(self) -> BundleFiles:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for growing in self._written:
            growing.pending.discard()

    @property
    def _sums_name(self) -> bytes:
        return self._name + b".sha256"

    def _where(self) -> Path:
        return Path(os.fsdecode(os.path.join(self._directory, self._name)))

    def _begin(self) -> None:
        if self._written:
            self._written[-1].pending.finish()
        self._written.append(_Growing(self._directory))

    def _room(self) -> int:
        """Bytes that the last file may still get."""
        return self._shard_size - self._written[-1].size if self._shard_size else 2**62

    def _parts(self) -> list[Part]:
        digits = max(SHARD_DIGITS, len(str(len(self._written) - 1)))
        return [
            Part(
                self._name + (b".%0*d" % (digits, number) if self._shard_size else b""),
                growing.size,
                growing.hasher.digest(),
            )
            for number, growing in enumerate(self._written)
        ]

    def _sums(self, parts: list[Part], whole: Part) -> list[bytes]:
        lines = [checksum_line(part.digest, part.name) for part in parts]
        if self._shard_size:
            text = f"all of them, joined in this order, are {whole.digest.hex()}"
            lines.append(comment_line(text, whole.name))
        return lines

    def _name_all(self, names: list[bytes]) -> None:
        """Name the files, the checksums last; older ones of an old bundle go first."""
        stale = self._taken() - set(names)
        given: list[bytes] = []
        try:
            self._remove(self._sums_name)
            for growing, name in zip(self._written, names, strict=True):
                growing.pending.commit(name)
                given.append(name)
        except OSError:
            for name in given:
                self._remove(name)
            raise
        for name in stale:
            self._remove(name)

    def _remove(self, name: bytes) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(os.path.join(self._directory, name))

    def _taken(self) -> set[bytes]:
        """The names of a bundle of this name that are there."""
        ours = re.compile(re.escape(self._name) + rb"(\.\d{3,}|\.sha256)?", re.DOTALL)
        try:
            return set(filter(ours.fullmatch, os.listdir(self._directory)))
        except OSError as error:
            raise disk_error(error, self._where()) from error
