"""How an audit is shown to people: extents by file, and sums by origin."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

from cas.audit.sums import Key, Sum
from cli import output
from cli.summary import print_facts, print_table
from cli.table import Column, cut_front

if TYPE_CHECKING:
    from cas.audit.elsewhere import Places
    from cas.audit.filemap import Extent
    from cas.audit.lines import Line
    from cas.audit.pages import Place
    from cas.audit.trace import Trace
    from cli.auditrows import Row

DIGITS = 12  # of a chunk's id
RUN_DIGITS = 8
NAME_WIDTH = 16  # of a fact about one chunk
PLACES_SHOWN = 20
ORIGINS = (
    Column("first had from", right=False),
    Column("source", right=False, expendable=2),
    Column("run", right=False, expendable=1),
    Column("chunks", expendable=3),
    Column("bytes"),
    Column("wire"),
)
FILES = (
    Column("in no other tier"),
    Column("bytes"),
    Column("file", right=False),
)
FILES_SHOWN = 20
NAME_LEAST, NUMBERS_WIDTH = 20, 32  # cells, of a file's name and of what stands before it


class Extents:
    """Writes extents, below a line for each file and each member of an archive."""

    def __init__(self) -> None:
        self._last: tuple[str, bytes, bytes] | None = None

    def write(self, row: Row) -> None:
        """One extent, and where else its chunk is."""
        line = row.line
        inner = line.extent.inner if line.extent else b""
        if (line.tier, line.path, inner) != self._last and (line.tier or line.path):
            output.result(f"{output.printable(line.tier)}:{_file(line.path, inner)}")
        self._last = line.tier, line.path, inner
        output.result(f"  {_offset(line):>14} {extent_text(line)}")
        for text in places_text(row.places, line):
            output.result(f"{'':>16} {text}")


def extent_text(line: Line) -> str:
    """Length, chunk, its cost, and where it was first had from."""
    head = f"{line.length:>9,} {line.chunk.hex()[:DIGITS]}"
    if line.trace is None:
        return f"{head} {'':>9} not here"
    run = line.trace.origin.run.hex()[:RUN_DIGITS]
    return f"{head} {line.trace.wire:>9,} {run} {origin_text(line.trace)}"


def origin_text(trace: Trace) -> str:
    """Where a chunk was first had from, in one name."""
    at = place_text(trace.place) if trace.place else " a place that is not known any more"
    return f"{output.printable(trace.origin.tier)}:{at}"


def place_text(place: Place) -> str:
    """A file, and the place in it."""
    extent = place.extent
    offset = extent.inner_offset if extent.inner else extent.offset
    at = " skeleton" if extent.skeleton else "" if offset is None else f" +{offset:,}"
    return _file(place.path, extent.inner) + at


def places_text(places: Places | None, line: Line) -> list[str]:
    """Where else a chunk is, but for the line's own place."""
    if places is None:
        return []
    others = [
        f"also {output.printable(tier)}:{place_text(place)}"
        for tier, place in places.first
        if not (tier == line.tier and place.path == line.path and place.extent == line.extent)
    ]
    more = places.count - len(places.first) + max(len(others) - PLACES_SHOWN, 0)
    shown = others[:PLACES_SHOWN]
    return [*shown, f"and {output.plural(more, 'more place')}"] if more else shown


def print_chunk(row: Row) -> None:
    """All about one chunk."""
    trace = row.line.trace
    if trace is None:
        return
    origin = trace.origin
    host = f", which calls itself {output.printable(trace.host)}" if trace.host else ""
    way = "adopted" if trace.adopted else f"fetched over lane {origin.lane}"
    if trace.meta:
        way = "a page or recipe, not content"
    facts = [
        ("chunk", trace.chunk.hex()),
        ("length", f"{trace.length:,}"),
        ("first had from", origin_text(trace) if not trace.meta else output.printable(origin.tier)),
        ("source", f"{output.printable(origin.source)}{host}"),
        ("when", f"{output.moment(origin.time_ms)}, run {origin.run.hex()}"),
        ("how", f"{way}, {trace.wire:,} bytes on the wire"),
    ]
    print_facts(facts, NAME_WIDTH)
    for text in places_text(row.places, row.line):
        output.result(f"{'':{NAME_WIDTH}}{text}")


def print_sums(
    sums: Iterable[tuple[Key, Sum]],
    total: Sum,
    extra: Iterable[tuple[str, Sum]],
    size: output.Sizes,
) -> None:
    """A table of what came from where, in the order given, and of what is `extra`."""
    rows = [
        [output.printable(key.tier), output.printable(key.source), key.run.hex()[:RUN_DIGITS],
         *_numbers(part, size)]
        for key, part in sums
    ]  # fmt: skip
    named = [("together", total), *extra]
    print_table(ORIGINS, [*rows, *([name, "", "", *_numbers(part, size)] for name, part in named)])


class FileSums:
    """Adds up what came from each file of a source, and what of that no other tier has."""

    def __init__(self) -> None:
        self._files: dict[tuple[str, bytes], list[int]] = {}

    def add(self, row: Row) -> None:
        """One chunk more."""
        trace = row.line.trace
        if trace is not None:
            path = trace.place.path if trace.place else b""
            sums = self._files.setdefault((trace.origin.tier, path), [0, 0])
            sums[0] += trace.length if row.only else 0
            sums[1] += trace.length

    def show(self, size: output.Sizes) -> None:
        """A table of the files that have most of it."""
        ordered = sorted(self._files.items(), key=lambda item: item[1], reverse=True)
        rows = [
            [size(only), size(whole), _fitted(tier, path)]
            for (tier, path), (only, whole) in ordered[:FILES_SHOWN]
        ]  # fmt: skip
        print_table(FILES, rows)
        if len(ordered) > FILES_SHOWN:
            output.result(f"and {output.plural(len(ordered) - FILES_SHOWN, 'more file')}")
        output.result("")


def _fitted(tier: str, path: bytes) -> str:
    """A file, for the last column; on a terminal what tells it apart, its end."""
    name = f"{output.printable(tier)}:{output.show_path(path) if path else '?'}"
    columns = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    return name if columns is None else cut_front(name, max(NAME_LEAST, columns - NUMBERS_WIDTH))


def _numbers(part: Sum, size: output.Sizes) -> list[str]:
    return [output.number(part.chunks), size(part.size), size(part.wire)]


def _file(path: bytes, inner: bytes) -> str:
    return output.show_path(path) + ("!/" + output.show(inner) if inner else "")


def _offset(line: Line) -> str:
    extent: Extent | None = line.extent
    if extent is None:
        return ""
    offset = extent.inner_offset if extent.inner else extent.offset
    return "skeleton" if extent.skeleton else "-" if offset is None else f"{offset:,}"
