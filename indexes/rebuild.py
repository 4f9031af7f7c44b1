"""An index from what it is derived from: the records of all packs, and the snapshots.

A record's table says which chunks its segment holds; pages and recipes are chunks of segments that
are marked META, and snapshots name their pages. So there are three passes: over the records; over
the pages and recipes that no snapshot leads to; over the snapshots, oldest first, so that the
newest entry of a path stays. A page is read once, at the newest snapshot that has it.

Nothing here reads a file. What is damaged is reported and left out, and the rest goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields, replace

from cas import archive, page, recipe
from cas.entry import Entry
from cas.errors import CasError, FormatError
from cas.ids import Digest
from cas.interfaces import Changes, FileRow, Location, PackRow, SegmentPlace, SnapshotRow
from cas.pack import HEADER_SIZE, Record, Segment
from cas.snapshot import Snapshot

BATCH = 50_000  # rows of one transaction, about

PackRecords = tuple[int, PackRow, Iterable[Record]]
ReadObject = Callable[[Digest], bytes]
Report = Callable[[str, CasError], None]


def rebuild(
    packs: Iterable[PackRecords],
    snapshots: Iterable[tuple[Digest, Snapshot]],
    read_object: ReadObject,
    report: Report,
) -> Iterator[Changes]:
    """The rows of an index over `packs` (number, row, records in order) and `snapshots`.

    Each of the Changes must be committed before the next is asked for: `read_object` (the encoded
    page or recipe of an id) may look into the index that is being made. `report` is told of what
    could not be used (where, why): a pack whose records raise CasError, from there on; a page or
    recipe that `read_object` raises CasError for, or that cannot be decoded.

    An open pack that breaks off has the size of its whole records. Snapshots come out as not
    complete, whatever they were: to establish that is the caller's. Pages of a scan that has not
    finished are not pending any more; that costs sending them again if they are collected.
    """
    objects: dict[Digest, None] = {}
    yield from _batches(_pack_rows(packs, objects, report))
    in_order = sorted(snapshots, key=lambda item: (item[1].finished_ms, item[0]))
    for _, snapshot in in_order:
        for ref in snapshot.pages:
            objects.pop(ref.id, None)
    yield from _batches(_object_rows(objects, read_object, report))
    yield from _batches(_snapshot_rows(in_order, read_object, report))


def _batches(parts: Iterable[Changes]) -> Iterator[Changes]:
    whole, size = Changes(), 0
    for part in parts:
        for field in fields(Changes):
            rows = getattr(part, field.name)
            getattr(whole, field.name).extend(rows)
            size += len(rows)
        if size >= BATCH:
            yield whole
            whole, size = Changes(), 0
    if whole:
        yield whole


def _pack_rows(
    packs: Iterable[PackRecords], objects: dict[Digest, None], report: Report
) -> Iterator[Changes]:
    for number, row, records in packs:
        end = HEADER_SIZE
        try:
            for record in records:
                end = record.end
                if record.segment is not None:
                    if record.segment.meta:
                        objects.update(dict.fromkeys(record.segment.ids))
                    yield _segment_rows(number, record, record.segment)
        except CasError as error:
            report(f"pack {row.name}", error)
            if not row.sealed:
                row = replace(row, size=end)  # noqa: PLW2901  # the row as it is written
        yield Changes(packs=[(number, row)])


def _segment_rows(pack: int, record: Record, segment: Segment) -> Changes:
    place = SegmentPlace(
        pack,
        record.offset,
        record.payload_offset,
        record.payload_size,
        segment.codec,
        segment.plain_size,
    )
    changes = Changes(segments=[(segment.frame, segment.number, place)])
    offset = 0
    for chunk, length in zip(segment.ids, segment.lengths, strict=True):
        changes.chunks.append((chunk, Location(segment.frame, segment.number, offset, length)))
        offset += length
    return changes


def _object_rows(
    objects: Iterable[Digest], read_object: ReadObject, report: Report
) -> Iterator[Changes]:
    for object_id in objects:
        yield _object_row(object_id, read_object, report)


def _object_row(object_id: Digest, read_object: ReadObject, report: Report) -> Changes:
    try:
        data = read_object(object_id)
        if data.startswith(page.MAGIC):
            return _page_recipes(page.decode_page(data))
        if data.startswith((recipe.MAGIC, archive.MAGIC)):
            return _recipe_row(object_id, archive.decode_any_recipe(data))
        raise FormatError("neither a page nor a recipe")
    except CasError as error:
        report(f"object {object_id.hex()}", error)
        return Changes()


def _page_recipes(entries: list[Entry]) -> Changes:
    contents = (entry.content for entry in entries)
    return Changes(recipes=[(c.digest, c.parts) for c in contents if c is not None and c.parts])


def _recipe_row(recipe_id: Digest, found: archive.AnyRecipe) -> Changes:
    """That a recipe rebuilds the stream of its digest, if it has bytes and a digest: that of a
    file with very many holes is all zeros, and that of an archive's part among several."""
    useful = found.size and any(found.digest)
    return Changes(recipes=[(found.digest, (recipe_id,))] if useful else [])


def _snapshot_rows(
    snapshots: list[tuple[Digest, Snapshot]], read_object: ReadObject, report: Report
) -> Iterator[Changes]:
    newest = {
        (snapshot.source, snapshot.tier, ref.id): snapshot_id
        for snapshot_id, snapshot in snapshots
        for ref in snapshot.pages
    }
    for snapshot_id, snapshot in snapshots:
        for ref in snapshot.pages:
            if newest[snapshot.source, snapshot.tier, ref.id] == snapshot_id:
                try:
                    entries = page.decode_page(read_object(ref.id))
                except CasError as error:
                    report(f"page {ref.id.hex()} of {snapshot.tier}", error)
                else:
                    yield _page_rows(snapshot, ref.id, entries)
        row = SnapshotRow(snapshot_id, snapshot.tier, snapshot.finished_ms, complete=False)
        yield Changes(snapshots=[row])


def _page_rows(snapshot: Snapshot, page_id: Digest, entries: list[Entry]) -> Changes:
    changes = _page_recipes(entries)
    changes.files = [
        FileRow(snapshot.source, entry.path, snapshot.tier, page_id, number)
        for number, entry in enumerate(entries)
    ]
    return changes
