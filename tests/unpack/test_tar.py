"""Tar archives of every dialect come apart into the files in them, and together again."""

from __future__ import annotations

import io
import os
import random
import tarfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cas.entry import Kind
from cas.ids import digest_of
from cas.unpack.limits import TINY
from cas.unpack.member import Member
from cas.unpack.source import Source
from cas.unpack.tar import members
from cas.unpack.tarheader import number, parse_header
from tests.unpack.files import EPOCH, run, some_files, write_tree
from tests.unpack.taking import check, plain_chunks, take_apart

FILES = some_files()
WHOLE = [data for data in FILES.values() if len(data) > TINY]


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = write_tree(tmp_path_factory.mktemp("tree"), FILES)
    (root / "link").symlink_to("b/text")
    os.link(root / "b/text", root / "hard")
    return root


def source_of(data: bytes, *, jumps: list[int] | None = None) -> Source:
    """`data` in pieces of odd sizes; with `jumps`, a source that tells what was not read."""
    at = 0

    def more(welcome: int) -> bytes:
        nonlocal at
        piece = data[at : at + min(welcome, 1013)]
        at += len(piece)
        return piece

    def jump(count: int) -> int:
        nonlocal at
        passed = min(count, len(data) - at)
        at += passed
        assert jumps is not None
        jumps.append(passed)
        return passed

    return Source(more, len(data), None, jump if jumps is not None else None)


def listed(data: bytes) -> list[Member]:
    return list(members(source_of(data), lambda _: None))


@pytest.mark.parametrize("form", ["v7", "ustar", "oldgnu", "gnu", "posix"])
def test_what_tar_writes(tree: Path, form: str) -> None:
    names = [name for name in FILES if form not in ("v7", "ustar") or len(name) < 100]
    data = run("tar", "-c", "--format", form, "--sort=name", *names, "link", "hard", cwd=tree)
    inside = [FILES[name] for name in names if len(FILES[name]) > TINY]
    taken = check(data, inside)
    assert [] == taken.notes
    assert sum(map(len, inside)) + len(taken.skeleton) == len(data)
    found = {member.path.decode(): member for member in listed(data)}
    assert set(found) == {*names, "link", "hard"}
    for name in names:
        assert (found[name].size, found[name].kind) == (len(FILES[name]), Kind.FILE)
        assert EPOCH * 10**9 == found[name].mtime_ns
    assert (Kind.SYMLINK, b"b/text") == (found["link"].kind, found["link"].target)
    assert b"b/text" == found["hard"].link


def test_pipes_and_directories(tree: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "dir").mkdir()
    data = run("tar", "-c", "fifo", "dir", cwd=tmp_path)
    check(data)
    assert [Kind.FIFO, Kind.DIRECTORY] == [member.kind for member in listed(data)]


SPARSE = {
    "S": ["--format=gnu"],
    "0.0": ["--format=posix", "--sparse-version=0.0"],
    "0.1": ["--format=posix", "--sparse-version=0.1"],
    "1.0": ["--format=posix", "--sparse-version=1.0"],
}


@pytest.mark.parametrize("way", SPARSE)
def test_sparse_files(tmp_path: Path, way: str) -> None:
    """Runs between large holes are what they are in the file lying plain."""
    rng = random.Random(way)
    runs = [(4096 * 1024 * n, rng.randbytes(rng.choice([4096, 40_960]))) for n in range(40)]
    with open(tmp_path / "sparse", "wb") as file:
        for at, run_ in runs:
            file.seek(at)
            file.write(run_)
        file.truncate(200 * 2**20)
    (tmp_path / "after").write_bytes(FILES["b/random"])
    data = run("tar", "-c", "--sparse", *SPARSE[way], "sparse", "after", cwd=tmp_path)
    check(data, [*(run_ for _, run_ in runs), FILES["b/random"]])
    sparse, after = listed(data)
    assert (b"sparse", 200 * 2**20) == (sparse.path, sparse.size)
    assert sparse.runs is not None
    assert [(at, len(run_)) for at, run_ in runs] == [one for one in sparse.runs if one[1]]
    assert b"after" == after.path


def test_runs_between_small_holes_are_one(tmp_path: Path) -> None:
    rng = random.Random(5)
    with open(tmp_path / "sparse", "wb") as file:
        for n in range(10):
            file.seek(n * 65536)
            file.write(rng.randbytes(4096))
        file.truncate(2**20)
    data = run("tar", "-c", "--sparse", "sparse", cwd=tmp_path)
    taken = check(data)
    assert len(taken.contents) < 10


def test_long_and_strange_names(tmp_path: Path) -> None:
    name = b"\xff\xfe" + b"y" * 200
    (tmp_path / os.fsdecode(name)).write_bytes(b"z" * 1000)
    (tmp_path / "link").symlink_to("t" * 300)
    for form in ("gnu", "posix"):
        data = run("tar", "-c", "--format", form, "--sort=name", ".", cwd=tmp_path)
        check(data, [b"z" * 1000])
        paths = [member.path for member in listed(data)]
        assert b"./" + name in paths
        assert b"t" * 300 in [member.target for member in listed(data)]


def archive(
    files: dict[str, bytes], form: int = tarfile.GNU_FORMAT, global_: dict[str, str] | None = None
) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=form, pax_headers=global_) as tar:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return out.getvalue()


def test_what_python_writes() -> None:
    for form in (tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT):
        files = {name: data for name, data in FILES.items() if name.isascii() and len(name) < 90}
        inside = [data for data in files.values() if len(data) > TINY]
        check(archive(files, form, {"comment": "of all"}), inside)


