"""`ar` archives: Debian packages, libraries with long names of both sorts, and damaged ones."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cas.unpack.ar import members
from tests.unpack.files import run, some_files, write_tree
from tests.unpack.taking import check, take_apart
from tests.unpack.test_tar import source_of

FILES = some_files()
LONG = "a-name-that-is-longer-than-the-field-has-room-for.o"


def paths(data: bytes) -> list[bytes]:
    return [member.path for member in members(source_of(data), lambda _: None)]


@pytest.mark.parametrize("compressed", ["none", "gzip", "xz"])
def test_debian_packages(tmp_path: Path, compressed: str) -> None:
    root = write_tree(tmp_path / "p", {"usr/x": FILES["b/text"], "usr/y": FILES["a/chunk"]})
    control = root / "DEBIAN/control"
    control.parent.mkdir()
    control.write_text(
        "Package: p\nVersion: 1\nArchitecture: all\nMaintainer: A <a@example.org>\nDescription: -\n"
    )
    run("dpkg-deb", f"-Z{compressed}", "--root-owner-group", "-b", "p", "p.deb", cwd=tmp_path)
    data = (tmp_path / "p.deb").read_bytes()
    check(data, [FILES["b/text"], FILES["a/chunk"]])
    assert b"debian-binary" == paths(data)[0]


def test_long_names(tmp_path: Path) -> None:
    write_tree(tmp_path, {LONG: FILES["a/small"], "short.o": FILES["a/chunk"]})
    run("ar", "qS", "lib.a", LONG, "short.o", cwd=tmp_path)
    data = (tmp_path / "lib.a").read_bytes()
    check(data, [FILES["a/small"], FILES["a/chunk"]])
    assert [LONG.encode(), b"short.o"] == paths(data)[1:]


def header(name: str, size: int) -> bytes:
    return b"%-16s%-12d%-6d%-6d%-8o%-10d`\n" % (name.encode(), 0, 0, 0, 0o100644, size)


def test_names_before_the_data() -> None:
    name = LONG.encode().ljust(60, b"\0")
    body = FILES["b/random"] + b"!"
    data = b"!<arch>\n" + header("#1/60", 60 + len(body)) + name + body + b"\n"
    data += header("y", len(FILES["a/small"])) + FILES["a/small"]
    check(data, [body, FILES["a/small"]])
    assert [LONG.encode(), b"y"] == paths(data)


def test_a_thin_archive_or_none_is_plain() -> None:
    assert take_apart(b"!<thin>\n" + header("x", 5000)) is None
    taken = take_apart(b"!<arch>\n" + b"no header" * 1000)
    assert taken is not None
    assert () == taken.content.parts


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32))
def test_damaged_and_cut_off(seed: int) -> None:
    rng = random.Random(seed)
    data = bytearray(b"!<arch>\n")
    for n in range(6):
        body = rng.randbytes(rng.randrange(3000))
        data += header(rng.choice(["/", "//", "/7", "#1/9", "#1/99999", f"x{n}/"]), len(body))
        data += body + b"\n" * (len(body) % 2)
    for _ in range(rng.randrange(4)):
        data[rng.randrange(len(data))] = rng.randrange(256)
    cut = bytes(data[: rng.randrange(len(data)) + 1])
    if take_apart(cut) is not None:
        check(cut)
