"""Rows as a Parquet file, where pyarrow is installed; the only place that knows it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import ExitStack, suppress
from itertools import islice
from pathlib import Path
from typing import Any

from cas.errors import CasError, UsageError

BATCH = 20_000  # rows of one group


class ParquetFile:
    """A file that gets its name when all rows are in it."""

    def __init__(self, path: Path, columns: Mapping[str, str]) -> None:
        """`columns` by name, of `text`, `number` or `truth`. Raises UsageError without pyarrow, or
        if the file is there already."""
        try:
            import pyarrow as pa
            import pyarrow.parquet as pq
        except ImportError:
            raise UsageError(
                "pyarrow is not installed",
                where="--parquet",
                advice="pip install 'cas-sync[parquet]'",
            ) from None
        if os.path.lexists(path):
            raise UsageError("is there already", where=str(path), advice="write to another name")
        types = {"text": pa.string(), "number": pa.int64(), "truth": pa.bool_()}
        self._arrow: Any = pa
        self._writer: Any = pq.ParquetWriter
        self._schema: Any = pa.schema([(name, types[kind]) for name, kind in columns.items()])
        self._path = path
        self._unfinished = path.with_name(f".cas-{path.name}")

    def write(self, rows: Iterable[list[Any]]) -> None:
        """Write all rows, each in the order of the columns. Raises CasError on a full disk."""
        rows = iter(rows)
        try:
            with ExitStack() as stack:
                stack.callback(self._remove)
                with self._writer(self._unfinished, self._schema) as writer:
                    while batch := list(islice(rows, BATCH)):
                        writer.write_table(self._table(batch))
                os.rename(self._unfinished, self._path)
        except OSError as error:
            what = f"cannot be written: {error.strerror or error}"
            raise CasError(what, where=str(self._path)) from error

    def _table(self, rows: list[list[Any]]) -> Any:
        arrays = [
            self._arrow.array(column, type=field.type)
            for column, field in zip(zip(*rows, strict=True), self._schema, strict=True)
        ]
        return self._arrow.Table.from_arrays(arrays, schema=self._schema)

    def _remove(self) -> None:
        with suppress(FileNotFoundError):
            os.unlink(self._unfinished)
