"""Shares of a segment's cost add up, and so do sums over origins, whatever came twice."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from cas.audit.records import Records, row_of
from cas.audit.sums import Key, sum_all
from cas.errors import DamageError
from cas.frame import Codec
from cas.ids import Digest, digest_of
from cas.interfaces import Changes
from cas.pack import Origin, Segment
from cas.store.layout import Layout
from cas.store.memory_index import MemoryIndex
from cas.store.store import Store
from cas.store.writer import Writer

ORIGIN = Origin(bytes(range(16)), "npu", "00-first", 5, 0, 100, ())


def segment(chunks: list[bytes], frame: int, number: int, origin: Origin) -> Segment:
    lengths, ids = tuple(map(len, chunks)), tuple(map(digest_of, chunks))
    return Segment(frame, number, Codec.PLAIN, False, sum(lengths), lengths, ids, origin)


@given(st.lists(st.integers(1, 2**24), min_size=1, max_size=300), st.integers(0, 2**40))
def test_shares_add_up_to_the_byte(lengths: list[int], wire: int) -> None:
    ids = tuple(Digest(n.to_bytes(32, "big")) for n in range(len(lengths)))
    made = Segment(0, 0, Codec.ZSTD, False, sum(lengths), tuple(lengths), ids,
                   replace(ORIGIN, wire_size=wire))  # fmt: skip
    row = row_of(made)
    assert wire == sum(row.wire)
    for length, share in zip(lengths, row.wire, strict=True):
        assert abs(share - wire * length / sum(lengths)) <= 1 + wire / 2**40
    assert len(lengths) == len(row.starts)
    assert [0, *lengths][0] == row.starts[0]


def stored(root: Path, segments: list[tuple[list[bytes], Origin]]) -> Store:
    layout = Layout(root)
    layout.create()
    index = MemoryIndex()
    writer = Writer(layout, index)
    frame = writer.begin_frame()
    for number, (chunks, origin) in enumerate(segments):
        writer.add_segment(segment(chunks, frame, number, origin), b"".join(chunks))
    writer.end_frame(frame)
    writer.add_object(b"CASr\x01 something", replace(ORIGIN, wire_size=0))
    writer.commit()
    writer.close()
    return Store(root, index)


def test_a_chunk_counts_where_it_was_first_had_from(tmp_path: Path) -> None:
    a, b, c = (os.urandom(size) for size in (1000, 3000, 500))
    other = Origin(bytes(16), "usb", "01-second", 6, 1, 77, ())
    store = stored(tmp_path / "s", [([a, b], ORIGIN), ([b, c, a], other), ([c], ORIGIN)])
    records = Records(store)
    damaged: list[DamageError] = []
    sums = sum_all(store.index, records, damaged)
    first, second = (
        sums.content[Key("npu", "00-first", ORIGIN.run)],
        sums.content[Key("usb", "01-second", other.run)],
    )
    assert (2, 4000, 100) == (first.chunks, first.size, first.wire)
    assert (1, 500) == (second.chunks, second.size)
    assert (3, 4500) == (sums.total.chunks, sums.total.size)
    assert 3 == sums.again.chunks
    assert 277 == sums.total.wire + sums.again.wire + sums.meta.wire
    assert 1 == sums.meta.chunks
    assert not damaged
    # Forgotten and fetched again, it is had from where it came from the second time.
    store.index.commit(Changes(forgotten_chunks=[digest_of(c)]))
    assert 4000 == sum_all(store.index, records, damaged).total.size
    records.close()
    store.close()


def test_a_damaged_record_is_said_and_the_rest_counts(tmp_path: Path) -> None:
    chunks = [os.urandom(2000) for _ in range(3)]
    store = stored(tmp_path / "s", [([chunk], ORIGIN) for chunk in chunks])
    (pack,) = store.layout.packs.iterdir()
    data = bytearray(pack.read_bytes())
    data[data.index(digest_of(chunks[1]))] ^= 1
    pack.write_bytes(data)
    records = Records(store)
    damaged: list[DamageError] = []
    assert 2000 == sum_all(store.index, records, damaged).total.size
    (said,) = damaged
    assert f"pack {pack.name}" in said.where
    records.close()
    store.close()
