"""Packs that are torn or changed: what is read is what was written, or an error."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cas.errors import CasError, DamageError, FormatError, LimitError
from cas.frame import Codec, FrameDecoder
from cas.ids import digest_of
from cas.pack import (
    HEADER_SIZE,
    RECORD_SIZE,
    Origin,
    Record,
    Segment,
    decode_header,
    encode_header,
    encode_seal,
    encode_segment,
    read_payload,
    read_record,
    read_records,
)
from tests.formats import strategies as some
from tests.formats.reading import check_chunks, read_pack, readable
from tests.vectors.vector import FOLDER, load

SEALED = load(FOLDER / "pack" / "sealed.vector").body
ZSTD = load(FOLDER / "pack" / "zstd.vector").body
ORIGIN = Origin(bytes(16), "npu", "00", 0, 0, 0, ())


def _segment(chunks: list[bytes]) -> Segment:
    lengths = tuple(map(len, chunks))
    return Segment(
        1, 0, Codec.PLAIN, False, sum(lengths), lengths, tuple(map(digest_of, chunks)), ORIGIN
    )


TWO = _segment([b"one", b"two"])


def test_the_header_is_the_magic_and_the_id() -> None:
    pack_id = bytes(range(16))
    assert b"CASP\x01\0\0\0" + pack_id == encode_header(pack_id)
    assert pack_id == decode_header(encode_header(pack_id))


@pytest.mark.parametrize("body", [SEALED, ZSTD], ids=["sealed", "zstd"])
def test_torn_at_every_byte(body: bytes) -> None:
    """Records before the tear are whole; the one it goes through is damaged, never shorter."""
    whole = [*read_records(readable(body), len(body))]
    for end in range(HEADER_SIZE, len(body)):
        found, torn = [], False
        try:
            for record in read_records(readable(body[:end]), end):
                read_payload(readable(body[:end]), record)
                found.append(record)
        except DamageError:
            torn = True
        expected = [record for record in whole if record.end <= end]
        assert expected == found, end
        assert torn == (end != (found[-1].end if found else HEADER_SIZE)), end


@pytest.mark.parametrize("body", [SEALED, ZSTD], ids=["sealed", "zstd"])
def test_every_bit_flipped(body: bytes) -> None:
    """Past the pack's own id every flipped bit is found."""
    for bit in [*range(8 * 8), *range(8 * HEADER_SIZE, 8 * len(body))]:
        changed = bytearray(body)
        changed[bit // 8] ^= 1 << bit % 8
        with pytest.raises(CasError):
            read_pack(bytes(changed))


@pytest.mark.parametrize("number", [0, 1, 2], ids=["zstd", "plain", "zstd after others"])
@given(st.data())
def test_a_payload_changed_along_with_its_checksum(number: int, data: st.DataObject) -> None:
    """Whoever can write checksums still cannot make other bytes pass."""
    records = [*read_records(readable(ZSTD), len(ZSTD))][: number + 1]
    payloads = [read_payload(readable(ZSTD), record) for record in records]
    plain = _plain(records, payloads)
    changed = bytearray(payloads[-1])
    changed[data.draw(st.integers(0, len(changed) - 1))] ^= data.draw(st.integers(1, 255))
    segment = records[-1].segment
    assert segment is not None
    try:
        read_pack(ZSTD[: records[-1].offset] + encode_segment(segment, bytes(changed)))
    except CasError:
        return
    # A zstd frame has bits that mean nothing.
    assert plain == _plain(records, [*payloads[:-1], bytes(changed)])


def _plain(records: list[Record], payloads: list[bytes]) -> bytes:
    """The plain bytes of the last of a frame's segments."""
    decoder, plain = FrameDecoder(), b""
    for record, payload in zip(records, payloads, strict=True):
        assert record.segment is not None
        compressed = record.segment.codec is Codec.ZSTD
        plain = decoder.segment(payload, record.segment.plain_size) if compressed else payload
    return plain


def test_a_chunk_is_hashed() -> None:
    check_chunks(TWO, b"onetwo")
    with pytest.raises(DamageError):
        check_chunks(TWO, b"onetw0")


@given(some.chunk_lists, st.data())
def test_record_at_any_offset(chunks: list[bytes], data: st.DataObject) -> None:
    segment = replace(data.draw(some.segments(chunks)), codec=Codec.PLAIN)
    before = data.draw(st.binary(max_size=100))
    payload = b"".join(chunks)
    body = before + encode_segment(segment, payload) + b"after"
    record = read_record(readable(body), len(before))
    assert segment == record.segment
    assert payload == read_payload(readable(body), record)
    assert len(body) - len(b"after") == record.end


def test_records_from_the_middle_on() -> None:
    records = [*read_records(readable(SEALED), len(SEALED))]
    later = [*read_records(readable(SEALED), len(SEALED), records[1].offset)]
    assert records[1:] == later
    assert records[2:] == [*read_records(readable(SEALED), len(SEALED), records[2].offset)]


def test_a_large_seal_is_read_back() -> None:
    record = encode_segment(_segment([b"x"]), b"x")
    offsets = [HEADER_SIZE + n * len(record) for n in range(3000)]
    body = encode_header(bytes(16)) + record * 3000 + encode_seal(offsets)
    *_, seal = read_records(readable(body), len(body))
    assert tuple(offsets) == seal.offsets


@pytest.mark.parametrize("place", [24, 28], ids=["table size", "payload size"])
def test_a_length_is_compared_before_it_is_read(place: int) -> None:
    """A record that claims more than it may is refused with only its header read."""
    record = bytearray(encode_segment(_segment([b"x"]), b"x"))
    record[place : place + 4] = b"\xff\xff\xff\xff"
    asked = []

    def read(size: int, offset: int, /) -> bytes:
        asked.append(size)
        return bytes(record[offset : offset + size])

    with pytest.raises(DamageError):
        read_record(read, 0)
    assert [RECORD_SIZE] == asked


REFUSED = [
    (replace(TWO, plain_size=4), b"onetwo", FormatError),
    (replace(TWO, ids=TWO.ids[:1]), b"onetwo", FormatError),
    (TWO, b"onetw", FormatError),
    (replace(TWO, plain_size=0, ids=(), lengths=()), b"", LimitError),
    (replace(TWO, codec=Codec.ZSTD), bytes(2**24 + 2**16 + 1), LimitError),
]


@pytest.mark.parametrize(("segment", "payload", "error"), REFUSED)
def test_no_record_is_written_that_could_not_be_read(
    segment: Segment, payload: bytes, error: type[CasError]
) -> None:
    with pytest.raises(error):
        encode_segment(segment, payload)
