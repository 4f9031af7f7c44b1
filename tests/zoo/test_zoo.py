"""The zoo in the tree is whole, and is what its list says."""

from __future__ import annotations

import hashlib
import zipfile

import pytest

from tests.zoo.decode import CONTAINERS, Undecodable, plain_digest
from tests.zoo.plain import PART_SIZE, SMALL
from tests.zoo.stream import LIST, STREAMS, Stream, read

ZOO = read()
WHOLE = [stream for stream in ZOO if stream.plain_sha256]
BROKEN = [stream for stream in ZOO if stream.container in CONTAINERS and not stream.plain_sha256]
ZIPS = [stream for stream in ZOO if stream.container == "zip"]


def _name(stream: Stream) -> str:
    return stream.name


def test_every_file_is_listed_and_every_listed_file_is_there() -> None:
    files = {path.name for path in STREAMS.iterdir()}
    assert files == {stream.name for stream in ZOO} | {LIST, SMALL.name}


def test_there_is_some_of_each_container() -> None:
    assert {*CONTAINERS, "zip", "deb", "pack"} == {stream.container for stream in ZOO}


@pytest.mark.parametrize("stream", ZOO, ids=_name)
def test_a_stream_is_what_the_list_says(stream: Stream) -> None:
    data = (STREAMS / stream.name).read_bytes()
    assert (stream.size, stream.sha256) == (len(data), hashlib.sha256(data).hexdigest())


@pytest.mark.parametrize("stream", WHOLE, ids=_name)
def test_a_stream_decodes_to_its_plain_bytes(stream: Stream) -> None:
    decoded = plain_digest(STREAMS / stream.name, stream.container)
    assert (stream.plain_size, stream.plain_sha256) == decoded


@pytest.mark.parametrize("stream", BROKEN, ids=_name)
def test_what_lists_no_plain_bytes_does_not_decode(stream: Stream) -> None:
    with pytest.raises(Undecodable):
        plain_digest(STREAMS / stream.name, stream.container)


@pytest.mark.parametrize("stream", ZIPS, ids=_name)
def test_a_zip_names_its_members(stream: Stream) -> None:
    with zipfile.ZipFile(STREAMS / stream.name) as archive:
        assert archive.namelist()


def test_both_plain_files_are_in_use() -> None:
    sizes = {stream.plain: stream.plain_size for stream in WHOLE if stream.plain}
    assert {"whole", "part"} == set(sizes)
    assert PART_SIZE["small"] == sizes["part"]
