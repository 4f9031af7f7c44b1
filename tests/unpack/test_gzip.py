"""Gzip files with every kind of header, tail and accident; zlib streams and git's objects too.

The codecs are toys (`carry.py`): what is tried here is the framing round the streams.
"""

from __future__ import annotations

import gzip
import io
import random
import struct
import tarfile
import zlib
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cas.program import Begin, Verbatim
from cas.unpack.detect import Form, detect, inflates
from cas.unpack.gzip import CUT_OFF, NO_HEADER, header_size
from cas.unpack.zlibheader import is_zlib_header
from tests.unpack.carry import CarrySplitters
from tests.unpack.files import run, some_files, write_tree
from tests.unpack.taking import Taken, check, take_apart

FILES = some_files()
TEXT = FILES["b/text"]


def raw(data: bytes, level: int = 6) -> bytes:
    squeezer = zlib.compressobj(level, zlib.DEFLATED, -15)
    return squeezer.compress(data) + squeezer.flush()


def framed(data: bytes, flags: int = 0, fields: bytes = b"") -> bytes:
    trailer = struct.pack("<2L", zlib.crc32(data), len(data))
    return b"\x1f\x8b\x08" + bytes([flags]) + bytes(6) + fields + raw(data) + trailer


def begins(taken: Taken) -> int:
    return sum(isinstance(op, Begin) for recipe in taken.recipes for op in recipe.program)


def test_what_gzip_writes(tmp_path: Path) -> None:
    write_tree(tmp_path, {"text": TEXT})
    for option in ("-1", "-6", "-9", "-n"):
        taken = check(run("gzip", "-c", option, "text", cwd=tmp_path), [TEXT])
        assert [] == taken.notes
    check(run("pigz", "-c", "-b", "128", "text", cwd=tmp_path), [TEXT])


HEADERS = {
    "extra": (4, struct.pack("<H", 300) + bytes(300)),
    "name": (8, b"a name\0"),
    "comment": (16, b"a comment, longer than that\0"),
    "checksum": (2, b"\x12\x34"),
    "all": (30, struct.pack("<H", 5) + b"extra" + b"name\0" + b"comment\0" + b"\xab\xcd"),
    "text": (1, b""),
}


@pytest.mark.parametrize("kind", HEADERS)
def test_headers(kind: str) -> None:
    flags, fields = HEADERS[kind]
    data = framed(TEXT, flags, fields)
    check(data, [TEXT])
    head = data[: 10 + len(fields)]
    assert [len(head)] == [header_size(data)]
    assert {CUT_OFF} == {header_size(head[:size]) for size in range(len(head))}


def test_what_is_no_header() -> None:
    assert NO_HEADER == header_size(b"\x1f\x8b\x07" + bytes(20))
    assert NO_HEADER == header_size(b"\x1f\x8b\x08\xe0" + bytes(20))  # reserved flags
    assert NO_HEADER == header_size(b"\x1f\x8b\x08\x08" + bytes(6) + b"n" * 300_000)
    assert take_apart(b"\x1f\x8b\x07" + bytes(9000)) is None