def test_a_name_may_come_twice() -> None:
    first, second = FILES["a/small"], FILES["a/chunk"]
    data = archive({"x": first})[: 512 + 1024] + archive({"x": second})
    check(data, [first, second])
    assert [b"x", b"x"] == [member.path for member in listed(data)]


def test_archives_one_after_another() -> None:
    data = archive({"x": FILES["a/small"]}) + archive({"y": FILES["b/random"]})
    check(data, [FILES["a/small"], FILES["b/random"]])
    assert [b"x", b"y"] == [member.path for member in listed(data)]


TAILS = {
    "no end": b"",
    "one block": bytes(512),
    "part of a block": bytes(700),
    "many zeros": bytes(3 * 2**20),
    "text": bytes(1024) + b"and then?\n",
    "much": bytes(1024) + random.Random(8).randbytes(50_000),
    "a gzip": bytes(1024) + __import__("gzip").compress(WHOLE[-2]),
}


@pytest.mark.parametrize("tail", TAILS)
def test_whatever_follows_the_end(tail: str) -> None:
    whole = archive({"x": FILES["a/small"], "y": FILES["b/again"]})
    end = len(whole.rstrip(b"\0"))
    data = whole[: end + -end % 512] + TAILS[tail]
    taken = check(data, [FILES["a/small"], FILES["b/again"]])
    if tail == "much":
        assert taken.has(TAILS[tail][1024:])


def test_large_numbers() -> None:
    """Base 256 in a header: negative times, sizes that octal digits cannot say."""
    block = bytearray(archive({"x": b"y" * 1000})[:512])
    block[124:136] = (0x80 << 88 | 1000).to_bytes(12, "big")
    block[136:148] = b"\xff" * 12
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    data = bytes(block) + b"y" * 1000 + bytes(24 + 1024 + 4096)
    check(data, [b"y" * 1000])
    assert [(1000, -(10**9))] == [(member.size, member.mtime_ns) for member in listed(data)]
    assert 2**80 == number((0x80 << 88 | 2**80).to_bytes(12, "big"))


def test_signed_checksums() -> None:
    block = bytearray(archive({"x": b""})[:512])
    block[0:3] = b"\xe4\xf6\xfc"
    block[148:156] = b" " * 8
    signed = sum(byte - 256 if byte > 127 else byte for byte in block)
    block[148:156] = b"%06o\0 " % signed
    header = parse_header(bytes(block))
    assert header is not None
    assert b"\xe4\xf6\xfc" == header.path


def test_directories_with_a_size() -> None:
    """Of a directory the size says nothing, as a rule; what follows it decides."""
    for data_follows in (False, True):
        block = bytearray(archive({"dir": b""})[:512])
        block[124:136] = b"%011o\0" % 600
        block[156:157] = b"5"
        block[148:156] = b" " * 8
        block[148:156] = b"%06o\0 " % sum(block)
        body = b"#" * 600 + bytes(424) if data_follows else b""
        data = bytes(block) + body + archive({"x": FILES["a/chunk"]})
        check(data, [FILES["a/chunk"]])
        assert [b"dir", b"x"] == [member.path for member in listed(data)]


@pytest.mark.parametrize("form", [tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_cut_off_anywhere(form: int) -> None:
    data = archive({"n" * 150: FILES["a/small"] * 6, "y": FILES["a/chunk"]}, form)
    end = len(data.rstrip(b"\0"))
    for size in sorted({*range(0, end, 509), *range(0, end + 1024, 512), end, end - 1, len(data)}):
        taken = take_apart(data[:size])
        if size >= 4096:
            assert taken is not None
            check(data[:size])


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32))
def test_damaged_archives_stay_what_they_are(seed: int) -> None:
    rng = random.Random(seed)
    data = bytearray(archive({f"{n}" * (1 + n * 30): rng.randbytes(n * 300) for n in range(9)}))
    for _ in range(rng.randrange(1, 20)):
        at = rng.choice([rng.randrange(len(data)), rng.randrange(len(data)) // 512 * 512 + 124])
        data[at % len(data)] = rng.randrange(256)
    if (taken := take_apart(bytes(data))) is not None:
        check(bytes(data))
        assert digest_of(bytes(data)) == taken.content.digest


def test_what_only_begins_like_one_is_plain() -> None:
    """The first header is right, but it is a file of its own all the same: nothing is inside."""
    header = archive({"x": b""})[:148]
    data = header + random.Random(3).randbytes(200_000)
    assert take_apart(data) is None
    assert take_apart(bytes(200_000)) is None


def test_a_lister_reads_headers_only() -> None:
    files = {f"file{n}": random.Random(n).randbytes(100_000) for n in range(20)}
    data = archive(files)
    jumps: list[int] = []
    found = list(members(source_of(data, jumps=jumps), lambda _: None))
    assert [name.encode() for name in files] == [member.path for member in found]
    assert sum(jumps) > len(data) * 0.9


def test_a_body_may_be_read_in_part() -> None:
    data = archive({"x": FILES["b/random"], "y": FILES["a/small"]})
    source = source_of(data)
    read = [member.body.exactly(500) for member in members(source, lambda _: None)]
    assert [FILES["b/random"][:500], FILES["a/small"][:500]] == read


def test_files_are_chunked_as_outside() -> None:
    taken = check(archive(FILES), WHOLE)
    assert [id_ for data in WHOLE for id_ in plain_chunks(data)] == taken.contents
