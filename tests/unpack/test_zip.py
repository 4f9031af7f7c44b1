"""Zip archives by the tools that write them, read from a file and from inside another archive."""

from __future__ import annotations

import io
import random
import struct
import zipfile
import zlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cas.entry import Kind
from cas.program import Begin
from cas.unpack.member import Gap, Member
from cas.unpack.source import Source
from cas.unpack.ziparchive import members
from tests.unpack.files import run, some_files, write_tree
from tests.unpack.taking import Taken, check, take_apart
from tests.unpack.test_tar import archive as tar_of

FILES = some_files()
WHOLE = [data for data in FILES.values() if len(data) > 600]


def zipped(
    files: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED, *, streamed: bool = False
) -> bytes:
    out = Unseekable() if streamed else io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
        archive.comment = b"a comment"
    return out.getvalue()


class Unseekable(io.BytesIO):
    """So that sizes are known only after the data."""

    def seekable(self) -> bool:
        return False

    def tell(self) -> int:
        raise io.UnsupportedOperation

    def seek(self, *_: int) -> int:
        raise io.UnsupportedOperation


def source_of(data: bytes, *, anywhere: bool = True) -> Source:
    file = io.BytesIO(data)

    def pread(count: int, offset: int) -> bytes:
        return data[offset : offset + count]

    return Source(lambda n: file.read(min(n, 1013)), len(data), pread if anywhere else None)


def levels(taken: Taken) -> int:
    return sum(isinstance(op, Begin) for recipe in taken.recipes for op in recipe.program)


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
@pytest.mark.parametrize("streamed", [False, True])
def test_what_python_writes(method: int, streamed: bool) -> None:
    data = zipped(FILES, method, streamed=streamed)
    taken = check(data, WHOLE)
    assert [] == taken.notes
    if method == zipfile.ZIP_STORED:
        assert len(taken.skeleton) < 3000
    assert [name.encode() for name in FILES] == [
        item.path for item in members(source_of(data), lambda _: None) if isinstance(item, Member)
    ]


@pytest.mark.parametrize("streamed", [False, True])
def test_inside_another_archive(streamed: bool) -> None:
    """Where the directory cannot be read first, each member's own header has to do."""
    data = zlib.compress(tar_of({"x.zip": zipped(FILES, streamed=streamed), "y": b"z" * 5000}))
    taken = check(data, [*WHOLE, b"z" * 5000])
    # Where a member ends that does not say its size, only its stream tells, however short.
    assert 1 + (len(FILES) if streamed else len(WHOLE)) == levels(taken)


def test_what_zip_writes(tmp_path: Path) -> None:
    write_tree(tmp_path / "t", FILES)
    (tmp_path / "t/link").symlink_to("b/text")
    (tmp_path / "t/d").mkdir()
    run("zip", "-q", "-y", "-r", "../x.zip", ".", cwd=tmp_path / "t")
    data = (tmp_path / "x.zip").read_bytes()
    check(data, WHOLE)
    kinds = {
        item.path: item.kind
        for item in members(source_of(data), lambda _: None)
        if isinstance(item, Member)
    }
    assert Kind.SYMLINK == kinds[b"link"]
    assert Kind.DIRECTORY == kinds[b"d/"]
    streamed = run("zip", "-q", "-r", "-", ".", cwd=tmp_path / "t")
    check(streamed, WHOLE)
    check(zlib.compress(tar_of({"x": streamed})), WHOLE)
    forced = run("zip", "-q", "-r", "-fz", "-", ".", cwd=tmp_path / "t")  # zip64, and descriptors
    check(forced, WHOLE)
    check(zlib.compress(tar_of({"x": forced})), WHOLE)


def test_descriptors_without_signature() -> None:
    data = zipped(FILES, streamed=True)
    stripped = data.replace(b"PK\x07\x08", b"")
    inside = zlib.compress(tar_of({"x": stripped}))
    check(inside, WHOLE)


