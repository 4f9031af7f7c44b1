"""What the tables see of LMDB: rows of bytes, as they are in one transaction."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile
from operator import itemgetter
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # `indexes/env.py` makes the views, and is the one that knows LMDB
    from indexes.env import Handles, Transaction

Row = tuple[bytes, bytes]  # key, value


class View:
    """One state of the tables, for as long as its transaction lasts. All bytes are copies."""

    def __init__(self, txn: Transaction, handles: Handles) -> None:
        self._txn = txn
        self._handles = handles

    def get(self, table: bytes, key: bytes) -> bytes | None:
        """The value at `key`, or None."""
        return self._txn.get(key, db=self._handles[table])

    def has(self, table: bytes, keys: Sequence[bytes]) -> list[bool]:
        """For each of `keys` whether it is in `table`; looked up in key order."""
        cursor = self._txn.cursor(self._handles[table])
        found = {key for key in sorted(keys) if cursor.set_key(key)}
        return [key in found for key in keys]

    def last_key(self, table: bytes) -> bytes | None:
        """The highest key, or None when `table` is empty."""
        cursor = self._txn.cursor(self._handles[table])
        return cursor.key() if cursor.last() else None

    def scan(self, table: bytes, prefix: bytes = b"", after: bytes = b"") -> Iterator[Row]:
        """The rows whose keys begin with `prefix`, in key order, from the first past `after`."""
        cursor = self._txn.cursor(self._handles[table])
        start = after or prefix
        found = cursor.set_range(start) if start else cursor.first()
        if found and after and cursor.key() == after:
            found = cursor.next()
        rows = cursor.iternext() if found else iter(())
        return takewhile(lambda row: row[0].startswith(prefix), rows)


class Update(View):
    """A view that can be changed."""

    @property
    def number(self) -> int:
        """The number of this transaction; later ones have higher numbers."""
        return self._txn.id()

    def put(self, table: bytes, rows: Iterable[Row], *, replace: bool = True) -> None:
        """Write `rows`; of several with one key the last stays, or without `replace` the first,
        that which is there already before all."""
        ordered = sorted(rows, key=itemgetter(0))
        if ordered:
            self._txn.cursor(self._handles[table]).putmulti(ordered, overwrite=replace)

    def delete(self, table: bytes, prefix: bytes) -> None:
        """Remove the rows whose keys begin with `prefix`."""
        for key, _ in list(self.scan(table, prefix)):
            self._txn.delete(key, db=self._handles[table])
