"""Where a chunk lies in a file, and in which member of an archive, is where its bytes are."""

from __future__ import annotations

import gzip
import random
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cas.audit.filemap import FileMap
from cas.codec import registry
from tests.inside.test_inside import CountingSource, NoDeflate, nested, some_files, tar_of, zip_of
from tests.store.build import BuiltStore
from tests.unpack.carry import JOINERS
from tests.unpack.taking import Taken, plain_chunks, take_apart

SEEDS = st.integers(0, 2**32)


@pytest.fixture(autouse=True, scope="module")
def _toys() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for codec, place in JOINERS.items():
            patch.setitem(registry.JOINERS, codec, place)
        yield


def check(archive: Taken, files: dict[str, bytes], name: bytes = b"") -> FileMap:
    """Every place is right, and every file that lies whole in chunks is all there."""
    source = CountingSource(archive)
    where = FileMap(archive.content, source, name)
    assert len(where) == archive.content.chunk_count
    found: dict[str, list[tuple[int, bytes]]] = {}
    for number, extent in enumerate(where.extents()):
        chunk = source.held[extent.chunk]
        assert (number, len(chunk)) == (extent.number, extent.length)
        assert extent.chunk in (archive.objects if extent.skeleton else archive.chunks)
        if extent.offset is not None:
            assert chunk == archive.data[extent.offset :][: extent.length]
        if extent.inner:
            found.setdefault(extent.inner.decode(), []).append((number, extent.chunk))
            members = named(files, extent.inner)
            if extent.inner_offset is not None and members:
                start, end = extent.inner_offset, extent.inner_offset + extent.length
                assert chunk in [member[start:end] for member in members]
    for path, chunks in found.items():
        numbers, ids = zip(*chunks, strict=True)
        if list(ids) in map(plain_chunks, named(files, path.encode())[:1]):
            taken = where.members.chunks_of(path.encode())
            assert taken is not None
            assert list(numbers) == [where.number_of(number) for number in taken[1]]
    return where


def named(files: dict[str, bytes], path: bytes) -> list[bytes]:
    """The file at a path, and those at that path in archives: a zip without its end, whose last
    member is another zip that is stored as it is, looks like that one. There is none for what was
    a compressed archive, and is cut off so early that it is but a compressed file."""
    names = [name for name in files if name.endswith("!/" + path.decode())]
    return [files[name] for name in (path.decode(), *names) if name in files]


@settings(max_examples=40, deadline=None)
@given(SEEDS)
def test_the_chunks_of_any_archive(seed: int) -> None:
    data, files = nested(random.Random(seed), 2)
    archive = take_apart(data)
    if archive is not None:
        where = check(archive, files)
        assert all(e.skeleton or e.inner.decode() in files for e in where.extents())


