"""decode(encode(x)) is x, for every format; and what is decoded has one encoding."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from cas import wire
from cas.archive import ArchiveRecipe, decode_archive_recipe, encode_archive_recipe
from cas.entry import Entry, path_order
from cas.frame import Codec, FrameEncoder
from cas.ids import Digest, parse_digest
from cas.pack import HEADER_SIZE, Segment, encode_header, encode_seal, encode_segment
from cas.page import decode_page, encode_page
from cas.recipe import Recipe, decode_recipe, encode_recipe
from cas.snapshot import Snapshot, decode_snapshot, encode_snapshot
from tests.formats import strategies as some
from tests.formats.reading import read_pack


@given(some.recipes())
def test_recipe(recipe: Recipe) -> None:
    assert recipe == decode_recipe(encode_recipe(recipe))


@given(some.archive_recipes())
def test_archive_recipe(recipe: ArchiveRecipe) -> None:
    assert recipe == decode_archive_recipe(encode_archive_recipe(recipe))


@given(some.pages())
def test_page(entries: list[Entry]) -> None:
    assert entries == decode_page(encode_page(entries))


@given(some.snapshots())
def test_snapshot(snapshot: Snapshot) -> None:
    assert snapshot == decode_snapshot(encode_snapshot(snapshot))


@given(some.digests)
def test_digest(digest: Digest) -> None:
    assert digest == parse_digest(digest.hex())


@given(st.lists(some.paths))
def test_path_order_is_byte_order_with_slashes_as_zeros(paths: list[bytes]) -> None:
    assert sorted(paths, key=lambda path: path.replace(b"/", b"\0")) == sorted(
        paths, key=path_order
    )


@given(st.data())
def test_pack(data: st.DataObject) -> None:
    """Plain segments and frames of several, sealed or not."""
    body = encode_header(data.draw(some.runs))
    segments, offsets = [], []
    for frame in range(data.draw(st.integers(0, 2))):
        for segment, payload in _frame(data, frame):
            offsets.append(len(body))
            segments.append(segment)
            body += encode_segment(segment, payload)
    sealed = data.draw(st.booleans())
    body += encode_seal(offsets) if sealed else b""
    found = read_pack(body)
    assert body[8:HEADER_SIZE] == found["id"]
    assert segments == found["segments"]
    assert (tuple(offsets) if sealed else None) == found["seal"]


def _frame(data: st.DataObject, frame: int) -> list[tuple[Segment, bytes]]:
    encoder = FrameEncoder(1)
    records = []
    for number in range(data.draw(st.integers(1, 3))):
        chunks = data.draw(some.chunk_lists)
        drawn = data.draw(some.segments(chunks))
        compressed = drawn.codec is Codec.ZSTD
        payload = encoder.segment(chunks, last=False) if compressed else b"".join(chunks)
        segment = Segment(
            frame, number, drawn.codec, drawn.meta, drawn.plain_size, drawn.lengths, drawn.ids,
            drawn.origin,
        )  # fmt: skip
        records.append((segment, payload))
    return records


VALUES = st.recursive(
    st.integers(-(2**63), 2**64 - 1) | st.booleans() | st.binary(max_size=300) | some.texts,
    lambda inner: st.lists(inner, max_size=20),
    max_leaves=30,
)


@given(VALUES)
def test_value(value: object) -> None:
    assert value == wire.decode(wire.encode(value), limit=2**20, what="value")
