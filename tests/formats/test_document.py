"""docs/format.md says what the code does: limits, magics, sections, vectors."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cas import archive, chunker, entry, frame, pack, page, program, recipe, snapshot, wire
from cas.ids import EMPTY_DIGEST
from cas.unpack import builder

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs" / "format.md").read_text()


def section(number: int) -> str:
    """The text of one section."""
    return TEXT.split(f"\n## {number}. ")[1].split("\n## ")[0]


def amount(text: str) -> int:
    """The number in words like `8 MiB each`, `2^32 - 1`, `16 MiB + 64 KiB`, `100,000`."""
    total, sign = 0, 1
    for number, power, unit, operator in re.findall(
        r"(\d[\d,]*)(?:\^(\d+))?(?: (KiB|MiB|GiB))?(?: ([+-]))?", text
    ):
        value = int(number.replace(",", "")) ** int(power or 1)
        total += sign * value * {"": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}[unit]
        if not operator:
            break
        sign = 1 if operator == "+" else -1
    return total


LIMITS = {
    "chunk": [recipe.LENGTH_LIMIT],
    "recipe, encoded": [recipe.RECIPE_LIMIT],
    "chunks, operations of a recipe": [recipe.CHUNKS_LIMIT],
    "size of a recipe, file": [recipe.SIZE_LIMIT],
    "levels of an archive's program": [program.DEPTH_LIMIT],
    "side information of an operation": [program.SIDE_LIMIT],
    "notes of a recipe; each": [archive.NOTES_LIMIT, archive.NOTE_LIMIT],
    "page, encoded; its paths together": [page.PAGE_LIMIT],
    "entries of a page": [page.ENTRIES_LIMIT],
    "path; part of it": [entry.PATH_LIMIT, entry.NAME_LIMIT],
    "target of a symlink": [page.TARGET_LIMIT],
    "user, group, xattr name": [page.OWNER_LIMIT],
    "xattrs of an entry": [page.XATTRS_LIMIT],
    "link": [page.LINK_LIMIT],
    "chunks of a file": [page.CHUNKS_LIMIT],
    "recipes of a file": [page.PARTS_LIMIT],
    "snapshot, encoded": [snapshot.SNAPSHOT_LIMIT],
    "pages; problems of a snapshot": [snapshot.PAGES_LIMIT, snapshot.PROBLEMS_LIMIT],
    "text": [snapshot.TEXT_LIMIT],
    "lists in one value": [wire.LISTS_LIMIT],
    "segment, plain; stored": [frame.SEGMENT_PLAIN_LIMIT, frame.SEGMENT_STORED_LIMIT],
    "chunks of a segment": [pack.CHUNKS_LIMIT],
    "table of a record": [pack.TABLE_LIMIT],
    "frame, plain": [frame.FRAME_LIMIT],
    "window of a frame": [2**frame.WINDOW_LOG],
    "pack": [pack.PACK_LIMIT],
}


def test_the_limits_are_those_of_the_code() -> None:
    rows = re.findall(r"^\| ([^|]+?) \| ([^|]*?\d[^|]*?) \|", section(9), re.MULTILINE)
    assert LIMITS == {name: [amount(part) for part in said.split("; ")] for name, said in rows}


def test_limits_that_are_one() -> None:
    assert recipe.OPS_LIMIT == recipe.CHUNKS_LIMIT == program.OPS_LIMIT
    assert page.XATTR_NAME_LIMIT == page.OWNER_LIMIT


def test_everything_legal_fits_its_container() -> None:
    """A recipe or page, with up to a segment of others before it, fits a segment."""
    for largest in (recipe.RECIPE_LIMIT, page.PAGE_LIMIT):
        assert largest + frame.SEGMENT_SIZE <= frame.SEGMENT_PLAIN_LIMIT
    chunks = recipe.CHUNKS_LIMIT * (32 + 5)
    operations = recipe.OPS_LIMIT // 2 * (11 + 7)
    assert chunks + operations + 100 < recipe.RECIPE_LIMIT
    assert pack.CHUNKS_LIMIT * (32 + 5 + 45) + 20_000 < pack.TABLE_LIMIT


@pytest.mark.parametrize("module", [recipe, page, snapshot, pack, archive])
def test_magics(module: object) -> None:
    magic: bytes = module.MAGIC  # type: ignore[attr-defined]  # all five have one
    assert f"`{magic[:4].decode()}` {magic[4:].hex(' ')}" in TEXT.split("\n## ")[0]


@pytest.mark.parametrize(
    ("number", "module"),
    [
        (1, wire),
        (2, recipe),
        (3, page),
        (4, snapshot),
        (5, pack),
        (6, frame),
        (7, chunker),
        (11, archive),
        (11, program),
    ],
)
def test_each_format_names_its_section(number: int, module: object) -> None:
    said = " ".join((module.__doc__ or "").split())
    assert f"docs/format.md, section {number}" in said
    assert Path(str(vars(module)["__file__"])).name in TEXT.split("\n## ")[0]


def test_the_record_is_laid_out_as_in_the_table() -> None:
    rows = re.findall(r"^\| (\d+) \| (\d+) \| [a-zA-Z ]+ \| .* \| .* \|$", section(5), re.MULTILINE)
    offset = 0
    for said, size in rows:
        assert offset == int(said)
        offset += int(size)
    assert pack.RECORD_SIZE == offset
    assert 12 == len(rows)


def test_numbers_said_elsewhere() -> None:
    assert EMPTY_DIGEST.hex()[:8] in section(3)
    assert f"after {recipe.PART_CHUNKS:,} chunks" in section(2)
    assert f"has {page.ENTRIES_LIMIT} entries" in section(3)
    assert f"at least {page.ENTRIES_LEAST} entries" in section(3)
    assert f"reached {page.BYTES_SOON // 1024} KiB" in section(3)
    assert 2**10 - 1 == page.CUT_MASK
    assert f"size over {page.CONTENT_CUT // 2**20} MiB" in section(3)
    assert f"reached {pack.PACK_TARGET // 2**20} MiB" in section(5)
    assert f"below {frame.SAMPLE_RATIO * 100:.0f} %" in section(6)
    for number in (chunker.MIN_SIZE, chunker.AVERAGE_SIZE, chunker.MAX_SIZE):
        assert f"{number:,}" in section(7)
    assert chunker.IDENTITY in section(7)
    assert f"{builder.PART_CHUNKS:,} chunks, {builder.PART_OPS:,} operations" in section(11)
    assert f"{builder.PART_SKELETON // 2**20} MiB of skeleton" in section(11)


def test_links_lead_somewhere() -> None:
    anchors = {
        re.sub(r"[^a-z0-9 -]", "", heading.lower()).replace(" ", "-")
        for heading in re.findall(r"^#+ (.*)$", TEXT, re.MULTILINE)
    }
    for target in re.findall(r"\]\(#([^)]+)\)", TEXT):
        assert target in anchors