@settings(max_examples=40, deadline=None)
@given(SEEDS)
def test_an_archive_that_was_cut_off(seed: int) -> None:
    rng = random.Random(seed)
    data, files = nested(rng, 1)
    archive = take_apart(data[: rng.randrange(len(data) // 2, len(data))])
    if archive is not None:
        check(archive, files)


def test_all_of_a_file_is_found_and_only_that() -> None:
    files = {f"{n}": random.Random(n).randbytes(150_000) for n in range(5)}
    layer = gzip.compress(tar_of(files), mtime=0)
    inner = {f"layer.tar.gz!/{path}": data for path, data in files.items()}
    outer = {"first": b"a" * 90_000, "layer.tar.gz": layer, "last.zip": zip_of(some_files(7))}
    zipped = {f"last.zip!/{path}": data for path, data in some_files(7).items()}
    archive = take_apart(tar_of(outer))
    assert archive is not None
    where = check(archive, {**outer, **inner, **zipped})
    for path, data in inner.items():
        taken = where.members.chunks_of(path.encode())
        assert taken is not None
        assert len(data) == taken[0].size
        extents = [where.extent(where.number_of(number)) for number in taken[1]]
        assert plain_chunks(data) == [extent.chunk for extent in extents]
        assert [0, *[e.length for e in extents[:-1]]][0:2] == [
            extents[0].inner_offset,
            extents[1].inner_offset,
        ]
        assert {None} == {extent.offset for extent in extents}  # compressed: nowhere in the archive
    first = where.members.chunks_of(b"first")
    assert first is not None
    assert 512 == where.extent(where.number_of(first[1][0])).offset
    assert where.members.chunks_of(b"none") is None
    whole = where.members.chunks_of(b"layer.tar.gz")
    assert whole is not None
    assert sum(map(len, map(plain_chunks, files.values()))) == len(whole[1])


def test_a_compressed_file_is_its_only_member() -> None:
    text = random.Random(1).randbytes(300_000).hex().encode()
    archive = take_apart(gzip.compress(text, mtime=0))
    assert archive is not None
    where = check(archive, {"notes.txt": text}, b"notes.txt.gz")
    extents = [extent for extent in where.extents() if not extent.skeleton]
    assert plain_chunks(text) == [extent.chunk for extent in extents]
    assert {b"notes.txt"} == {extent.inner for extent in extents}
    assert len(text) == extents[-1].length + (extents[-1].inner_offset or 0)


def test_links_and_holes_in_an_archive(tmp_path: Path) -> None:
    data = random.Random(1).randbytes(200_000)
    (tmp_path / "file").write_bytes(data)
    (tmp_path / "name").hardlink_to(tmp_path / "file")
    (tmp_path / "sparse").write_bytes(data[::-1])
    with (tmp_path / "sparse").open("r+b") as sparse:
        sparse.seek(3 * 2**20)
        sparse.write(data[:70_000])
    words = ["tar", "-cSf", "a.tar", "file", "name", "sparse"]
    subprocess.run(words, cwd=tmp_path, check=True)
    archive = take_apart((tmp_path / "a.tar").read_bytes())
    assert archive is not None
    where = FileMap(archive.content, CountingSource(archive))
    linked = where.members.chunks_of(b"name")
    assert linked is not None
    assert plain_chunks(data) == [where.ids[where.number_of(number)] for number in linked[1]]
    holed = [extent for extent in where.extents() if extent.inner == b"sparse"]
    assert 270_000 <= sum(extent.length for extent in holed)
    assert {None} == {extent.inner_offset for extent in holed}


def test_a_member_that_nobody_can_look_into() -> None:
    data = random.Random(1).randbytes(90_000).hex().encode()
    archive = take_apart(zip_of({"a": data, "b": data[::-1]}), NoDeflate())
    assert archive is not None
    where = FileMap(archive.content, CountingSource(archive))
    extents = [extent for extent in where.extents() if not extent.skeleton]
    assert {b"a", b"b"} == {extent.inner for extent in extents}
    assert {None} == {extent.inner_offset for extent in extents}  # they are compressed bytes
    for extent in extents:
        assert extent.offset is not None
        chunk = archive.data[extent.offset :][: extent.length]
        assert archive.chunks[extent.chunk] == chunk


def test_plain_files_with_holes_and_parts(tmp_path: Path) -> None:
    rng = random.Random(2)
    pieces: list[bytes | int] = [70_000, rng.randbytes(150_000), 5000, rng.randbytes(10), 9]
    plain = b"".join(piece if isinstance(piece, bytes) else bytes(piece) for piece in pieces)
    store = BuiltStore(tmp_path)
    contents = [store.sparse(pieces, part=3), store.content(plain), store.content(b"one")]
    store.flush()
    for content, data in zip(contents, (plain, plain, b"one"), strict=True):
        where = FileMap(content, store.reader)
        assert len(where) == content.chunk_count
        assert not where.is_archive
        for extent in where.extents():
            assert extent.offset is not None
            assert store.reader.chunk(extent.chunk) == data[extent.offset :][: extent.length]
            assert not extent.inner
