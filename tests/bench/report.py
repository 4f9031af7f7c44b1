"""`cas report` of nine tiers and a million chunks that are held: the page, in time and memory.

The store is that of `tests/bench/redundancy.py`, and a record for each segment in which its chunks
were fetched. Nothing reads what they hold, so that is not made.
"""

from __future__ import annotations

from pathlib import Path

from cas.frame import Codec
from cas.pack import Origin, Segment
from cas.store.layout import Layout
from cas.store.writer import Writer
from indexes.index import LmdbIndex
from tests.bench.process import measured
from tests.bench.product import CAS
from tests.bench.redundancy import CHUNKS, TIERS, fill
from tests.bench.verdict import MIB, Setting, Verdict
from tests.redundancy.made import chunk_id

SEGMENT_CHUNKS = 32
FRAME_SEGMENTS = 30


def run(setting: Setting) -> list[Verdict]:
    """See `Benchmark`."""
    root = setting.work / "million"
    chunks = CHUNKS // 20 if setting.quick else CHUNKS
    fill(root, chunks)
    bring(root, chunks)
    usage = measured([*CAS, "report", "--store", root, "-o", setting.work / "report.html"])
    return [
        Verdict(f"cas report, {TIERS} tiers, a million chunks", usage.cpu * CHUNKS / chunks, 20.0,
                "CPU s"),
        Verdict("peak memory of that", usage.peak / MIB, 450.0, "MiB"),
    ]  # fmt: skip


def bring(root: Path, chunks: int) -> None:
    """Let all chunks of the store be held, each first had for the first tier that has it."""
    index = LmdbIndex(root / "index")
    writer = Writer(Layout(root), index)
    each = chunks // TIERS
    for tier in range(TIERS):
        frame, segments = writer.begin_frame(), 0
        for first in range(tier * each, (tier + 1) * each, SEGMENT_CHUNKS):
            numbers = range(first, min(first + SEGMENT_CHUNKS, (tier + 1) * each))
            writer.add_segment(_segment(frame, segments, f"tier{tier}", numbers), b"nothing")
            segments += 1
            if segments == FRAME_SEGMENTS:
                writer.end_frame(frame)
                frame, segments = writer.begin_frame(), 0
        writer.end_frame(frame)
        writer.commit()
    writer.close()
    index.close()


def _segment(frame: int, number: int, tier: str, chunks: range) -> Segment:
    lengths = tuple(1000 + chunk % 60_000 for chunk in chunks)
    origin = Origin(bytes(16), "npu", tier, 0, 0, sum(lengths) // 3, ())
    ids = tuple(chunk_id(chunk) for chunk in chunks)
    return Segment(frame, number, Codec.ZSTD, False, sum(lengths), lengths, ids, origin)
