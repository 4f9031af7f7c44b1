"""`cas audit`: where what is held was first had from."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cas.errors import EXIT_DAMAGE, EXIT_DONE, DamageError, NotHeldError, UsageError
from cli import options, output

if TYPE_CHECKING:
    from cas.audit.lines import Line
    from cas.audit.sums import Sum, Sums
    from cas.audit.trace import Tracer
    from cas.ids import Digest
    from cas.store.store import Store
    from cli.audited import Subject
    from cli.auditrows import Row


@dataclass(frozen=True, slots=True)
class _Wish:
    """How it is to be shown."""

    places: bool
    extents: bool
    as_csv: bool
    as_json: bool
    parquet: Path | None
    size: output.Sizes

    @property
    def for_machines(self) -> bool:
        return self.as_csv or self.as_json or self.parquet is not None


@dataclass(slots=True)
class _Result:
    """What an audit comes to: rows to be shown as they are made, and what is known after them."""

    kind: str
    name: str
    rows: Iterable[Row]
    sums: Sums
    missing: Sum
    damaged: list[DamageError]
    only: Sum | None = None


@click.command("audit", short_help="Say where chunks, files, tiers were first had from.")
@click.argument("subject", metavar="[TIER[:PATH]|DIGEST|CHUNK|RUN]", required=False)
@click.option("--from", "origin", metavar="SOURCE|TIER", help="What is here because of this one?")
@click.option("--places", is_flag=True, help="Look for every other place of each chunk.")
@click.option("-x", "--extents", is_flag=True, help="List every extent, not only sums.")
@click.option("--csv", "as_csv", is_flag=True, help="Every extent as CSV.")
@click.option(
    "--parquet",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Every extent to a Parquet file; needs pyarrow.",
)
@options.plan_option
@options.store_option
@options.bytes_option
@options.json_option
def command(
    subject: str | None,
    origin: str | None,
    places: bool,
    extents: bool,
    as_csv: bool,
    parquet: Path | None,
    plan_path: str | None,
    store_path: Path | None,
    exact: bool,
    as_json: bool,
) -> int:
    """Say of a chunk, a file, a tier or a run where each chunk of it was first had from: source,
    path, place in it, run, time, and what it cost on the wire. Without any of them, the sums of all
    that is held.

    A file is TIER:PATH, a path in an archive, or a SHA-256. Chunks and runs are named by the first
    digits of their ids.

    \b
    Examples:
      cas audit
      cas audit 05-oci-image
      cas audit source:/srv/llama.cpp.tar.gz!/llama.cpp/README.md
      cas audit --places 5f3a9c21
      cas audit --from 01-model-runtime
    """
    from cli import wiring

    if (subject is not None and origin is not None) or as_csv + as_json + bool(parquet) > 1:
        raise UsageError("give one of TIER and --from, and one of --csv, --json and --parquet")
    wish = _Wish(places, extents, as_csv, as_json, parquet, output.sizes(exact))
    with wiring.reading(wiring.store_root(store_path, plan_path)) as store:
        from cas.audit.trace import Tracer

        with closing(Tracer(store)) as tracer:
            if origin is not None:
                result = _from(store, tracer, origin, wish)
            elif subject is None:
                result = _everything(store, tracer, wish)
            else:
                result = _of(store, tracer, subject, wish)
            _show(result, wish)
            damaged = tracer.damaged
    if result.kind == "run" and not result.sums.total.chunks:
        output.say(f"{result.name}: nothing that is held was first had in this run")
    for damage in damaged:
        output.say_error(damage)
    return EXIT_DAMAGE if damaged else EXIT_DONE


def _of(store: Store, tracer: Tracer, text: str, wish: _Wish) -> _Result:
    """An audit of one thing."""
    from cas.audit.lines import Audit, Line, Origins, lines_from
    from cas.audit.sums import Sum, Sums
    from cas.ids import Digest
    from cli.audited import subject_of

    subject = subject_of(store, text)
    sums, missing = Sums(), Sum()
    if subject.kind == "chunk":
        chunk = Digest(subject.id)
        trace = tracer.trace(chunk)
        length = trace.length if trace else 0
        lines: Iterable[Line] = [Line("", b"", chunk, length, None, trace, again=False)]
    elif subject.kind == "run":
        lines = lines_from(tracer, store.index, Origins(run=subject.id), tracer.damaged)
    else:
        lines = subject.lines(store, Audit(tracer))
    rows = _rows(store, tracer, _counted(lines, sums, missing), wish)
    return _Result(_kind(subject), subject.name, rows, sums, missing, tracer.damaged)


def _kind(subject: Subject) -> str:
    return "directory" if subject.kind == "tier" and subject.path else subject.kind


def _everything(store: Store, tracer: Tracer, wish: _Wish) -> _Result:
    """All that is held: its sums, or every chunk."""
    from cas.audit.lines import Origins, lines_from
    from cas.audit.sums import Sum, Sums, sum_all

    if not (wish.extents or wish.as_csv or wish.parquet):
        sums = sum_all(store.index, tracer.records, tracer.damaged)
        return _Result("store", "", (), sums, Sum(), tracer.damaged)
    sums = Sums()
    lines = lines_from(tracer, store.index, Origins(), tracer.damaged)
    rows = _rows(store, tracer, _counted(lines, sums, Sum()), wish)
    return _Result("store", "", rows, sums, Sum(), tracer.damaged)


def _from(store: Store, tracer: Tracer, name: str, wish: _Wish) -> _Result:
    """What is held from one source or tier, and what of it no other tier has."""
    from cas.audit.elsewhere import other_chunks
    from cas.audit.lines import chunks_from, lines_from
    from cas.audit.sums import Sum, Sums
    from cli.auditrows import Row
    from cli.origins import origins_named

    origins, others = origins_named(store, name)
    only = set(chunks_from(tracer.records, store.index, origins, tracer.damaged))
    if not only and tracer.damaged:
        raise tracer.damaged[0]
    if not only:
        raise NotHeldError("nothing that is held was first had from it", where=name)
    other_chunks(store, others, only)
    sums, alone = Sums(), Sum()
    lines = _counted(lines_from(tracer, store.index, origins, []), sums, Sum())
    rows = (
        Row(row.line, row.line.chunk in only, row.places)
        for row in _rows(store, tracer, _alone(lines, only, alone), wish)
    )
    return _Result("origin", name, rows, sums, Sum(), tracer.damaged, alone)


def _alone(lines: Iterable[Line], only: set[Digest], alone: Sum) -> Iterator[Line]:
    """`lines`, those whose chunk is in `only` added up."""
    for line in lines:
        if line.chunk in only and line.trace is not None:
            alone.add(line.length, line.trace.wire)
        yield line


def _counted(lines: Iterable[Line], sums: Sums, missing: Sum) -> Iterator[Line]:
    """`lines`, each chunk of them added up."""
    for line in lines:
        if not line.again:
            trace = line.trace
            if trace is None:
                missing.add(line.length, 0)
            elif trace.meta:
                sums.meta.add(line.length, trace.wire)
            else:
                sums.add(trace.origin, line.length, trace.wire)
        yield line


def _rows(store: Store, tracer: Tracer, lines: Iterable[Line], wish: _Wish) -> Iterator[Row]:
    from cas.audit.elsewhere import find_places
    from cli.auditrows import Row

    if wish.places:
        lines = list(lines)
        found = find_places(store, tracer.pages, {line.chunk for line in lines})
        yield from (Row(line, places=found[line.chunk]) for line in lines)
    else:
        yield from map(Row, lines)


def _show(result: _Result, wish: _Wish) -> None:
    from cli import auditrows
    from cli.parquet import ParquetFile

    if wish.as_csv:
        auditrows.write_csv(result.rows)
    elif wish.parquet is not None:
        ParquetFile(wish.parquet, auditrows.COLUMNS).write(map(auditrows.flat, result.rows))
    elif wish.as_json:
        _show_json(result)
    else:
        _show_text(result, wish)


def _show_json(result: _Result) -> None:
    from cli import auditrows

    head = {"schema": auditrows.SCHEMA, "kind": result.kind}
    name = output.name_fields("name", os.fsencode(result.name))
    output.json_line({"event": "audit", **head, **name})
    for row in result.rows:
        auditrows.extent_event(row)
    for key, part in result.sums.content.items():
        auditrows.sum_event(key, part)
    total = {
        **auditrows.sum_fields(result.sums.total),
        "meta": auditrows.sum_fields(result.sums.meta),
        "again": auditrows.sum_fields(result.sums.again),
        "missing": auditrows.sum_fields(result.missing),
        "only": None if result.only is None else auditrows.sum_fields(result.only),
        "damaged": [str(damage) for damage in result.damaged],
    }
    output.json_line({"event": "total", **total})


def _show_text(result: _Result, wish: _Wish) -> None:
    from cli.auditing import Extents, FileSums, print_chunk, print_sums

    if result.kind == "chunk":
        for row in result.rows:
            print_chunk(row)
        return
    extents, files = Extents(), FileSums()
    is_listed = wish.extents or wish.places or result.kind == "file"
    for row in result.rows:
        if result.only is not None:
            files.add(row)
        if is_listed:
            extents.write(row)
    if result.only is not None:
        files.show(wish.size)
    extra = [
        (name, part)
        for name, part in (
            ("not here", result.missing),
            ("pages and recipes", result.sums.meta),
            ("received again", result.sums.again),
            ("in no other tier", result.only),
        )
        if part is not None and (part.chunks or part is result.only)
    ]
    print_sums(result.sums.content.items(), result.sums.total, extra, wish.size)
