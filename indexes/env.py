"""An LMDB environment: tables of bytes, changed by transactions that are durable or were not.

What LMDB asks of its users is done here, and nowhere else is LMDB seen:

- Its map has a size, and a write past it fails. The map starts small; when it is full the
  transaction is given up, the map doubled while no thread is in it (`Gate`), and the work done
  again. A map that another process has grown is taken over in the same way.
- An environment may be open once in a process, since a second close would drop the first one's
  locks; and it must not be used after a fork. Both are refused.
- A reader that was killed keeps its place, and with it all pages it might read: cleared at opening.
- `writemap` stays off, so that a full disk is an error and not a SIGBUS. Two more ways to one are
  closed at opening: a lock file without blocks on a full disk, and a data file that ends before
  what its header says.

Errors of LMDB become StoreError, or DamageError where the file is not what LMDB wrote.
"""

from __future__ import annotations

import os
import struct
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TypeAlias, TypeVar

import lmdb

from cas.errors import DamageError, StoreError
from indexes import datafiles
from indexes.failure import REBUILD, another_schema, failure_of, missing
from indexes.gate import Gate
from indexes.view import Row, Update, View

MAP_SIZE = 64 * 2**20
MAP_LIMIT = 2**40  # of address space, not of memory or disk
READERS = 200  # at the same time, threads of all processes
BATCH = 1000  # rows that `Environment.rows` reads in one transaction
META = b"meta"
SCHEMA = b"schema"

Transaction: TypeAlias = "lmdb.Transaction[bytes]"
Handles: TypeAlias = "dict[bytes, lmdb._Database]"  # by the names of tables
Value = TypeVar("Value")