def test_encrypted_and_unknown_members_are_content(tmp_path: Path) -> None:
    write_tree(tmp_path, {"secret": FILES["b/text"], "z": FILES["a/chunk"]})
    run("zip", "-q", "-P", "word", "x.zip", "secret", cwd=tmp_path)
    run("zip", "-q", "x.zip", "z", cwd=tmp_path)
    data = (tmp_path / "x.zip").read_bytes()
    taken = check(data, [FILES["a/chunk"]])
    assert ["secret: encrypted"] == taken.notes
    for method, name in ((zipfile.ZIP_BZIP2, "bzip2"), (zipfile.ZIP_LZMA, "lzma")):
        taken = check(zipped({"x": FILES["b/text"]}, method))
        assert [f"x: compressed by {name}"] == taken.notes


def test_alike_notes_are_few() -> None:
    files = {f"{n}": FILES["b/again"] for n in range(200)}
    assert 20 == len(check(zipped(files, zipfile.ZIP_BZIP2)).notes)


STUBS = {
    "script": b"#!/bin/sh\nexec python3 $0\n" + b"# and so on\n" * 1000,
    "program": b"\x7fELF" + random.Random(4).randbytes(50_000),
    "short": b"MZ" + b"\0" * 90,
}


@pytest.mark.parametrize("stub", STUBS)
def test_a_program_in_front(stub: str) -> None:
    for whole in (zipped(FILES), moved(FILES, STUBS[stub])):
        data = STUBS[stub] + whole
        taken = check(data, WHOLE)
        if len(STUBS[stub]) > 4096:
            assert taken.has(STUBS[stub])
        if stub == "program":
            gap = next(members(source_of(data), lambda _: None))
            assert isinstance(gap, Gap)


def moved(files: dict[str, bytes], stub: bytes) -> bytes:
    """The archive as `zip -A` would correct it: offsets count from the program's start."""
    out = io.BytesIO(stub)
    with zipfile.ZipFile(out, "a", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return out.getvalue()[len(stub) :]


def test_a_program_alone_is_a_plain_file() -> None:
    assert take_apart(STUBS["program"]) is None
    assert take_apart(STUBS["script"]) is None


def test_what_the_directory_does_not_name() -> None:
    """A deleted member stays, with all its bytes, as a gap."""
    first, second = zipped({"x": FILES["b/random"]}), zipped({"y": FILES["b/text"]})
    member = first[: first.index(b"PK\x01\x02")]
    data = member + second
    taken = check(data, [FILES["b/text"]])
    assert taken.has(member)


def test_archives_one_after_another() -> None:
    data = zipped({"x": FILES["b/random"]}) + zipped({"y": FILES["b/text"]})
    check(data, [FILES["b/text"]])


def test_large_sizes_in_their_own_field() -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        with archive.open(zipfile.ZipInfo("x"), "w", force_zip64=True) as member:
            member.write(FILES["b/text"])
        archive.writestr("y", FILES["a/chunk"])
    check(out.getvalue(), [FILES["a/chunk"]])
    check(zlib.compress(tar_of({"x": out.getvalue()})), [FILES["a/chunk"]])


def test_cut_off_anywhere() -> None:
    data = zipped({"x": FILES["b/again"], "y" * 60: FILES["a/chunk"], "z": b"!" * 3000})
    for size in (*range(4096, len(data), 631), *range(len(data) - 300, len(data))):
        check(data[:size])
        check(zlib.compress(data[:size]))


@settings(max_examples=80, deadline=None)
@given(st.integers(0, 2**32))
def test_damaged_archives_stay_what_they_are(seed: int) -> None:
    rng = random.Random(seed)
    files = {f"name{n}": rng.randbytes(rng.randrange(1500)) * 2 for n in range(8)}
    data = bytearray(zipped(files, streamed=bool(rng.randrange(2))))
    marks = [at for at in range(len(data)) if data[at : at + 2] == b"PK"]
    for _ in range(rng.randrange(1, 8)):
        near = rng.choice(marks) + rng.randrange(50)
        data[min(rng.choice([near, rng.randrange(len(data))]), len(data) - 1)] = rng.randrange(256)
    for one in (bytes(data), zlib.compress(tar_of({"x": bytes(data)}))):
        if take_apart(one) is not None:
            check(one)


def test_members_that_overlap() -> None:
    """Two names for the same bytes, as in bombs: what lies behind what was read is not read
    again."""
    data = bytearray(zipped({"x": FILES["b/text"], "y": FILES["a/chunk"]}))
    second = data.rindex(b"PK\x01\x02")
    struct.pack_into("<L", data, second + 42, 0)
    check(bytes(data), [FILES["b/text"]])
