"""Packs opened for reading: few descriptors for many packs, while a writer may be sealing one.

The index names a pack by number. Its file is called `open-<pack id>` until it is sealed and renamed
to its SHA-256; a descriptor stays good across that. Opening can meet the moment between the rename
and the index's knowing it, so a name that is gone is asked for again, and then looked for by the
pack id that every pack carries in its header.
"""

from __future__ import annotations

import errno
import os
import threading
from collections import OrderedDict

from cas.descriptor import Descriptor
from cas.errors import DamageError, FormatError, StoreError
from cas.interfaces import Index, PackRow
from cas.pack import HEADER_SIZE, decode_header
from cas.store.layout import is_pack_name

OPEN_AT_ONCE = 32
READ_ONLY = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW


class OpenPacks:
    """Reads packs by their number in `index`; safe to use from several threads."""

    def __init__(self, index: Index, directory: bytes) -> None:
        self._index = index
        self._directory = directory
        self._rows: dict[int, PackRow] = {}
        self._open: OrderedDict[int, Descriptor] = OrderedDict()
        self._lock = threading.Lock()

    def row(self, pack: int, *, fresh: bool = False) -> PackRow:
        """What the index says of `pack`, asked again if `fresh`. Raises DamageError."""
        row = None if fresh else self._rows.get(pack)
        if row is None:
            self._rows = self._index.packs()
            row = self._rows.get(pack)
        if row is None:
            raise DamageError(f"the index has no pack {pack}", advice="rebuild the index")
        return row

    def read(self, pack: int, size: int, offset: int) -> bytes:
        """Up to `size` bytes at `offset` of `pack`. Raises DamageError, StoreError."""
        descriptor = self._descriptor(pack)
        try:
            return os.pread(descriptor.fd, size, offset)
        except OSError as error:
            raise DamageError(
                f"cannot be read: {error.strerror}", where=self.row(pack).name
            ) from error

    def close(self) -> None:
        """Let go of all descriptors, and of what the index said; reading asks again."""
        with self._lock:
            self._open.clear()
            self._rows = {}

    def _descriptor(self, pack: int) -> Descriptor:
        with self._lock:
            descriptor = self._open.get(pack)
            if descriptor is None:
                descriptor = self._open[pack] = self._find(pack)
                if len(self._open) > OPEN_AT_ONCE:
                    self._open.popitem(last=False)
            self._open.move_to_end(pack)
            return descriptor

    def _find(self, pack: int) -> Descriptor:
        for fresh in (False, True):
            row = self.row(pack, fresh=fresh)
            descriptor = self._try(os.fsencode(row.name), row.id)
            if descriptor is not None:
                return descriptor
        for name in filter(is_pack_name, os.listdir(os.fsdecode(self._directory))):
            descriptor = self._try(os.fsencode(name), row.id)
            if descriptor is not None:
                return descriptor
        raise DamageError("this pack is missing", where=row.name)

    def _try(self, name: bytes, pack_id: bytes) -> Descriptor | None:
        """The file `name` if it is the pack of this id."""
        try:
            descriptor = Descriptor(os.open(os.path.join(self._directory, name), READ_ONLY))
            header = os.pread(descriptor.fd, HEADER_SIZE, 0)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise _unreadable(error, os.fsdecode(name)) from error
        try:
            return descriptor if decode_header(header) == pack_id else None
        except FormatError:
            return None


def _unreadable(error: OSError, name: str) -> StoreError:
    """Damage if the disk says so; the rest (rights, too many files open) is not the pack's."""
    kind = DamageError if error.errno in (errno.EIO, errno.ELOOP) else StoreError
    return kind(f"cannot be read: {error.strerror}", where=f"pack {name}")