class Environment:
    """Named tables in one directory. Safe to use from several threads; `close` it at the end."""

    def __init__(
        self,
        path: Path,
        tables: Sequence[bytes],
        schema: int,
        *,
        create: bool = False,
        readonly: bool = False,
        map_size: int = MAP_SIZE,
        map_limit: int = MAP_LIMIT,
        metasync: bool = True,
    ) -> None:
        """Open `tables` of version `schema`; with `create`, make what is not there.

        Without `metasync` the last transaction may be undone by a power cut, never a part of it.
        Raises DamageError when the environment is missing or damaged, StoreError when it is of
        another version, open in this process already, or cannot be used here.
        """
        self.path = path
        self._map_limit = map_limit
        self._gate = Gate()
        self._writing = threading.Lock()
        self._closed = False
        with _mapped(path):
            if create:
                path.mkdir(mode=0o700, parents=True, exist_ok=True)
            elif not datafiles.is_there(path):
                raise missing(path)
            self._claim = datafiles.claim(path)
            try:
                datafiles.reserve_lock(path)
                self._env = lmdb.open(
                    os.fspath(path), map_size=map_size, readonly=readonly, create=create,
                    metasync=metasync, mode=0o600, max_dbs=len(tables) + 1, max_readers=READERS,
                )  # fmt: skip
            except BaseException:
                datafiles.release(self._claim)
                raise
            try:
                self._handles = self._set_up(tables, schema, create)
            except BaseException:
                self.close()
                raise

    @contextmanager
    def read(self) -> Iterator[View]:
        """One state of the tables; must not be entered again by the thread that is in it."""
        while True:
            with self._inside():
                txn = self._begin(write=False)
                if txn is not None:
                    with _mapped(self.path), _readable(self.path), txn:
                        yield View(txn, self._handles)
                    return
            self._adopt()

    def write(self, work: Callable[[Update], None]) -> None:
        """Do `work` in one transaction: all of it is durable on return, or nothing when this
        raises. `work` may be called several times, and must not change anything but the tables."""
        with self._writing:
            while not self._written(work):
                pass

    def _written(self, work: Callable[[Update], None]) -> bool:
        """Whether `work` was committed; if not, the map is another one now."""
        with self._inside():
            size = self.map_size
            txn = self._begin(write=True)
            if txn is not None and self._fits(txn, work):
                return True
        if txn is None:
            self._adopt()
        else:
            self._grow(size)
        return False

    def rows(
        self, table: bytes, decode: Callable[[Row], Value], prefix: bytes = b""
    ) -> Iterator[Value]:
        """The rows whose keys begin with `prefix`, in key order, decoded. A slow user holds no old
        state of the tables: each `BATCH` rows are of the state at the time they are reached."""
        after = b""
        while True:
            with self.read() as view:
                batch = list(islice(view.scan(table, prefix, after), BATCH))
                values = list(map(decode, batch))
            yield from values
            if len(batch) < BATCH:
                return
            after = batch[-1][0]

    @property
    def map_size(self) -> int:
        """Bytes of address space that the tables may fill before the map must grow."""
        return self._env.info()["map_size"]

    @property
    def used(self) -> int:
        """Bytes of the data file that have been in use at some time."""
        with self._inside():
            return (self._env.info()["last_pgno"] + 1) * self._env.stat()["psize"]

    def close(self) -> None:
        """Release the environment; it cannot be used any more."""
        if self._claim[0] == os.getpid():
            with self._gate.alone():
                self._shut()

    def _shut(self) -> None:
        if not self._closed:
            self._closed = True
            self._env.close()
            datafiles.release(self._claim)

    def _set_up(self, tables: Sequence[bytes], schema: int, create: bool) -> Handles:
        self._env.reader_check()
        data = self.path / datafiles.DATA
        # LMDB knows zeros for damage. The last pages may rightly be missing: they were free
        # again before they were written.
        if data.stat().st_size < self.used:
            datafiles.extend(data, self.used)
        while True:
            try:
                handles = self._open_tables(tables, schema, create)
                break
            except lmdb.MapResizedError:  # by another process, since the line before
                self._adopt()
        if create:
            datafiles.sync_directory(self.path)
            datafiles.sync_directory(self.path.parent)
        return handles

    def _open_tables(self, tables: Sequence[bytes], schema: int, create: bool) -> Handles:
        if self._env.flags()["readonly"]:
            handles = self._handles_of(tables, None, create=False)
            with self._env.begin() as txn:
                self._check_schema(txn.get(SCHEMA, db=handles[META]), schema)
            return handles
        # Handles from a transaction that only reads would end with it.
        with self._env.begin(write=True) as change:
            handles = self._handles_of(tables, change, create)
            if create and change.get(SCHEMA, db=handles[META]) is None:
                change.put(SCHEMA, schema.to_bytes(4, "little"), db=handles[META])
            self._check_schema(change.get(SCHEMA, db=handles[META]), schema)
        return handles

    def _handles_of(
        self, tables: Sequence[bytes], txn: Transaction | None, create: bool
    ) -> Handles:
        try:
            return {
                name: self._env.open_db(name, txn=txn, create=create) for name in (META, *tables)
            }
        except lmdb.NotFoundError:
            raise missing(self.path) from None

    def _check_schema(self, value: bytes | None, known: int) -> None:
        if value is None:
            raise missing(self.path)
        found = int.from_bytes(value, "little")
        if found != known:
            raise another_schema(self.path, found, known)

    @contextmanager
    def _inside(self) -> Iterator[None]:
        if self._claim[0] != os.getpid():
            raise StoreError("the index was opened before a fork", where=str(self.path))
        with self._gate.together():
            if self._closed:
                raise StoreError("the index is closed", where=str(self.path))
            yield

    def _begin(self, *, write: bool) -> Transaction | None:
        """A new transaction, or None when another process has grown the map."""
        with _mapped(self.path):
            try:
                return self._env.begin(write=write)
            except lmdb.MapResizedError:
                return None
            except lmdb.ReadersFullError:
                if not self._env.reader_check():
                    raise
                return self._env.begin(write=write)

    def _fits(self, txn: Transaction, work: Callable[[Update], None]) -> bool:
        """Whether `work` was committed; if not, the map is full and nothing has changed."""
        try:
            with _mapped(self.path), txn:
                work(Update(txn, self._handles))
        except lmdb.MapFullError:
            return False
        return True

    def _grow(self, size: int) -> None:
        with self._gate.alone():
            if self.map_size > size:
                return  # adopted by another thread meanwhile
            if size >= self._map_limit:
                raise StoreError(
                    f"the index is over its limit of {size} bytes", where=str(self.path)
                )
            self._resize(min(2 * size, self._map_limit))

    def _adopt(self) -> None:
        with self._gate.alone():
            self._resize(0)

    def _resize(self, size: int) -> None:
        """Change the map, with nobody in it; 0 takes the size that another process gave it."""
        if self._closed:
            return
        try:
            with _mapped(self.path):
                self._env.set_mapsize(size)
        except StoreError:
            self._shut()  # the old map is gone already: whoever used it would crash
            raise


@contextmanager
def _mapped(path: Path) -> Iterator[None]:
    try:
        yield
    except lmdb.MapFullError:
        raise
    except lmdb.Error as error:
        raise failure_of(type(error).__name__, str(error), path) from error
    except OSError as error:
        raise failure_of(type(error).__name__, error.strerror or str(error), path) from error


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    try:
        yield
    except (struct.error, ValueError) as error:
        raise DamageError(
            f"the index has a bad row: {error}", where=str(path), advice=REBUILD
        ) from error
