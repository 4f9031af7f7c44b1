"""The lines of an audit as rows for machines: JSON, CSV, Parquet. One schema (docs/audit.md).

A row is flat. In JSON a name that is no UTF-8 has its bytes beside it as everywhere; in the others
names are as people see them, in which different names differ.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from cas.audit.elsewhere import Places
from cas.audit.filemap import Extent
from cas.audit.lines import Line
from cas.audit.pages import Place
from cas.audit.sums import Key, Sum
from cas.audit.trace import Trace
from cli import output

SCHEMA = 1
TEXT, NUMBER, TRUTH = "text", "number", "truth"
COLUMNS = {
    "tier": TEXT, "path": TEXT, "inner": TEXT, "number": NUMBER, "offset": NUMBER,
    "inner_offset": NUMBER, "skeleton": TRUTH, "chunk": TEXT, "length": NUMBER, "held": TRUTH,
    "again": TRUTH, "from_source": TEXT, "from_host": TEXT, "from_tier": TEXT, "from_path": TEXT,
    "from_inner": TEXT, "from_offset": NUMBER, "from_inner_offset": NUMBER, "run": TEXT,
    "time_ms": NUMBER, "lane": NUMBER, "adopted": TRUTH, "wire": NUMBER, "only": TRUTH,
    "places": NUMBER,
}  # fmt: skip
NAMES = ("path", "inner", "from_path", "from_inner")  # bytes


@dataclass(frozen=True, slots=True)
class Row:
    """A line, and what was found out about it besides: whether no other tier has the chunk, and
    where else it is (None where that was not asked)."""

    line: Line
    only: bool | None = None
    places: Places | None = None

    def fields(self) -> dict[str, Any]:
        """The row by `COLUMNS`, names as bytes; None for what is not known or does not apply."""
        line = self.line
        return {
            "tier": line.tier or None,
            "path": b"/" + line.path if line.path else None,
            **_extent(line.extent),
            "chunk": line.chunk.hex(),
            "length": line.length,
            "held": line.trace is not None,
            "again": line.again,
            **_trace(line.trace),
            "only": self.only,
            "places": None if self.places is None else self.places.count,
        }


def _extent(extent: Extent | None) -> dict[str, Any]:
    return {
        "inner": extent.inner or None if extent else None,
        "number": extent.number if extent else None,
        "offset": extent.offset if extent else None,
        "inner_offset": extent.inner_offset if extent else None,
        "skeleton": extent.skeleton if extent else None,
    }


def _trace(trace: Trace | None) -> dict[str, Any]:
    if trace is None:
        return {}
    origin = trace.origin
    extent = trace.place.extent if trace.place else None
    return {
        "from_source": origin.source,
        "from_host": trace.host or None,
        "from_tier": origin.tier,
        "from_path": b"/" + trace.place.path if trace.place else None,
        "from_inner": extent.inner or None if extent else None,
        "from_offset": extent.offset if extent else None,
        "from_inner_offset": extent.inner_offset if extent else None,
        "run": origin.run.hex(),
        "time_ms": origin.time_ms,
        "lane": origin.lane,
        "adopted": trace.adopted,
        "wire": trace.wire,
    }


def flat(row: Row) -> list[Any]:
    """The row's values in the order of `COLUMNS`, names as people see them."""
    fields = row.fields()
    values = [fields.get(name) for name in COLUMNS]
    return [_shown(value) for value in values]


def _shown(value: Any) -> Any:
    if isinstance(value, bytes):
        return output.show(value)
    return output.printable(value) if isinstance(value, str) else value


def write_csv(rows: Iterable[Row]) -> None:
    """All rows on standard output, a line of titles first. Truths are `true` and `false`."""
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(COLUMNS)
    for row in rows:
        values = flat(row)
        writer.writerow([str(v).lower() if isinstance(v, bool) else v for v in values])


def extent_event(row: Row) -> None:
    """One row as JSON."""
    fields: dict[str, Any] = {}
    for name, value in row.fields().items():
        fields |= output.name_fields(name, value) if isinstance(value, bytes) else {name: value}
    if row.places is not None:
        fields["at"] = [place_fields(tier, place) for tier, place in row.places.first]
    output.json_line({"event": "extent", **fields})


def place_fields(tier: str, place: Place) -> dict[str, object]:
    """A place that has a chunk now."""
    extent = place.extent
    return {
        "tier": tier,
        **output.name_fields("path", b"/" + place.path),
        **(output.name_fields("inner", extent.inner) if extent.inner else {"inner": None}),
        "offset": extent.offset,
        "inner_offset": extent.inner_offset,
    }


def sum_event(key: Key, part: Sum) -> None:
    """What came from one origin."""
    origin = {"from_source": key.source, "from_tier": key.tier, "run": key.run.hex()}
    output.json_line({"event": "sum", **origin, **sum_fields(part)})


def sum_fields(part: Sum) -> Mapping[str, int]:
    """A sum's numbers."""
    return {"chunks": part.chunks, "bytes": part.size, "wire": part.wire}
