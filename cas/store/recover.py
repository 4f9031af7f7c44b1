"""What a writer finds when the last one was killed, and how it is set right.

Any pack file may hold more than the index knows: whole records whose transaction was not written,
then perhaps a torn one. Whole records are indexed, since their chunks were hashed before they were
written and their checksums say that they are still what was written; a torn tail is cut off. A
pack that was sealed but not yet entered under its new name is entered; one that ends in a seal but
kept its old name is named.

What the index knows was whole once. A pack where a known record is not, or is missing, is damaged
and not torn, and so is one that has whole records after a bad one. It stays as it is, since they
can still be read, and nothing is appended to it.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from dataclasses import replace
from pathlib import Path

from cas.errors import DamageError, FormatError
from cas.interfaces import Changes, Index, Location, PackRow, SegmentPlace
from cas.pack import (
    HEADER_SIZE,
    RECORD_MAGIC,
    Record,
    decode_header,
    read_payload,
    read_record,
)
from cas.store.durable import TEMPORARY_PREFIX, sync_directory
from cas.store.layout import OPEN_PREFIX, Layout, is_pack_name
from cas.store.packfile import READ_SIZE, PackFile, disk_error


def recover(layout: Layout, index: Index) -> tuple[Changes, list[PackFile]]:
    """What the index lacks, and the packs that can be appended to. Cuts off torn tails, ends an
    unfinished sealing, removes temporary files; writes to nothing else."""
    _remove_temporary(layout)
    known = index.packs()
    by_name = {row.name: number for number, row in known.items()}
    by_id = {row.id: number for number, row in known.items()}
    next_number = max(known, default=0) + 1
    changes = Changes()
    still_open: list[PackFile] = []
    for name in sorted(filter(is_pack_name, os.listdir(layout.packs))):
        is_open = name.startswith(OPEN_PREFIX)
        if not is_open and name in by_name:
            continue
        pack_id = _read_id(layout.packs / name, is_open=is_open)
        if pack_id is None:
            continue
        number = by_id.get(pack_id)
        if number is None:
            number, next_number = next_number, next_number + 1
        row = known.get(number, PackRow(pack_id, name, HEADER_SIZE, sealed=False))
        pack = _take_up(layout.packs, name, number, row, changes)
        if pack is not None:
            still_open.append(pack)
    return changes, still_open


def _remove_temporary(layout: Layout) -> None:
    prefix = os.fsdecode(TEMPORARY_PREFIX)
    for directory in (layout.root, layout.packs, layout.snapshots, layout.runs):
        for path in directory.glob(f"{prefix}*"):
            if path.is_file():
                path.unlink()


def _read_id(path: Path, *, is_open: bool) -> bytes | None:
    with path.open("rb") as file:
        head = file.read(HEADER_SIZE)
    if len(head) < HEADER_SIZE and is_open:
        path.unlink()  # killed before its header was written: it never held anything
        return None
    if is_open and not any(head):
        return None  # the power was cut before its header was on the disk
    try:
        return decode_header(head)
    except FormatError as error:
        raise FormatError(error.what, where=str(path), advice=error.advice) from error


def _take_up(
    directory: Path, name: str, number: int, row: PackRow, changes: Changes
) -> PackFile | None:
    path = directory / name
    size = path.stat().st_size
    try:
        with path.open("rb") as file:
            offsets, end, sealed = _index_tail(file.fileno(), number, size, row.size, changes)
    except FormatError as error:
        raise FormatError(
            error.what, where=f"{path}, {error.where}", advice=error.advice
        ) from error
    is_open = name.startswith(OPEN_PREFIX)
    if end < row.size:
        return None  # damaged where it was whole once, or a copy from before: no torn tail
    if end > row.size:
        _flush(path)
    if sealed:
        if is_open and end != size:
            os.truncate(path, end)
        final = _name_sealed(path)
        changes.packs.append((number, replace(row, name=final, size=end, sealed=True)))
        return None
    if not is_open:
        raise _cut_off(path)
    if end != row.size:
        changes.packs.append((number, PackRow(row.id, name, end, sealed=False)))
    if _goes_on(path, end):
        return None
    if end != size:
        os.truncate(path, end)
    pack = PackFile(directory, number, row.id, end)
    pack.offsets = offsets
    return pack


def _goes_on(path: Path, end: int) -> bool:
    """Whether a whole record begins anywhere past `end`, where none does."""
    with path.open("rb") as file:
        fd = file.fileno()

        def read(count: int, at: int) -> bytes:
            return os.pread(fd, count, at)

        while block := read(READ_SIZE, end):
            at = block.find(RECORD_MAGIC)
            while at >= 0:
                with contextlib.suppress(DamageError, FormatError):
                    read_payload(read, read_record(read, end + at))
                    return True
                at = block.find(RECORD_MAGIC, at + 1)
            # The magic may lie across two blocks.
            end += len(block) if len(block) < READ_SIZE else READ_SIZE - len(RECORD_MAGIC)
    return False


def _flush(path: Path) -> None:
    """Bring a pack to the disk: that its bytes can be read says only that the kernel has them."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    except OSError as error:
        raise disk_error(error, path) from error
    finally:
        os.close(fd)


def _name_sealed(path: Path) -> str:
    """Give a pack that ends in its seal its final name, unless it has that already."""
    hasher = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(2**20):
            hasher.update(block)
    final = hasher.hexdigest()
    if path.name == final:
        return final
    if not path.name.startswith(OPEN_PREFIX):
        raise _cut_off(path)
    os.rename(path, path.parent / final)
    sync_directory(path.parent)
    return final


def _cut_off(path: Path) -> DamageError:
    return DamageError(
        "a sealed pack is not what its name says", where=str(path), advice="see `cas verify`"
    )


def _index_tail(
    fd: int, number: int, size: int, indexed: int, changes: Changes
) -> tuple[list[int], int, bool]:
    """Offsets of all records, where the last whole one ends, and whether that is the seal."""
    offsets: list[int] = []
    offset = HEADER_SIZE

    def read(count: int, at: int) -> bytes:
        return os.pread(fd, count, at)

    while offset < size:
        try:
            record = read_record(read, offset)
            if record.end > indexed:
                read_payload(read, record)
        except DamageError:  # what a newer cas wrote is not torn, and nothing to be cut off
            break
        if record.segment is None:
            return offsets, record.end, True
        if record.end > indexed:
            note_record(changes, number, record)
        offsets.append(offset)
        offset = record.end
    return offsets, offset, False


def note_record(changes: Changes, pack: int, record: Record) -> None:
    """Add what a whole record tells to `changes`."""
    segment = record.segment
    if segment is None:
        return
    place = SegmentPlace(
        pack, record.offset, record.payload_offset, record.payload_size, segment.codec,
        segment.plain_size,
    )  # fmt: skip
    changes.segments.append((segment.frame, segment.number, place))
    at = 0
    for id_, length in zip(segment.ids, segment.lengths, strict=True):
        changes.chunks.append((id_, Location(segment.frame, segment.number, at, length)))
        at += length
