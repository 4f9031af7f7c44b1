"""Sources give the same bytes however they are read, and so do their members."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from cas.unpack.source import Source, member
from tests.unpack.test_tar import source_of


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**32))
def test_any_way_of_reading_gives_the_bytes_in_order(seed: int) -> None:
    rng = random.Random(seed)
    data = rng.randbytes(rng.randrange(8000))
    source = source_of(data, jumps=[] if rng.randrange(2) else None)
    read = b""
    while source.peek(1):
        at = source.position
        assert len(read) == at
        count = rng.randrange(1, 3000)
        match rng.randrange(5):
            case 0:
                read += source.read(count)
            case 1:
                read += source.exactly(count)
                assert len(read) == min(at + count, len(data))
            case 2:
                assert data[at : at + count] == source.peek(count)
            case 3:
                read += data[at : at + source.skip(count)]
            case _:
                back = source.exactly(count)
                keep = rng.randrange(len(back) + 1)
                source.unread(back[keep:])
                read += back[:keep]
    assert data == read
    assert b"" == source.read(5)
    assert 0 == source.skip()


@settings(max_examples=80, deadline=None)
@given(st.integers(0, 2**32))
def test_members_end_where_they_should(seed: int) -> None:
    rng = random.Random(seed)
    data = rng.randbytes(6000)
    source = source_of(data)
    whole = Source(source.read, len(data), lambda count, at: data[at : at + count])
    at = 0
    while at < len(data):
        size = rng.randrange(2000)
        one = member(whole, size)
        start, size = at, min(size, len(data) - at)
        assert one.pread is not None
        assert data[start + 3 : start + min(size, 8)] == one.pread(5, 3)
        inner = member(one, min(size, 100))
        assert data[start : start + min(size, 100)] == inner.exactly(1000)
        if rng.randrange(2):
            assert data[start : start + size][100:] == one.exactly(10_000)
        else:
            one.skip()
        at += size
        assert at == whole.position