def test_members_are_one_stream() -> None:
    """A tar may run across them, as in eStargz: one level, with what is between them verbatim."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name in ("b/random", "a/chunk"):
            info = tarfile.TarInfo(name)
            info.size = len(FILES[name])
            tar.addfile(info, io.BytesIO(FILES[name]))
    plain = out.getvalue()
    cuts = [0, 300, 300, 5000, 150_000, 301_000, len(plain)]
    parts = [plain[a:b] for a, b in pairwise(cuts)]
    data = b"".join(framed(part, 8, b"part\0") for part in parts)
    taken = check(data, [FILES["b/random"], FILES["a/chunk"]])
    assert 1 == begins(taken)
    program = [op for recipe in taken.recipes for op in recipe.program]
    assert len(parts) - 1 == sum(isinstance(op, Verbatim) for op in program)


TAILS = {
    "zeros": bytes(700),
    "many zeros": bytes(100_000),
    "garbage": b"garbage!",
    "much garbage": random.Random(1).randbytes(50_000),
    "half a header": b"\x1f\x8b\x08\x00",
    "a broken member": b"\x1f\x8b\x08" + bytes(7) + b"\xff" * 9000,
    "a member cut off": framed(FILES["b/again"])[:-9],
    "another with zeros between": bytes(512) + framed(FILES["b/again"]),
}


@pytest.mark.parametrize("tail", TAILS)
def test_whatever_follows(tail: str) -> None:
    goes_on = tail == "a member cut off"  # in the same stream, so the chunks are those of both
    check(framed(TEXT) + TAILS[tail], [] if goes_on else [TEXT])
    check(framed(TEXT) + framed(FILES["a/chunk"]) + TAILS[tail])


def test_cut_off_anywhere() -> None:
    data = framed(FILES["b/again"], *HEADERS["all"]) + framed(FILES["a/chunk"], 8, b"two\0")
    first = len(framed(FILES["b/again"], *HEADERS["all"]))
    near = (*range(4096, 4140), *range(first - 12, first + 40), *range(len(data) - 12, len(data)))
    for size in (*near, *range(5000, len(data), 977)):
        check(data[:size])


def test_a_stream_that_is_none_is_a_plain_file() -> None:
    data = b"\x1f\x8b\x08" + bytes(7) + b"\xff" * 100_000
    taken = take_apart(data)
    assert taken is not None
    assert ["broken"] == taken.notes
    assert taken.has(data)
    small = take_apart(data[:9000])
    assert small is not None
    assert () == small.content.parts


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32))
def test_damaged_files_stay_what_they_are(seed: int) -> None:
    rng = random.Random(seed)
    parts = [framed(FILES["b/again"]), framed(gzip.compress(FILES["a/chunk"])), framed(b"")]
    data = bytearray(b"".join(rng.choices(parts, k=3)) + parts[0])
    for _ in range(rng.randrange(5)):
        data[rng.randrange(len(data))] = rng.randrange(256)
    at = rng.randrange(len(data))
    if rng.randrange(2):
        del data[at : at + rng.randrange(2000)]
    if take_apart(bytes(data)) is not None:
        check(bytes(data))


def test_zlib_streams() -> None:
    for level in (1, 6, 9):
        check(zlib.compress(TEXT, level), [TEXT])
    data = zlib.compress(TEXT)
    check(data + b"and more" * 1000, [TEXT])
    check(data[:-100])
    assert take_apart(b"x\x9c" + random.Random(2).randbytes(20_000)) is None
    assert take_apart(b"HK" + b" IS A CITY, NOT A STREAM. " * 1000) is None
    assert is_zlib_header(b"HK")
    assert not inflates(b"HK IS A CITY, NOT A STREAM. " * 9)
    assert not is_zlib_header(b"x\xbb")  # wants a dictionary


def test_git_objects(tmp_path: Path) -> None:
    """A loose object has the chunks of the file it is of."""
    write_tree(tmp_path, {"text": TEXT, "chunk": FILES["a/chunk"]})
    run("git", "init", "-q", ".", cwd=tmp_path)
    for name, inside in (("text", TEXT), ("chunk", FILES["a/chunk"])):
        id_ = run("git", "hash-object", "-w", name, cwd=tmp_path).decode().strip()
        check((tmp_path / ".git/objects" / id_[:2] / id_[2:]).read_bytes(), [inside])
    check(zlib.compress(b"blob 99999999\0" + TEXT), [TEXT])
    check(zlib.compress(b"blob 10\0" + TEXT), [TEXT[10:]])
    check(zlib.compress(b"tree 10\0" + TEXT))


def test_streams_of_other_forms(tmp_path: Path) -> None:
    write_tree(tmp_path, {"text": TEXT, "random": FILES["b/random"]})
    inside = [TEXT, FILES["b/random"]]
    for option, form in (("--bzip2", Form.BZIP2), ("--xz", Form.XZ)):
        data = run("tar", "-c", option, "text", "random", cwd=tmp_path)
        assert form is detect(data[:512])
        check(data, inside)
    data = run("tar", "-c", "--zstd", "text", "random", cwd=tmp_path)
    taken = check(data)
    assert taken.has(data)
    assert ["zstd: no codec that can do it"] == taken.notes


def test_many_members_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """However short streams are, each is some work."""
    monkeypatch.setattr("cas.unpack.limits.STREAMS_FREE", 10)
    splitters = CarrySplitters()
    taken = check(framed(b"") * 5000, splitters=splitters)
    assert splitters.begun <= 10 + len(taken.data) // 2048
